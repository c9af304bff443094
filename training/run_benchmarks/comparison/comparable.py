"""Whether rounds may be compared at all: the same task, target, metric, rules and data; of searches, as long ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from run_benchmarks.comparison.selecting import ComparedRound
from run_benchmarks.results.folder import section
from run_benchmarks.results.round_result import CONVERGE
from run_benchmarks.results.rules import OPEN
from utils.numbers import number_in, shown
from utils.parameters import SEARCH_SECONDS, TARGET
from utils.text_files import shortened

LONGEST = 200  # characters of a value in a reason
NOTHING = "none"


def objections(sides: Mapping[str, Sequence[ComparedRound]]) -> tuple[list[str], list[str]]:
    """Why these sides (letter -> rounds) are not comparable, and what of that nobody can tell."""
    traits = {side: [_traits(each) for each in rounds] for side, rounds in sides.items()}
    refusals, unknown = [], []
    for name in next(iter(traits.values()))[0]:
        values = {side: list(dict.fromkeys(each[name] for each in rounds)) for side, rounds in traits.items()}
        seen = {value for of_side in values.values() for value in of_side}
        if len(seen - {None}) > 1 or (name == "rules" and len(seen) > 1):
            by_text: dict[str, list[str]] = {}
            for side, of_side in values.items():
                by_text.setdefault(" and ".join(map(_text, of_side)), []).append(side)
            sayings = (f"{', '.join(of_sides)} {text}" for text, of_sides in by_text.items())
            refusals.append(f"{name} differs: {'; '.join(sayings)}")
        elif None in seen:
            missing = ", ".join(side for side, of_side in values.items() if None in of_side)
            unknown.append(f"{name} is not known of {missing}")
    return refusals, unknown


def _text(value: str | None) -> str:
    return "not known" if value is None else shortened(value, LONGEST)


def _traits(each: ComparedRound) -> dict[str, str | None]:
    """What must be the same on all sides; None is not known."""
    return {
        "task": each.model,
        "kind": each.result.kind,
        "metric": _metric(each),
        "target": _target(each),
        "rules": _rules(each),
        "data": _data(each),
        SEARCH_SECONDS: _search_seconds(each),
    }


def _metric(each: ComparedRound) -> str | None:
    """As the round reported it; one that failed before that has the only metric of which the plan has a target."""
    figure = each.result.figures.get("acc")
    reported = each.result.facts.get("metric")
    if isinstance(reported, str) and reported:
        return reported
    if each.result.kind != CONVERGE:
        return NOTHING
    if figure is not None and figure.unit != "1":
        return figure.unit
    targets = [name[len(TARGET) :] for name in section(each.case, "parameters") if name.startswith(TARGET)]
    return targets[0] if len(targets) == 1 else None


def _target(each: ComparedRound) -> str | None:
    parameters = section(each.case, "parameters")
    value = number_in(each.result.facts, "target")
    if value is None:
        value = number_in(parameters, f"{TARGET}{_metric(each)}")
    if value is None:
        return NOTHING if each.result.kind != CONVERGE else None
    return shown(value, 6)


def _search_seconds(each: ComparedRound) -> str:
    """For how long is searched, by the plan: until 12 h the score of a larger machine still rises."""
    seconds = number_in(section(each.case, "parameters"), SEARCH_SECONDS)
    return NOTHING if seconds is None else shown(seconds, 6)


def _rules(each: ComparedRound) -> str | None:
    """The stamp; of an open result with all that makes it so: open results differ from each other, too."""
    rules = each.result.rules
    return f"{OPEN} ({'; '.join(rules.reasons())})" if rules.stamp == OPEN else rules.stamp


def _data(each: ComparedRound) -> str | None:
    """The digests of the data's manifests."""
    provenance = each.result.provenance
    return ", ".join(sorted(set(provenance.data.values()))) or None if provenance else None
