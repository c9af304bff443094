"""How far a round had come that ran into its deadline, by what its first node left."""

from __future__ import annotations

from pathlib import Path

from run_benchmarks.results.rank_logs import read_rank_logs
from utils.events import EventName
from utils.node import rank_log_name
from utils.numbers import number_in


def last_sign(folder: Path) -> str:
    """The last event of global rank 0, or what there is before it; nothing where the node's `folder` is not here."""
    if not folder.is_dir():
        return ""
    if not (folder / rank_log_name(0)).is_file():
        return "the task was launched, but global rank 0 had not been started"
    events = read_rank_logs([folder], own_script=True).events
    if not events:
        return (
            "image and launch were done and the ranks had been started, but global rank 0 had reported no event "
            f"(the first is {EventName.INIT_START.value})"
        )
    step = number_in(events[-1].value, "global_steps")
    after = "" if step is None else f", step {step:.0f}"
    return f"the last event of global rank 0 was {EventName(events[-1].name).value}{after}"
