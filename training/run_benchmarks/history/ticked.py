"""The rounds that were ticked in the table, as groups that are compared."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.comparison.selecting import ComparedRound, Group, letter
from run_benchmarks.history.index import Index
from run_benchmarks.history.query import Row
from run_benchmarks.results.folder import RunFolder, open_folder
from run_benchmarks.results.load import run_in
from run_benchmarks.results.summary import Run
from utils.errors import FlagPerfError

MOST_ROUNDS = 100


def tick_of(row: Row) -> str:
    """What stands for a row's round in an address."""
    return f"{row.key}/{row.round}/{row.case}" if row.case else ""


def groups_of_ticks(index: Index, ticks: Sequence[str]) -> list[Group]:
    """The rounds of one case of one run are a group; where all are, each stands for itself. The earliest is the base.

    Raises:
        FlagPerfError: there are fewer than two or too many, or one is not there any more.
    """
    ticks = list(dict.fromkeys(ticks))
    if not 2 <= len(ticks) <= MOST_ROUNDS:
        message = f"{len(ticks)} rounds are ticked"
        raise FlagPerfError(message, remedy=f"Go back and tick two or more, {MOST_ROUNDS} at most.")
    rounds = _rounds(index, ticks)
    groups: dict[tuple[str, ...], list[ComparedRound]] = {}
    for tick, each in sorted(rounds.items(), key=lambda item: (item[1].result.started, item[0])):
        key, _, case = tick.split("/", 2)
        groups.setdefault((key, case), []).append(each)
    if len(groups) == 1:
        groups = {(tick,): [each] for tick, each in rounds.items()}
    return [
        Group(letter(number), " + ".join(map(str, each)), each) for number, each in enumerate(groups.values())
    ]


def _rounds(index: Index, ticks: Sequence[str]) -> dict[str, ComparedRound]:
    runs: dict[str, tuple[RunFolder, Run] | None] = {}
    rounds = {}
    for tick in ticks:
        key, number, case = (*tick.split("/", 2), "", "")[:3]
        if key not in runs:
            runs[key] = _read(index, key)
        opened, run = runs[key] or (None, None)
        results = run.results if run else ()
        result = next((each for each in results if (each.case, str(each.round)) == (case, number)), None)
        if not opened or not run or not result:
            raise FlagPerfError(
                f"there is no round {tick} any more", remedy="Go back and load the table anew."
            )
        rounds[tick] = ComparedRound(run.name, opened.path, result, opened.plan)
    return rounds


def _read(index: Index, key: str) -> tuple[RunFolder, Run] | None:
    path = index.path_of(key)
    if path is None:
        return None
    opened = open_folder(path)
    return opened, run_in(opened)
