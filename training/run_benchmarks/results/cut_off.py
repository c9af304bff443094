"""The figures of a round that was cut off before FINISHED: what its events had said until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from utils.checkpoints import continued_of
from utils.events import Event, EventName
from utils.figures import DEFINITIONS, Figure
from utils.numbers import number_in

COUNTED = (EventName.STEP_END, EventName.EVALUATE)
# figure -> its name in those events, and in what they say of an earlier part, which they count too
COUNTS = {"samples": ("num_trained_samples", "samples"), "steps": ("global_steps", "step")}


def cut_off_figures(events: Sequence[Event]) -> dict[str, Figure]:
    """`init_time`, `samples`, `steps` and `acc` as far as global rank 0's `events` tell of them, each with a caveat."""
    last = {event.name: event for event in events}
    begun = last.get(EventName.INIT_END)
    figures = _counts(events, continued_of(begun.value) or {} if begun else {})
    if begun:
        figures["init_time"] = _figure("init_time", number_in(begun.value, "init_time"), begun, "")
    evaluated = last.get(EventName.EVALUATE)
    if evaluated:
        metric = str(evaluated.value.get("metric") or "")
        caveat = f"of the last evaluation before the round was cut off{_after_step(evaluated)}"
        figure = _figure("acc", number_in(evaluated.value, metric), evaluated, caveat)
        figures["acc"] = replace(figure, unit=metric or figure.unit)
    return {name: figure for name, figure in figures.items() if figure.value is not None}


def _counts(events: Sequence[Event], continued: Mapping[str, Any]) -> dict[str, Figure]:
    counted = [event for event in events if event.name in COUNTED]
    if not counted:
        return {}
    latest = max(counted, key=lambda event: number_in(event.value, "global_steps") or 0.0)
    figures = {}
    for name, (key, earlier) in COUNTS.items():
        value = number_in(latest.value, key)
        own = None if value is None else value - (number_in(continued, earlier) or 0.0)
        figures[name] = _figure(name, own, latest, "until the last report before the round was cut off")
    return figures


def _figure(name: str, value: float | None, event: Event, caveat: str) -> Figure:
    return replace(DEFINITIONS[name].figure(value, f"{event.name} of global rank 0"), caveat=caveat)


def _after_step(event: Event) -> str:
    step = number_in(event.value, "global_steps")
    return "" if step is None else f", after step {step:.0f}"
