"""Figures per chip, per node and per watt, and those of all chips and nodes together, derived from a round's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from run_benchmarks.comparison.selecting import ComparedRound
from run_benchmarks.results.power import NAMES as POWER
from run_benchmarks.results.round_result import RoundResult
from utils.figures import DEFINITIONS, FULL_COVERAGE, Figure

RATES = ("p_whole", "p_train", "tokens_per_second", "score")
CHIP_SECONDS, TOTAL_ENERGY = "chip_seconds_to_target", "energy_of_all_nodes"
NAMES = (
    *(f"{rate}_per_{one}" for rate in RATES for one in ("chip", "node", "watt")),
    CHIP_SECONDS,
    TOTAL_ENERGY,
)
# What a training came to until its target was met: rounds that did not meet it have none, and leave the fast ones.
TO_TARGET = (
    *("e2e_time", "round_time", "raw_train_time", "no_eval_time", "pure_compute_time", "time_to_target"),
    *("samples", "steps", "acc", "final_loss", "energy", "energy_to_target", "energy_above_idle"),
    *(CHIP_SECONDS, TOTAL_ENERGY, "carbon_estimate", "cost_estimate"),
)
_NO_CHIPS = "neither the case nor its plan says how many chips there were"


def figures_of(each: ComparedRound) -> dict[str, Figure]:
    """A round's figures and what is derived of them."""
    figures = whole_figures(each.result)
    return {**figures, **dict(_derived(each, figures))}


def whole_figures(result: RoundResult) -> dict[str, Figure]:
    """A round's figures, those without a value, and with the reason, that other rounds cannot be held against.

    They speak of the last part of a continued round alone, which is another length of work; or they are power or energy
    of a part of the training, or of nobody knows which part of a machine.
    """
    reasons = {name: _in_part(name, figure, result) for name, figure in result.figures.items()}
    return {
        name: replace(figure, value=None, source=reasons[name]) if reasons[name] else figure
        for name, figure in result.figures.items()
    }


def _in_part(name: str, figure: Figure, result: RoundResult) -> str:
    """Of which part alone a figure is; empty where it is of the whole, or has no value."""
    if figure.value is None:
        return ""
    if result.continued is not None and not (name in DEFINITIONS and DEFINITIONS[name].of_all_parts):
        return "the round was continued: this is of its last part only"
    if name not in POWER:
        return ""
    if not figure.scope:
        return "which part of a machine it is of is not known"
    if figure.coverage is None:
        return "how much of the training was sampled is not known"
    too_little = f"only {100 * figure.coverage:.3g} % of the training was sampled"
    return too_little if figure.coverage < FULL_COVERAGE else ""


def _derived(each: ComparedRound, figures: Mapping[str, Figure]) -> Iterator[tuple[str, Figure]]:
    power, chips = figures.get("avg_power"), each.chips
    watts = power.value * each.nodes if power and power.value is not None else None
    no_power = power.source if power else "there is no avg_power"
    parts = [
        ("chip", "chip", chips, "chips", _NO_CHIPS, None),
        ("node", "node", each.nodes, "nodes", "no host is named", None),
        ("watt", "W", watts, "(`avg_power` x nodes)", no_power, power),
    ]
    for name in (name for name in RATES if name in figures):
        rate = figures[name]
        for one, unit, count, what, reason, other in parts:
            if f"{name}_per_{one}" in figures:  # a search's own
                continue
            part = _scaled(rate, count and 1 / count, f"{rate.unit}/{unit}", f"`{name}` / {what}", reason)
            caveats = dict.fromkeys(each.caveat for each in (rate, other) if each and each.caveat)
            scope = other.scope if other else ""
            yield f"{name}_per_{one}", replace(part, caveat="; ".join(caveats), scope=scope)
    if time := figures.get("time_to_target"):
        yield CHIP_SECONDS, _scaled(time, chips, "chip s", "`time_to_target` x chips", _NO_CHIPS)
    if energy := figures.get("energy"):
        yield TOTAL_ENERGY, _scaled(energy, each.nodes, "J", "`energy` x nodes")


def _scaled(figure: Figure, factor: float | None, unit: str, definition: str, reason: str = "") -> Figure:
    """A figure times a factor; without one `reason` says why there is none."""
    value = figure.value * factor if figure.value is not None and factor else None
    source = figure.source if figure.value is None else reason if value is None else definition
    return replace(figure, value=value, unit=unit, source=source, definition=definition)
