"""A run's rounds of BERT laid out as MLPerf lays out a submission, with what its official checkers say of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.comparison.statistics import olympic_mean_of
from run_benchmarks.exports.chosen import Round, file_name, rounds_in
from run_benchmarks.exports.destination import new_folder
from run_benchmarks.exports.mlperf_log import (
    BERT,
    CLOSED_QUALITY,
    LABEL,
    division_of,
    is_bert,
    lines_of_round,
    mlperf_module,
    result_line,
    why_not,
    written,
)
from run_benchmarks.exports.mlperf_power import write_power
from run_benchmarks.exports.system_description import NOT_RECORDED, STATUSES, system_description
from run_benchmarks.plan.secrets import Secrets, SecretsHere
from run_benchmarks.results.load import lost_rounds
from run_benchmarks.results.markdown import inline, listed
from run_benchmarks.results.rules import CLOSED
from run_benchmarks.results.tables import by_case
from utils.errors import FlagPerfError

USAGE, RULESET = "training", "5.0.0"  # the last that has BERT
SYSTEM_NAME, SUBMITTER = "system_name", "submitter"


def export_mlperf(run: Path, output: Path, owners: Mapping[str, str], secrets: SecretsHere) -> list[str]:
    """Write `systems/`, `results/<system>/bert/result_<i>.txt` and a README; what is to be known, line by line.

    Args:
        owners: what the system's owner says of it.

    Raises:
        FlagPerfError: the run has no round of BERT of which there can be a log, or `output` is there already.
    """
    mlperf_module("mllog.mllog")
    rounds = [each for each in rounds_in(run, secrets) if is_bert(each)]
    notes: list[str] = []
    with new_folder(output) as folder:
        for name, of_case in by_case(rounds, lambda each: each.result.case).items():
            notes += _export_case(folder, name, of_case, owners, secrets())
        if not (folder / "results").is_dir():
            where = "MLPerf's benchmark that FlagPerf has is BERT, by the shared driver"
            raise FlagPerfError(
                "; ".join([*notes, "there is no round to export"]), where=str(run), remedy=where
            )
        (folder / "README.md").write_text(_readme(run, notes), encoding="utf-8")
    return notes


def _export_case(
    folder: Path, name: str, rounds: Sequence[Round], owners: Mapping[str, str], secrets: Secrets
) -> list[str]:
    """One system: its description and its results; what is to be known of them."""
    system = file_name(f"{owners[SYSTEM_NAME]}_{name}" if SYSTEM_NAME in owners else name)
    results = folder / "results" / system / BERT
    exported: list[Round] = []
    notes: list[str] = []
    seeds: list[Any] = []
    for each in rounds:
        events = each.events()
        reason = why_not(each, events)
        if reason:
            notes.append(f"{each.name} is left out: {reason}")
            continue
        if not exported:
            results.mkdir(parents=True)  # of two cases whose names come to one folder the second is refused
        path = results / f"result_{len(exported)}.txt"
        organisation = owners.get(SUBMITTER, NOT_RECORDED)
        lines = [
            replace(line, value=secrets.hide_in(line.value))  # as the round's log says it
            for line in lines_of_round(each, events, organisation, owners.get(SYSTEM_NAME, system))
        ]
        path.write_text(written(lines) + result_line(each, events, organisation), encoding="utf-8")
        notes.append(f"{each.name} is {path.relative_to(folder)}: {': '.join(division_of(each))}")
        notes += _checked(path)
        if without_power := write_power(each, events, path.parent / "power" / path.stem):
            notes.append(f"{each.name}: {without_power}")
        exported.append(each)
        seeds += [line.value for line in lines if line.key == "seed"]
    if exported:
        notes += _describe(folder, system, exported, owners)
        notes += [f"{name}: {each}" for each in (*_same_seeds(seeds), _mean(rounds))]
    return notes


def _same_seeds(seeds: Sequence[Any]) -> list[str]:
    """What MLPerf holds against a set whose rounds did not begin differently."""
    if len(set(map(str, seeds))) == len(seeds):
        return []
    named = ", ".join(map(str, seeds))
    return [f"rounds share a seed ({named}): MLPerf asks for another each (seed_step = 1)"]


def _describe(folder: Path, system: str, rounds: Sequence[Round], owners: Mapping[str, str]) -> list[str]:
    path = folder / "systems" / f"{system}.json"
    path.parent.mkdir(exist_ok=True)
    closed = all(division_of(each)[0] == CLOSED for each in rounds)
    name = owners.get(SYSTEM_NAME, system)
    description = system_description(rounds[0], CLOSED if closed else "open", owners, name)
    path.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    checker = mlperf_module("system_desc_checker.system_desc_checker")
    with _quiet():
        valid, *_ = checker.check_system_desc(str(path), USAGE, RULESET)
    verdict = "passes" if valid else "does not pass"
    defaults = [] if "status" in owners else [f"its status is taken to be {STATUSES[2]!r}"]
    return [f"{path.relative_to(folder)} {verdict} the system description checker of {RULESET}", *defaults]


def _checked(path: Path) -> list[str]:
    """What MLPerf's compliance checker says of a log."""
    compliance = mlperf_module("compliance_checker.mlp_compliance")
    checker = compliance.make_checker(USAGE, RULESET, quiet=True, werror=False)
    with _quiet():
        valid, *_ = compliance.main(str(path), f"{USAGE}_{RULESET}/common.yaml", checker)
    if valid:
        return [f"{path.name} passes the compliance checker of {RULESET}"]
    messages = [*checker.overwritable.values(), *checker.not_overwritable]
    firsts = [message.splitlines()[0] for message in messages]
    return [f"{path.name} does not pass the compliance checker of {RULESET}: {message}" for message in firsts]


@contextmanager
def _quiet() -> Iterator[None]:
    """What the checkers say goes to Python's root logger, and makes one that prints where it has no handler."""
    handler, root = logging.NullHandler(), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _mean(rounds: Sequence[Round]) -> str:
    """The set's score as MLPerf forms it, of all rounds that there were."""
    results = [each.result for each in rounds]
    lost = [key for key in lost_rounds(rounds[0].folder, results) if key.case == results[0].case]
    mean = olympic_mean_of(results, len(lost))
    what = f"mean time to target of {len(rounds) + len(lost)} rounds without the fastest and the slowest"
    if mean is None or mean.value is None:
        return f"no {what}: {mean.reason if mean else 'none converged'}"
    return f"{what}: {mean.value:.3f} s" + (f" (doubtful: {mean.caveat})" if mean.caveat else "")


def _readme(run: Path, notes: Sequence[str]) -> str:
    text = (
        "Logs of FlagPerf's rounds of BERT in the form of MLPerf Training 5.0. FlagPerf's target is its own; a round is"
        f" *closed* here if it kept to the case's rules and reached MLPerf's accuracy of {CLOSED_QUALITY}."
    )
    return "\n\n".join([f"# {inline(run.name)}: {LABEL}", text, listed(notes)]) + "\n"
