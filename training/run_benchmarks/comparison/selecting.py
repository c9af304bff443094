"""What is compared: groups of rounds, as selectors name them.

A selector is `RUN`, `RUN/CASE` or `RUN/CASE/roundN`, RUN being a folder, a name below the log path, or `latest`;
several with `+` between them are one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from run_benchmarks.names import ROUND_FOLDER, is_run_folder
from run_benchmarks.results.find import find_run
from run_benchmarks.results.folder import RunFolder, as_list, open_folder
from run_benchmarks.results.load import going_on, lost_rounds, run_in
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.summary import Run
from utils.errors import FlagPerfError, nearest
from utils.numbers import counted, number_in

JOINED = "+"
REMEDY = "name what is compared as RUN, RUN/CASE or RUN/CASE/roundN, or several of these with + between them"


@dataclass(frozen=True)
class ComparedRound:
    """A round of a run. run: its name; plan: the run's `plan.json`, empty where there is none.

    uid: the run's, which a copy of it shares; empty in early results.
    """

    run: str
    folder: Path
    result: RoundResult
    plan: Mapping[str, Any] = field(repr=False)
    uid: str = ""

    @cached_property
    def case(self) -> Mapping[str, Any]:
        """The case in the plan; empty where the plan does not have it."""
        return next(
            (
                case
                for case in as_list(self.plan.get("cases"))
                if isinstance(case, dict) and section(case, "settings").get("name") == self.result.case
            ),
            {},
        )

    @property
    def model(self) -> str:
        """The case's model: what it is about, whichever framework and chips it runs on."""
        return str(section(self.case, "settings").get("model") or self.result.case.partition(":")[0])

    @property
    def counts(self) -> bool:
        """Whether its figures are compared: it succeeded."""
        return self.result.verdict.is_success

    @property
    def nodes(self) -> int:
        """How many hosts it ran on."""
        return len(self.result.hosts)

    @property
    def chips(self) -> int | None:
        """How many ranks, each of which has a chip; None where neither the case nor the plan says it."""
        reported = number_in(self.result.facts, "world_size")
        settings = section(self.case, "settings")
        nodes, processes = (number_in(settings, name) for name in ("nnodes", "nproc"))
        count = reported or (nodes and processes and nodes * processes)
        return round(count) if count else None

    @property
    def run_key(self) -> str:
        """What no other run has: a copy of it does."""
        return self.uid or str(self.folder.resolve())

    def __str__(self) -> str:
        return f"{self.run}/{self.result.case}/round{self.result.round}"


@dataclass(frozen=True)
class Group:
    """The rounds that a selector names, under a letter: A is the base.

    notes: what is wrong with their folders. lost: case -> its rounds that were begun and have no result.
    """

    letter: str
    selector: str
    rounds: Sequence[ComparedRound]
    notes: Sequence[str] = ()
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def cases(self) -> dict[str, list[ComparedRound]]:
        """Its rounds by case."""
        cases: dict[str, list[ComparedRound]] = {}
        for each in self.rounds:
            cases.setdefault(each.result.case, []).append(each)
        return cases


def groups_of(selectors: Sequence[str], log_path: Path) -> list[Group]:
    """A group for each selector, the base first.

    Raises:
        FlagPerfError: one names nothing, or a round is named twice.
    """
    groups = [_group(letter(number), text, log_path) for number, text in enumerate(selectors)]
    owners: dict[tuple[str, str, int], str] = {}
    for group in groups:
        for each in group.rounds:
            key = (each.run_key, each.result.case, each.result.round)
            if key in owners:
                message = f"{each} is named twice, in {owners[key]} and in {group.selector}"
                raise FlagPerfError(message, remedy="compare a round with others, and not with itself")
            owners[key] = group.selector
    return groups


def section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The mapping that a stranger's JSON has under a name, or an empty one."""
    value = content.get(name)
    return value if isinstance(value, dict) else {}


def letter(number: int) -> str:
    """What stands for a group: A, the base, then B, C, ..."""
    return chr(ord("A") + number) if number < 26 else f"Z{number - 25}"


def _group(name: str, selector: str, log_path: Path) -> Group:
    parts = [selector] if Path(selector).exists() else selector.split(JOINED)
    rounds, notes = [], []
    lost: dict[str, list[str]] = {}
    for part in parts:
        folder, inside = _located(part.strip(), log_path)
        opened = open_folder(folder)
        run = run_in(opened)
        rounds += list(_selected(run, opened, inside, selector))
        notes += [f"{run.name}: {note}" for note in run.notes]
        for key in lost_rounds(opened, run.results) if len(inside) < 2 else ():
            lost.setdefault(key.case, []).append(f"{run.name}/{key.case}/round{key.number}: no result")
    return Group(name, selector, rounds, notes, lost)


def _located(text: str, log_path: Path) -> tuple[Path, Sequence[str]]:
    """The run's folder, and what of the selector stands behind it."""
    parts = text.rstrip("/").split("/")
    for behind in range(min(3, len(parts))):
        run = "/".join(parts[: len(parts) - behind])
        try:
            folder = find_run(run or None, log_path) if text else None
        except FlagPerfError:
            continue
        if folder and is_run_folder(folder):
            return folder, parts[len(parts) - behind :]
    find_run(parts[0] if len(parts) <= 3 else text, log_path)  # says which names come near
    raise FlagPerfError("is no run, and no part of one", where=text, remedy=REMEDY)


def _selected(run: Run, opened: RunFolder, inside: Sequence[str], selector: str) -> Iterator[ComparedRound]:
    """The rounds of a run that a selector means."""
    case, number = (*inside, "", "")[:2]
    match = ROUND_FOLDER.fullmatch(number)
    if number and not match:
        raise FlagPerfError(f"{number} is no round", where=selector, remedy=REMEDY)
    chosen = [
        result
        for result in run.results
        if (not case or result.case == case) and (not match or result.round == int(match[1]))
    ]
    if not chosen:
        message, remedy = _nothing_chosen(run.results, opened, run.name, case)
        raise FlagPerfError(message, where=selector, remedy=remedy)
    yield from (ComparedRound(run.name, opened.path, result, opened.plan, run.uid) for result in chosen)


def _nothing_chosen(
    results: Sequence[RoundResult], opened: RunFolder, run: str, case: str
) -> tuple[str, str]:
    """Why a selector means no round, and what to do."""
    goes_on, cases = going_on(opened), list(dict.fromkeys(result.case for result in results))
    if goes_on and (not case or case in (*cases, *opened.cases)):
        remedy = "wait for its end, or name a run that has ended: `run.py list` has them"
        return f"{run} still goes on, {goes_on}: no such round of it has ended", remedy
    if case and case not in cases:
        return f"{run} has no case {case}", nearest(case, cases) or f"it has {', '.join(cases) or 'none'}"
    if not results:
        why = next(iter(run_in(opened).notes), "")
        return f"{run} has no round{why and f': {why}'}", "name another run: `run.py list` has them"
    return f"{run} has no such round", f"it has {counted(len(results), 'round')} in all, see `run.py show`"
