"""Whether a soak that has ended was right: its rounds' verdicts, and what is left of it anywhere."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from soak_accounts import Inventory, ended_as, left_after, loaded, quiet, strange_files, wrong
from soak_faults import Planned
from soak_report import NO_FAULT, WRONG

from tests.lab.lab import Lab


class Soaked(Protocol):
    """What is looked at of a soak; what is found goes to its problems and to what is left (what -> where)."""

    lab: Lab
    plan: dict[int, Planned]
    problems: list[str]
    left: dict[str, str]

    @property
    def folder(self) -> Path | None:
        """The run's."""

    @property
    def results(self) -> Sequence[Path]:
        """The files of the rounds' results."""


def judge(soak: Soaked, rounds: int, code: int) -> dict[str, Counter[str]]:
    """Kind of fault -> how its rounds ended, and how many of them were `wrong`; what was goes to the problems."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    if soak.folder is None:
        soak.problems.append("there was no run")
        return seen
    results = [loaded(path) for path in soak.results]
    for result in sorted(results, key=lambda each: int(each["round"])):
        number = result["round"]
        fault = soak.plan.get(number)
        kind = fault.fault.kind if fault else NO_FAULT
        wrongs = [*wrong(result, fault, soak.folder / result["case"] / f"round{number}")]
        soak.problems += [f"round {number}, {described(fault)}: {text}" for text in wrongs]
        seen[kind].update([ended_as(result), *([WRONG] if wrongs else [])])
    if len(results) != rounds:
        soak.problems.append(f"{len(results)} of {rounds} rounds have a result")
    expected = int(any(result["verdict"] != "CONVERGED" for result in results))
    if code != expected:
        soak.problems.append(f"the run's exit code is {code}, not {expected}")
    return seen


def described(fault: Planned | None) -> str:
    return f"{fault.fault.kind} on h{fault.host} at the stage {fault.stage}" if fault else "no fault"


def look_back(soak: Soaked, before: list[Inventory], temporary: Path) -> None:
    """What the run has left behind on hosts and on this machine, now that it has ended."""
    for host, inventoried in zip(soak.lab.hosts, before, strict=True):
        left = quiet(partial(left_after, host, inventoried), 10, partial(time.sleep, 0.5))
        for text in sorted(left):
            soak.left.setdefault(f"{host.name}: {text}", "after the run")
    for path in temporary.rglob("*"):
        soak.left.setdefault(
            f"temporary file {path.relative_to(temporary)}", "after the run, on the controller"
        )
    for name in sorted(strange_files(soak.folder)) if soak.folder else ():
        soak.left.setdefault(name, "in the result folder")
