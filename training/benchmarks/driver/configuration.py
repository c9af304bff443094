"""A rank's configuration: the files that the launch contract names, and what its command line sets by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.driver.arguments import LaunchArguments
from utils.case_form import MUTABLE_FILE, MUTABLE_NAME, mutable_problem
from utils.config_files import load_constants
from utils.errors import FlagPerfError, ProblemsError
from utils.parameters import Configuration, Layer, resolve
from utils.plain_data import exact, in_order
from utils.secret_names import is_secret_name
from utils.text_files import shortened

__all__ = ["Configuration", "digest_of", "read_configuration", "refuse_unequal"]

LONGEST_VALUE = 100  # characters that a message shows
MOST_NAMED = 8


def read_configuration(arguments: LaunchArguments, metric: str, device_type: str = "") -> Configuration:
    """The configuration of a rank, from its files and command line.

    Args:
        arguments: the launch contract's.
        metric: name of the case's metric: the case's target is its setting `target_<metric>`; empty for none.
        device_type: the vendor's; what the framework does not do on it is refused.

    Raises:
        FlagPerfError: a file is missing or fails.
        ProblemsError: an unknown name, a wrong type or an impossible value, all of them at once.
    """
    folder = arguments.case_dir / "config"
    base = Layer(str(folder / "_base.py"), load_constants(folder / "_base.py"))
    above = [Layer("command line", arguments.overrides)] if arguments.overrides else []
    if vendor_file := _vendor_file(arguments):
        above.insert(0, Layer(str(vendor_file), load_constants(vendor_file)))
    mutable, framework = _mutable_names(folder), arguments.framework
    config = resolve(base, above, mutable=mutable, framework=framework, device_type=device_type)
    if config.metric not in ("", metric):
        message = f"is the target of another metric than the case's, which is {metric or 'none'}"
        raise ProblemsError([base.problem(f"target_{config.metric}", message, f"name it target_{metric}")])
    return config


def refuse_unequal(of_ranks: Sequence[Mapping[str, Any]], arguments: LaunchArguments) -> None:
    """Every rank has executed the files by itself, and rank 0 alone tells the controller what they came to.

    Args:
        of_ranks: the parameters of each rank, by rank.

    Raises:
        FlagPerfError: a parameter is not the same on all of them.
    """
    differences = list(_differences(of_ranks))
    if differences:
        more = len(differences) - MOST_NAMED
        named = "; ".join(differences[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
        raise FlagPerfError(
            f"the ranks do not have the same parameters: {named}",
            where=str(_vendor_file(arguments) or arguments.case_dir / "config"),
            remedy="set each of them to the same value on every rank: whatever RANK, the host or chance is",
        )


def digest_of(parameters: Mapping[str, Any]) -> str:
    """SHA-256 of names and values: of equal parameters it is the same in every process."""
    return hashlib.sha256(repr(in_order(exact(parameters))).encode()).hexdigest()


def _differences(of_ranks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each name whose value is another on some rank than on rank 0, with the first such rank."""
    first = of_ranks[0]
    for name in dict.fromkeys(chain.from_iterable(of_ranks)):
        value = _comparable(name, first)
        for rank, parameters in enumerate(of_ranks):
            if _comparable(name, parameters) != value:
                yield f"{name} is {_shown(name, parameters)} on rank {rank}, {_shown(name, first)} on rank 0"
                break


def _comparable(name: str, parameters: Mapping[str, Any]) -> str | None:
    """A value as one rank's can be held against another's; None where it is not there."""
    return repr(in_order(parameters[name])) if name in parameters else None


def _shown(name: str, parameters: Mapping[str, Any]) -> str:
    if name not in parameters:
        return "not there"
    return "***" if is_secret_name(name) else shortened(repr(parameters[name]), LONGEST_VALUE)


def _vendor_file(arguments: LaunchArguments) -> Path | None:
    if not (arguments.enable_extern_config and arguments.extern_config_file):
        return None
    return (arguments.extern_config_dir or Path()) / arguments.extern_config_file


def _mutable_names(folder: Path) -> tuple[str, ...]:
    """What the case lets a vendor change."""
    path = folder / MUTABLE_FILE
    values = load_constants(path) if path.is_file() else None
    if problem := mutable_problem(path, values):
        raise ProblemsError([problem])
    return tuple((values or {})[MUTABLE_NAME])
