"""What a round ended with: `result.json`, from the raw logs that were collected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_benchmarks.results.rules import Rules
from utils.figures import Figure
from utils.parameters import MeasurementSettings, TrainingSettings
from utils.records import Failure, Verdict

# 1: until figures had `better` and `definition` and a round had its `kind` and its round.json.
SCHEMA = 2
CONVERGE, MEASURE = TrainingSettings.kind, MeasurementSettings.kind


@dataclass(frozen=True)
class RoundResult:
    """One round. `times` holds seconds by stage, `images` host -> image ID, `notes` what a reader must know.

    kind: CONVERGE for a case with a target, MEASURE for one that does a fixed amount of work.
    continued: the run, checkpoint and step that the round went on from; None where it began anew.
    """

    case: str
    round: int
    verdict: Verdict
    figures: Mapping[str, Figure]
    failure: Failure | None
    times: Mapping[str, float]
    started: str
    hosts: tuple[str, ...]
    image: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rules: Rules = field(default_factory=Rules)
    continued: Mapping[str, Any] | None = None
    kind: str = CONVERGE

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "schema": SCHEMA,
            "case": self.case,
            "round": self.round,
            "kind": self.kind,
            "verdict": self.verdict.value,
            "rules": self.rules.as_dict(),
            "figures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "continued": None if self.continued is None else dict(self.continued),
            "failure": None if self.failure is None else self.failure.as_dict(),
            "times": dict(self.times),
            "started": self.started,
            "hosts": list(self.hosts),
            "image": self.image,
            "images": dict(self.images),
            "facts": _without_nan(self.facts),
            "notes": list(self.notes),
        }


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write `record` so that a reader sees all of it or nothing."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(path)


def continuation_notes(continued: Mapping[str, Any] | None) -> list[str]:
    """What a reader of a continued round's figures must know."""
    if not continued:
        return []
    head = f"continued from step {continued.get('step')} of {continued.get('run') or 'an earlier run'}"
    passed_over = [
        f"a newer checkpoint was passed over: {reason}" for reason in continued.get("skipped") or ()
    ]
    return [f"{head}: times, rates and energy are of this part only", *passed_over]


def saving_notes(facts: Mapping[str, Any]) -> list[str]:
    """What FINISHED tells of checkpoints that are not there."""
    failed, anew = facts.get("failed_checkpoints"), facts.get("begun_anew")
    notes = [f"begun anew: {anew}"] if anew else []
    if isinstance(failed, int) and failed > 0:
        notes.append(f"{failed} checkpoint(s) could not be written: global rank 0's log says why")
    return notes


def _without_nan(facts: Mapping[str, Any]) -> Any:
    """`facts` as JSON can hold them: a case's own logger may write NaN, for a loss that diverged."""
    return json.loads(json.dumps(dict(facts)), parse_constant=lambda _: None)
