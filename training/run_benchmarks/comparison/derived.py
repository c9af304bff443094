"""Figures per chip, per node and per watt, and those of all chips and nodes together, derived from a round's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from run_benchmarks.comparison.selecting import ComparedRound
from utils.figures import DEFINITIONS, Figure

RATES = ("p_whole", "p_train", "tokens_per_second")
CHIP_SECONDS, TOTAL_ENERGY = "chip_seconds_to_target", "energy_of_all_nodes"
NAMES = (
    *(f"{rate}_per_{one}" for rate in RATES for one in ("chip", "node", "watt")),
    CHIP_SECONDS,
    TOTAL_ENERGY,
)
_NO_CHIPS = "neither the case nor its plan says how many chips there were"


def figures_of(each: ComparedRound) -> dict[str, Figure]:
    """A round's figures and what is derived of them.

    Of a round that was continued there is nothing that speaks of its last part alone: that is another length of work.
    """
    figures = dict(each.result.figures)
    if each.result.continued is not None:
        reason = "the round was continued: this would be of its last part only"
        figures = {
            name: figure if _is_whole(name) else replace(figure, value=None, source=reason)
            for name, figure in figures.items()
        }
    return {**figures, **dict(_derived(each, figures))}


def _is_whole(name: str) -> bool:
    return name in DEFINITIONS and DEFINITIONS[name].of_all_parts


def _derived(each: ComparedRound, figures: Mapping[str, Figure]) -> Iterator[tuple[str, Figure]]:
    power, chips = figures.get("avg_power"), each.chips
    watts = power.value * each.nodes if power and power.value is not None else None
    no_power = power.source if power else "there is no avg_power"
    parts = [
        ("chip", "chip", chips, "chips", _NO_CHIPS, ""),
        ("node", "node", each.nodes, "nodes", "no host is named", ""),
        ("watt", "W", watts, "(`avg_power` x nodes)", no_power, power.caveat if power else ""),
    ]
    for name in (name for name in RATES if name in figures):
        rate = figures[name]
        for one, unit, count, what, reason, caveat in parts:
            part = _scaled(rate, count and 1 / count, f"{rate.unit}/{unit}", f"`{name}` / {what}", reason)
            caveats = dict.fromkeys(filter(None, (rate.caveat, caveat)))
            yield f"{name}_per_{one}", replace(part, caveat="; ".join(caveats))
    if time := figures.get("time_to_target"):
        yield CHIP_SECONDS, _scaled(time, chips, "chip s", "`time_to_target` x chips", _NO_CHIPS)
    if energy := figures.get("energy"):
        yield TOTAL_ENERGY, _scaled(energy, each.nodes, "J", "`energy` x nodes")


def _scaled(figure: Figure, factor: float | None, unit: str, definition: str, reason: str = "") -> Figure:
    """A figure times a factor; without one `reason` says why there is none."""
    value = figure.value * factor if figure.value is not None and factor else None
    source = figure.source if figure.value is None else reason if value is None else definition
    return replace(figure, value=value, unit=unit, source=source, definition=definition)
