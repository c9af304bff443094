"""The family tree of a search's architectures, laid out: who was made of whom, and how good each was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.report.tables import SHADES
from run_benchmarks.results.search.of_round import ancestors
from utils.search.account import Account, Trial

MOST_LEAVES, MOST_NODES = 20, 200  # that are drawn: the best trials, with those that they were made of
# Of the drawing, in pixels: columns are narrower where there are many, as far as a label has room. Labels stand above
# the lines that lead on from their trials.
WIDEST_COLUMN, NARROWEST_COLUMN, WIDTH, ROW, MARGIN = 130, 76, 1_100, 26, 18


@dataclass(frozen=True)
class Member:
    """A trial in the tree: where it is, which shade it has, where its parent is (None for a first one)."""

    label: str
    about: str
    x: float
    y: float
    shade: int
    is_best: bool
    parent: tuple[float, float] | None


@dataclass(frozen=True)
class Family:
    """The tree. shown, trials: how many there are, drawn and in all."""

    members: Sequence[Member]
    width: float
    height: float
    shown: int
    trials: int


def family_of(account: Account, hide: Callable[[str], str]) -> Family | None:
    """The tree of a search, as anybody may see it; None where no trial has ended an epoch."""
    chosen = _chosen(account)
    if not chosen:
        return None
    children: dict[int | None, list[int]] = {}
    for number in sorted(chosen):
        parent = chosen[number].start.parent
        children.setdefault(parent if parent in chosen else None, []).append(number)
    places = _places(children)
    ranked = sorted(chosen, key=lambda number: chosen[number].accuracy or 0.0)
    shades = {number: place * (SHADES - 1) // max(1, len(ranked) - 1) for place, number in enumerate(ranked)}
    best = account.best.start.trial if account.best else 0
    generations = 1 + max(column for column, _ in places.values())
    wide = max(NARROWEST_COLUMN, min(WIDEST_COLUMN, WIDTH // generations))
    members = []
    for number, (column, row) in places.items():
        trial = chosen[number]
        above = places.get(trial.start.parent or 0)
        members.append(
            Member(
                label=f"{number}: {trial.accuracy or 0.0:.3f}",
                about=hide(_about(trial)),
                x=MARGIN + wide * column,
                y=MARGIN + ROW * row,
                shade=shades[number],
                is_best=number == best,
                parent=(MARGIN + wide * above[0], MARGIN + ROW * above[1]) if above else None,
            )
        )
    width = MARGIN + wide * generations
    height = max(each.y for each in members) + MARGIN
    return Family(members, width, height, len(members), len(account.trials))


def _chosen(account: Account) -> Mapping[int, Trial]:
    """The best trials, and all that they were made of."""
    measured = [trial for trial in account.trials.values() if trial.epochs]
    best = sorted(measured, key=lambda trial: (-(trial.accuracy or 0.0), trial.start.trial))[:MOST_LEAVES]
    chosen: dict[int, Trial] = {}
    for trial in best:
        line = [trial.start, *ancestors(account, trial.start)][: MOST_NODES - len(chosen)]
        chosen |= {start.trial: account.trials[start.trial] for start in line}
    return chosen


def _places(children: Mapping[int | None, Sequence[int]]) -> dict[int, tuple[int, int]]:
    """Column (generation) and row of each: a leaf has a row of its own, a parent that of the first of its children."""
    places: dict[int, tuple[int, int]] = {}
    row = 0
    waiting = [(number, 0) for number in reversed(children.get(None, ()))]
    while waiting:
        number, column = waiting.pop()
        places[number] = (column, row)
        own = children.get(number, ())
        waiting += [(each, column + 1) for each in reversed(own)]
        row += not own
    return places


def _about(trial: Trial) -> str:
    start = trial.start
    made = f"of trial {start.parent}: {', '.join(start.edits)}" if start.parent else "a first one"
    return f"trial {start.trial} ({trial.state}), {made}; accuracy {_accuracy(trial)}, {start.layers} layers"


def _accuracy(trial: Trial) -> str:
    return "-" if trial.accuracy is None else f"{trial.accuracy:.4f}"


def lines_of(family: Family) -> Iterator[str]:
    """The paths of the edges, as SVG has them."""
    for each in family.members:
        if each.parent:
            x, y = each.parent
            middle = x + 0.85 * (each.x - x)
            yield f"M{x:.0f} {y:.0f}H{middle:.0f}V{each.y:.0f}H{each.x:.0f}"
