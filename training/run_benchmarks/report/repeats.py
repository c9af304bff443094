"""What of a round's tables an earlier round of the report has already: on paper it stands once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Rows = Mapping[str, object]  # name of a row -> all that it says


@dataclass(frozen=True)
class Repeats:
    """Names of the rows of a round's tables that are, to the letter, those of `first`; none in the first round.

    has_definitions: the figures' definitions are those of `first`, for it is a round of the same case.
    """

    first: str = ""
    has_definitions: bool = False
    parameters: frozenset[str] = field(default_factory=frozenset)
    inventory: frozenset[str] = field(default_factory=frozenset)
    provenance: frozenset[str] = field(default_factory=frozenset)


def repeats_in(views: Sequence[Mapping[str, Any]]) -> list[Repeats]:
    """What each round of a report repeats of the first one of its case, if there is one before it, else of the first.

    views: as `round_view` makes them, in the order in which they are shown.
    """
    firsts: dict[str, Mapping[str, Any]] = {}
    made = []
    for view in views:
        first = firsts.setdefault(view["result"].case, view)
        made.append(_repeats(view, views[0] if first is view else first))
    return made


def _repeats(view: Mapping[str, Any], first: Mapping[str, Any]) -> Repeats:
    if view is first:
        return Repeats()
    own, others = _tables(view), _tables(first)
    alike = {name: _alike(rows.items(), others[name]) for name, rows in own.items()}
    other, is_same_case = first["result"], first["result"].case == view["result"].case
    if not is_same_case:
        alike["parameters"] = frozenset()
    return Repeats(f"{other.case}, round {other.round}", is_same_case, **alike)


def _tables(view: Mapping[str, Any]) -> dict[str, Rows]:
    differs = view["result"].rules.differs
    return {
        "parameters": {name: (value, name in differs) for name, value in view["parameters"].items()},
        "inventory": {each.name: each for each in view["inventory"]},
        "provenance": dict(view["provenance"]),
    }


def _alike(rows: Iterable[tuple[str, object]], others: Rows) -> frozenset[str]:
    return frozenset(name for name, content in rows if name in others and others[name] == content)
