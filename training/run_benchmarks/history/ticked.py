"""The rounds that were ticked in the table, as groups that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from run_benchmarks.comparison.selecting import ComparedRound, Group, groups_of, letter
from run_benchmarks.history.index import Index
from run_benchmarks.history.query import STARTED, Query, Row, select
from utils.errors import FlagPerfError

MOST_ROUNDS = 100


def tick_of(row: Row) -> str:
    """What stands for a row's round in an address."""
    return f"{row.key}/{row.case}/round{row.round}" if row.case else ""


def groups_of_ticks(index: Index, ticks: Sequence[str]) -> list[Group]:
    """The rounds of one case of one run are a group; where all are, each stands for itself. The earliest is the base.

    Raises:
        FlagPerfError: there are fewer than two or too many, or one is not there any more.
    """
    wanted = set(ticks)
    if not 2 <= len(wanted) <= MOST_ROUNDS:
        message = f"rounds that are ticked: {len(wanted)}"
        raise FlagPerfError(message, remedy=f"Go back and tick two or more, {MOST_ROUNDS} at most.")
    rows = [row for row in select(index, Query(sort=STARTED)) if tick_of(row) in wanted]
    if len(rows) < len(wanted):
        message = "not all of these rounds are there any more"
        raise FlagPerfError(message, remedy="Go back and load the table anew.")
    selectors = [f"{index.path_of(row.key)}/{row.case}/round{row.round}" for row in rows]
    rounds = [each for group in groups_of(selectors, index.log_path, index.secrets) for each in group.rounds]
    groups: dict[tuple[Path, str], list[ComparedRound]] = {}
    for each in rounds:
        groups.setdefault((each.folder, each.result.case), []).append(each)
    sides = list(groups.values()) if len(groups) > 1 else [[each] for each in rounds]
    return [Group(letter(number), _named(side), side) for number, side in enumerate(sides)]


def _named(side: Sequence[ComparedRound]) -> str:
    """The rounds of a case of a run, in words."""
    first, *others = side
    return ", ".join([str(first), *(f"round{each.result.round}" for each in others)])
