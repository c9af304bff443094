"""Runs to be compared: folders with a plan and the results of rounds, whose figures are given."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.plan.as_dict import plain
from run_benchmarks.results.power import NAMES as POWER
from run_benchmarks.results.round_result import Attempt, RoundResult, write_json
from run_benchmarks.results.rules import CLOSED, Rules
from tests.run_benchmarks.builders import make_case
from utils.figures import DEFINITIONS, Figure
from utils.records import FailureClass, Verdict

AGAIN = Attempt(
    "round1.attempt1", Verdict.FAILED, FailureClass.ENGINE_FAILED, "h2", ("h1", "h2")
)  # for `attempts`
CASE = "toy:pytorch:X1:2:1:5"


def noisy(mean: float, count: int = 5, noise: float = 0.01, seed: int = 1) -> list[float]:
    """So many values around a mean; noise: their standard deviation as a part of it."""
    values = random.Random(seed)
    return [mean * values.gauss(1, noise) for _ in range(count)]


def write_compared(
    log_path: Path,
    run: str,
    figures: Mapping[str, Sequence[float | None]],
    *,
    case: str = CASE,
    plan: Mapping[str, Any] | None = None,
    own: Mapping[str, Figure] | None = None,
    other: Mapping[str, Mapping[str, Any]] | None = None,
    failed: int = 0,
    **changes: Any,
) -> Path:
    """A run of a case with as many rounds as each figure has values; `changes` are of every round's result.

    own: definitions of a case's own figures, whose values are in `figures`. plan: changes of the case's plan.
    other: figure -> what else than the value is other of it. failed: so many of the first rounds did.
    """
    folder = log_path / run
    planned = {**plain(make_case(name=case)), **(plan or {})}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "plan.json", {"cases": [planned], "run": {"runtime": "docker"}})
    for number in range(len(next(iter(figures.values())))):
        result = RoundResult(
            **{
                "case": case,
                "round": number + 1,
                "started": "2026-01-02T03:04:05+00:00",
                "hosts": ("h1", "h2"),
                "verdict": Verdict.FAILED if number < failed else Verdict.CONVERGED,
                "rules": Rules(CLOSED),
                "figures": {
                    name: replace(_figure(name, values[number], own or {}), **(other or {}).get(name, {}))
                    for name, values in figures.items()
                },
                "facts": {"world_size": 2, "metric": "mlm_accuracy", "target": 0.3},
                **changes,
            }
        )
        path = folder / case / f"round{number + 1}" / "result.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, result.as_dict())
    return folder


def _figure(name: str, value: float | None, own: Mapping[str, Figure]) -> Figure:
    if name in own:
        return Figure(value, own[name].unit, "all", "made up", own[name].better, own[name].definition)
    figure = DEFINITIONS[name].figure(value, "made up" if value is not None else "nothing measured it")
    return replace(figure, coverage=1.0, scope="machine") if name in POWER else figure
