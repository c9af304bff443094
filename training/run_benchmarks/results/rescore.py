"""A run judged again by today's formulas, from its raw logs, and what differs from what was written then."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from run_benchmarks.plan.secrets import Secrets, SecretsHere
from run_benchmarks.results.folder import (
    RoundKey,
    RunFolder,
    open_folder,
    read_observation,
    read_result,
    summed_up,
)
from run_benchmarks.results.judge import without_secrets
from run_benchmarks.results.load import run_in
from run_benchmarks.results.round_result import RoundResult
from utils.errors import FlagPerfError, raised
from utils.figures import Figure
from utils.node import rank_log_name

# Formulas that are written in another way may differ in the last bits.
SAME = 1e-12


@dataclass(frozen=True)
class Rescored:
    """A round as it was written and as it is judged now; `after` is None, with a reason, where it cannot be.

    anew: nothing that was written of it could be read, and `before` is what it is judged to be.
    """

    before: RoundResult
    after: RoundResult | None
    reason: str = ""
    anew: bool = False

    def figures(self) -> dict[str, tuple[Figure | None, Figure | None]]:
        """The figures whose value, unit, window, better, definition or caveat differs: as they were and as they are."""
        if self.after is None:
            return {}
        old, new = self.before.figures, self.after.figures
        pairs = {name: (old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])}
        return {name: pair for name, pair in pairs.items() if not _same(*pair)}

    def others(self) -> dict[str, tuple[str, str]]:
        """What else of the result differs: its kind, the stamp of its rules, why it failed."""
        if self.after is None:
            return {}
        pairs = zip(_about(self.before).items(), _about(self.after).values(), strict=True)
        return {name: (old, new) for (name, old), new in pairs if old != new}

    def as_dict(self) -> dict[str, Any]:
        """The difference as plain data."""
        verdicts = [each.verdict.value if each else None for each in (self.before, self.after)]
        figures = {name: [each and asdict(each) for each in pair] for name, pair in self.figures().items()}
        about = {
            "case": self.before.case,
            "round": self.before.round,
            "reason": self.reason,
            "anew": self.anew,
        }
        return {**about, "verdict": verdicts, **self.others(), "figures": figures}

    def lines(self) -> Iterator[str]:
        """The difference as text."""
        head = f"{self.before.case}, round {self.before.round}"
        if self.after is None:
            yield f"{head}: cannot be scored again: {self.reason}"
            return
        if self.anew:
            yield f"{head}: {self.after.verdict.value}, judged anew: no earlier result to compare it with"
            return
        old, new = self.before.verdict.value, self.after.verdict.value
        verdict = f"{new}, as before" if old == new else f"{old} -> {new}"
        changed = self.figures()
        yield f"{head}: {verdict}; {len(changed)} of {len(self.after.figures)} figures differ"
        for name, (was, now) in changed.items():
            alike = "; its window, better, definition or caveat differs" if _shown(was) == _shown(now) else ""
            yield f"  {name}: {_shown(was)} -> {_shown(now)}{alike}"
        for name, (was_so, is_so) in self.others().items():
            yield f"  {name}: {was_so} -> {is_so}"


def rescore(path: Path, secrets: SecretsHere) -> list[Rescored]:
    """Every round of the run in the folder `path`, judged again without `secrets`; nothing is written.

    Raises:
        FlagPerfError: it is no result folder of a run.
    """
    folder, secrets = open_folder(path), cache(secrets)
    results = run_in(folder, secrets).results
    written = {key for key in folder.rounds if read_result(folder, key)} | summed_up(folder).keys()
    rounds = [_rescored(folder, result, secrets()) for result in results]
    return [
        replace(each, anew=RoundKey(each.before.case, each.before.round) not in written) for each in rounds
    ]


def _rescored(folder: RunFolder, before: RoundResult, secrets: Secrets) -> Rescored:
    before = secrets.hide_in(before)  # as what is judged now: an earlier version may have hidden less
    key = RoundKey(before.case, before.round)
    case = folder.cases.get(before.case)
    if case is None:
        return Rescored(before, None, "plan.json does not tell of the case, or cannot be read")
    if key not in folder.rounds or (before.facts and not folder.has_log(key)):
        return Rescored(before, None, f"{rank_log_name(0)} is not in the folder")
    try:
        seen = read_observation(folder, key) or before.observed()
        return Rescored(before, without_secrets(case, seen, folder.round_path(key), secrets))
    except FlagPerfError as error:
        return Rescored(before, None, f"{error.where}: {error.message}")
    except Exception as error:  # a stranger's logs may hold anything
        return Rescored(before, None, raised(error))


def _about(result: RoundResult) -> dict[str, str]:
    failure = result.failure
    return {
        "kind": result.kind,
        "rules": f"{result.rules.stamp} {'; '.join(result.rules.reasons())}".strip(),
        "failure": f"{failure.failure_class.value}: {failure.message}" if failure else "none",
    }


def _same(old: Figure | None, new: Figure | None) -> bool:
    was, now = (figure.value if figure else None for figure in (old, new))
    if was is None or now is None or not old or not new:
        return was is now
    return math.isclose(was, now, rel_tol=SAME) and _meaning(old) == _meaning(new)


def _meaning(figure: Figure) -> tuple[str | None, ...]:
    return (figure.unit, figure.window, figure.better, figure.definition, figure.caveat)


def _shown(figure: Figure | None) -> str:
    if figure is None or figure.value is None:
        return "none"
    return f"{figure.value:.10g} {figure.unit}".removesuffix(" 1")
