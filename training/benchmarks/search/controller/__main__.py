"""The controller's process: `python3 -m benchmarks.search.controller`, with the arguments of a training script.

It listens at MASTER_ADDR:MASTER_PORT, takes the token of FLAGPERF_SEARCH_TOKEN, and keeps its state in the folder that
FLAGPERF_CHECKPOINT_DIR names; without one the search cannot go on after the controller's end. Events go to standard
output. It exits with 0 when the search has ended, with 1 when it has failed; ended by a signal it can be started again,
and goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.driver.arguments import parse_arguments
from benchmarks.driver.configuration import Configuration, digest_of, read_configuration
from benchmarks.search.controller.architectures import checked
from benchmarks.search.controller.conduct import conduct
from benchmarks.search.controller.first import first_proposals
from benchmarks.search.controller.server import listen
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.controller.weights import WeightStore
from benchmarks.search.images import read_facts
from benchmarks.search.protocol import TOKEN_FORM, DataFacts
from benchmarks.search.space import space_of
from utils.case_form import ROLES_TOKEN
from utils.checkpoints import CHECKPOINT_DIR, CONTINUE_FROM
from utils.errors import FlagPerfError
from utils.parameters import AUTO
from utils.roles import NODES, PEAKS, RANKS, WORKERS

WEIGHTS = "weights"
SIZE = {"workers": WORKERS, "ranks": RANKS, "nodes": NODES}


def main(argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Conduct the search that the arguments' configuration describes; the exit code."""
    try:
        arguments = parse_arguments(argv)
        config = read_configuration(arguments, "")
        facts = read_facts(arguments.data_dir)
        data = DataFacts(facts.training_samples, facts.validation_samples, facts.digest)
        earlier = Path(environment[CONTINUE_FROM]) if environment.get(CONTINUE_FROM) else None
        space = space_of(config.case, facts)
        size = {name: _number(environment, variable) for name, variable in SIZE.items()}
        peaks = environment.get(PEAKS, "{}")
        settings = _settings(config, size, data, peaks)
        with _folder(environment) as folder:
            return conduct(
                settings,
                folder=folder,
                earlier=earlier,
                listener=listen(_given(environment, "MASTER_ADDR"), _number(environment, "MASTER_PORT")),
                token=_token(environment),
                check=partial(checked, space=space),
                out=sys.stdout,
                weights=WeightStore(folder / WEIGHTS, earlier and earlier / WEIGHTS),
                first=first_proposals(space, settings.workers, settings.seed),
            )
    except FlagPerfError as error:
        print(f"controller: {error}", file=sys.stderr, flush=True)
        return 1


def _settings(config: Configuration, size: Mapping[str, int], data: DataFacts, peaks: str) -> SearchSettings:
    """FlagPerfError for what no search can be conducted by."""
    values = config.case
    settings = {
        **size,
        "search_seconds": values["search_seconds"],
        "max_trials": values["max_trials"] or None,
        "epochs": values["epochs_by_round"],
        "seed": config.settings.seed,
        "heartbeat_s": values["heartbeat_seconds"],
        "lost_s": values["lost_after_seconds"],
        "data": data,
        "configuration": digest_of(config.as_dict()),
        "precision": None if values["precision"] == AUTO else values["precision"],
    }
    try:
        return msgspec.convert({**settings, "peaks": msgspec.json.decode(peaks)}, SearchSettings)
    except msgspec.MsgspecError as error:
        raise FlagPerfError(
            str(error), where="configuration", remedy="see config/_base.py of the case"
        ) from error


@contextmanager
def _folder(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where the state is kept; none is kept behind the controller's end where nobody has said where."""
    if environment.get(CHECKPOINT_DIR):
        folder = Path(environment[CHECKPOINT_DIR])
        try:
            (folder / WEIGHTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FlagPerfError(f"cannot be written: {error.strerror}", where=str(folder)) from error
        yield folder
        return
    print(
        f"controller: {CHECKPOINT_DIR} is not set: the search cannot be resumed", file=sys.stderr, flush=True
    )
    with TemporaryDirectory() as made:
        yield Path(made)


def _given(environment: Mapping[str, str], name: str) -> str:
    text = environment.get(name, "")
    if not text:
        raise FlagPerfError(
            "is not set", where=f"environment: {name}", remedy="start controllers by utils.roles"
        )
    return text


def _number(environment: Mapping[str, str], name: str) -> int:
    text = _given(environment, name)
    if not text.isdecimal():
        raise FlagPerfError(f"{text!r} is no number", where=f"environment: {name}")
    return int(text)


def _token(environment: Mapping[str, str]) -> str:
    token = _given(environment, ROLES_TOKEN)
    if not TOKEN_FORM.fullmatch(token):
        raise FlagPerfError(
            "is no token", where=f"environment: {ROLES_TOKEN}", remedy="it has 16 to 256 letters and digits"
        )
    return token


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
