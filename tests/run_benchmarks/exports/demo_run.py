"""A run of the BERT demo, recorded: its target and evaluations moved forward, a seed a round, caches cleared.

The first round converged, the second was interrupted. `changed` makes another run of it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEMO = Path(__file__).parent / "demo"
CASE = "bert:pytorch:cpu:1:1:2"
ORGANISATION = "Acme Labs"


def copied(folder: Path, *, rounds: int = 1) -> Path:
    """The demo's run in `folder`: its first round so many times, and the second one."""
    run = folder / "run20261122082028"
    shutil.copytree(DEMO, run)
    last = run / CASE / f"round{rounds + 1}"
    if rounds > 1:
        (run / CASE / "round2").rename(last)
        _renumber(last, rounds + 1)
    for number in range(2, rounds + 1):
        shutil.copytree(run / CASE / "round1", run / CASE / f"round{number}")
        _renumber(run / CASE / f"round{number}", number)
    return run


def rank_log(run: Path, number: int = 1) -> Path:
    """Rank 0's log of a round."""
    return run / CASE / f"round{number}" / "localhost_noderank0" / "rank0.out.log"


def change_events(log: Path, change: Callable[[str, dict[str, Any]], None]) -> None:
    """Let `change` change the value of each event, which it gets with its name."""
    lines = []
    for line in log.read_text().splitlines():
        head, mark, text = line.partition("[PerfLog] ")
        if mark:
            record = json.loads(text)
            change(record["event"], record["value"])
            text = json.dumps(record)
        lines.append(f"{head}{mark}{text}\n")
    log.write_text("".join(lines))


def change_json(path: Path, change: Callable[[Any], None]) -> None:
    """Let `change` change what a JSON file holds."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def make_closed(run: Path, accuracy: float = 0.73) -> None:
    """Let the first round have kept to the rules of a case that asks for 0.72, with LAMB, and have met it."""
    parameters = {"optimizer": "lamb", "target": 0.72}

    def of_plan(content: Any) -> None:
        content["cases"][0]["parameters"] |= parameters
        content["cases"][0]["differs"] = {}

    def of_event(name: str, value: dict[str, Any]) -> None:
        if name == "INIT_START":
            value["config"] |= parameters
            value["changed"] = []
        if name == "EVALUATE" and value["mlm_accuracy"] > 0.14:
            value |= {"mlm_accuracy": accuracy}
        if name in ("EVALUATE", "FINISHED"):
            value["target"] = 0.72
        if name == "FINISHED":
            value |= {"final_mlm_accuracy": accuracy}

    change_json(run / "plan.json", of_plan)
    change_events(rank_log(run), of_event)


def _renumber(folder: Path, number: int) -> None:
    change_json(folder / "round.json", lambda content: content.update(round=number))
