"""Which cases of several groups belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.comparison.selecting import ComparedRound, Group

# A case on several sides: letter -> its rounds, the base first.
Match = Mapping[str, Sequence[ComparedRound]]


@dataclass(frozen=True)
class Unmatched:
    """A case that the side `owner` has, and the sides `absent` have not: those of others the base."""

    case: str
    owner: str
    absent: Sequence[str]
    is_of_base: bool = False

    def __str__(self) -> str:
        return f"{self.case} of {self.owner} is not in {', '.join(self.absent)}"


def matches(groups: Sequence[Group]) -> tuple[list[Match], list[Unmatched]]:
    """Every case of the base with those of the others that belong to it, and those that have no counterpart.

    A case belongs to that of its name; failing that, to the only one of its model, then to the only one there is.
    """
    base, *others = groups
    matched, taken = [], {(base.letter, case) for case in base.cases}
    lonely = []
    for case in base.cases:
        sides = {base.letter: base.cases[case]}
        for group in others:
            counterpart = _counterpart(case, base, group)
            if counterpart:
                sides[group.letter] = group.cases[counterpart]
                taken.add((group.letter, counterpart))
        if len(sides) > 1:
            matched.append(sides)
        absent = [group.letter for group in others if group.letter not in sides]
        lonely += [Unmatched(case, base.letter, absent, is_of_base=True)] if absent else []
    lonely += [
        Unmatched(case, group.letter, [base.letter])
        for group in others
        for case in group.cases
        if (group.letter, case) not in taken
    ]
    return list(matched), lonely


def _counterpart(case: str, base: Group, other: Group) -> str | None:
    if case in other.cases:
        return case
    model = base.cases[case][0].model
    ours, theirs = (group.cases_of_models.get(model, []) for group in (base, other))
    if len(ours) == len(theirs) == 1:
        return theirs[0]
    return next(iter(other.cases)) if len(base.cases) == len(other.cases) == 1 else None
