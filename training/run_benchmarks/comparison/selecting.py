"""What is compared: groups of rounds, as selectors name them.

A selector is `RUN`, `RUN/VENDOR`, `RUN/CASE` or `RUN/CASE/roundN`, RUN being a folder, a name below the log path, or
`latest`; several with `+` between them are one group. A run of several vendors alone stands for a group of each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from run_benchmarks.commands import run_command
from run_benchmarks.names import ROUND_FOLDER, RUN_NAME, is_name, is_run_folder
from run_benchmarks.plan.secrets import SecretsHere
from run_benchmarks.results.find import LATEST, find_run
from run_benchmarks.results.folder import RoundKey, RunFolder, as_list, open_folder, section
from run_benchmarks.results.load import going_on, lost_rounds, planned_rounds, run_in
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.summary import Run
from run_benchmarks.results.tables import by_case
from utils.errors import FlagPerfError, nearest
from utils.numbers import counted, number_in

JOINED = "+"
REMEDY = (
    "name what is compared as RUN, RUN/VENDOR, RUN/CASE or RUN/CASE/roundN, or several with + between them"
)


@dataclass(frozen=True)
class ComparedRound:
    """A round of a run. run: its name; plan: the run's `plan.json`, empty where there is none.

    case: the case in the plan; empty where the plan does not have it. uid: the run's, which a copy of it shares; empty
    in early results.
    """

    run: str
    folder: Path
    result: RoundResult
    plan: Mapping[str, Any] = field(repr=False)
    case: Mapping[str, Any] = field(repr=False)
    uid: str = ""

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
        """How many ranks, each of which has a chip; None where neither the case nor the plan says it.

        Of a search they are the plan's: its workers' own word is no measure.
        """
        reported = None if self.result.search else number_in(self.result.facts, "world_size")
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

    notes: what is wrong with their folders. lost: case -> its rounds that were begun and have no result. not_run:
    case -> how many were planned besides: of a run that was cut off they never began, of one that goes on not yet.
    """

    letter: str
    selector: str
    rounds: Sequence[ComparedRound]
    notes: Sequence[str] = ()
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_run: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def cases(self) -> dict[str, list[ComparedRound]]:
        """Its rounds by case."""
        return by_case(self.rounds, lambda each: each.result.case)

    @cached_property
    def cases_of_models(self) -> dict[str, list[str]]:
        """Its cases by model."""
        return by_case(self.cases, lambda case: self.cases[case][0].model)


def groups_of(selectors: Sequence[str], log_path: Path, secrets: SecretsHere) -> list[Group]:
    """A group for each selector, the base first.

    Raises:
        FlagPerfError: one names nothing, there is one alone, or a round is named twice.
    """
    read = cache(partial(_opened, secrets))  # of a run several rounds may be named, each by itself
    if len(selectors) == 1:
        selectors = _of_each_vendor(selectors[0], log_path, read)
    if len(selectors) == 1:
        raise FlagPerfError("there is nothing to compare it with", where=selectors[0], remedy="name two")
    groups = [_group(letter(number), text, log_path, read) for number, text in enumerate(selectors)]
    owners: dict[tuple[str, str, int], str] = {}
    for group in groups:
        for each in group.rounds:
            key = (each.run_key, each.result.case, each.result.round)
            if key in owners:
                message = f"{each} is named twice, in {owners[key]} and in {group.selector}"
                raise FlagPerfError(message, remedy="compare a round with others, and not with itself")
            owners[key] = group.selector
    return groups


def letter(number: int) -> str:
    """What stands for a group: A, the base, then B, C, ..."""
    return chr(ord("A") + number) if number < 26 else f"Z{number - 25}"


Opened = tuple[RunFolder, Run]


def _opened(secrets: SecretsHere, folder: Path) -> Opened:
    opened = open_folder(folder)
    return opened, run_in(opened, secrets)


def _of_each_vendor(selector: str, log_path: Path, read: Callable[[Path], Opened]) -> Sequence[str]:
    """A selector for each vendor of the run that `selector` names; itself where that is none of several."""
    if JOINED in selector:
        return [selector]
    folder, inside = _located(selector, log_path)
    opened, _ = read(folder)
    vendors = list(dict.fromkeys(_vendors(opened.plan).values()))
    several = len(vendors) > 1 and not inside
    return [f"{selector.rstrip('/')}/{vendor}" for vendor in vendors] if several else [selector]


def _vendors(plan: Mapping[str, Any]) -> dict[str, str]:
    """Case -> its vendor."""
    return {name: str(section(case, "settings").get("vendor") or "") for name, case in _planned(plan).items()}


def _planned(plan: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The cases of a plan, by name."""
    cases = (case for case in as_list(plan.get("cases")) if isinstance(case, dict))
    return {str(section(case, "settings").get("name")): case for case in cases}


def _meant(opened: RunFolder, run: Run, name: str) -> frozenset[str]:
    """The cases that a part of a selector means: the one of that name, or those of a vendor; all where it is empty."""
    vendors = _vendors(opened.plan)
    cases = {*vendors, *opened.cases, *(result.case for result in run.results)}
    if not name or name in cases:
        return frozenset({name} if name else cases)
    return frozenset(case for case, vendor in vendors.items() if vendor == name)


def _group(name: str, selector: str, log_path: Path, read: Callable[[Path], Opened]) -> Group:
    begin = re.split(rf"/|{re.escape(JOINED)}", selector)[0]
    is_path = Path(selector).exists() and not _names_run(begin, log_path)
    parts = [selector] if is_path else selector.split(JOINED)
    rounds, notes, whole = [], [], []
    for part in parts:
        folder, inside = _located(part.strip(), log_path)
        opened, run = read(folder)
        rounds += list(_selected(run, opened, inside, selector))
        notes += [f"{run.name}: {note}" for note in run.notes]
        if len(inside) < 2:  # rounds that are named by themselves are all that is asked for
            whole.append((opened, run, _meant(opened, run, "".join(inside))))
    return Group(name, selector, rounds, list(dict.fromkeys(notes)), *_without_result(whole))


def _without_result(
    runs: Sequence[tuple[RunFolder, Run, Collection[str]]],
) -> tuple[dict[str, list[str]], Counter[str]]:
    """By case the rounds that the runs lost, and how many were not run; none of a run that another one goes on with.

    runs: each with the cases of it that are meant.
    """
    gone_on_with = [opened.plan.get("continue_from") for opened, _, _ in runs]
    lost: dict[str, list[str]] = {}
    not_run: Counter[str] = Counter()
    for opened, run, cases in runs:
        if run.uid and run.uid in gone_on_with:
            continue
        begun = [key for key in lost_rounds(opened, run.results) if key.case in cases]
        for key in begun:
            lost.setdefault(key.case, []).append(f"{run.name}/{key.case}/round{key.number}: no result")
        passed = {*begun, *(RoundKey(each.case, each.round) for each in run.results)}
        not_run.update(key.case for key in planned_rounds(opened) if key.case in cases and key not in passed)
    return lost, not_run


def _located(text: str, log_path: Path) -> tuple[Path, Sequence[str]]:
    """The run's folder, and what of the selector stands behind it."""
    parts = text.rstrip("/").split("/")
    lengths = range(len(parts), max(0, len(parts) - 3), -1)
    for length in sorted(lengths, key=lambda length: not _names_run("/".join(parts[:length]), log_path)):
        run = "/".join(parts[:length])
        try:
            folder = find_run(run or None, log_path) if text else None
        except FlagPerfError:
            continue
        if folder and is_run_folder(folder):
            return folder, parts[length:]
    find_run(parts[0] if len(parts) <= 3 else text, log_path)  # says which names come near
    raise FlagPerfError("is no run, and no part of one", where=text, remedy=REMEDY)


def _names_run(text: str, log_path: Path) -> bool:
    """Whether a selector that begins so means a run below the log path.

    What lies where the user happens to be, by the path of a part of that run, may be anybody's.
    """
    is_there = is_name(text) and is_run_folder(log_path / text)
    return is_there or text == LATEST or bool(RUN_NAME.fullmatch(text))


def _selected(run: Run, opened: RunFolder, inside: Sequence[str], selector: str) -> Iterator[ComparedRound]:
    """The rounds of a run that a selector means."""
    case, number = (*inside, "", "")[:2]
    match = ROUND_FOLDER.fullmatch(number)
    if number and not match:
        raise FlagPerfError(f"{number} is no round", where=selector, remedy=REMEDY)
    cases = _meant(opened, run, case)
    chosen = [
        result
        for result in run.results
        if result.case in cases and (not match or result.round == int(match[1]))
    ]
    if not chosen:
        message, remedy = _nothing_chosen(run, opened, case)
        raise FlagPerfError(message, where=selector, remedy=remedy)
    planned = _planned(opened.plan)
    for result in chosen:
        yield ComparedRound(run.name, opened.path, result, opened.plan, planned.get(result.case, {}), run.uid)


def _nothing_chosen(run: Run, opened: RunFolder, case: str) -> tuple[str, str]:
    """Why a selector means no round, and what to do."""
    others = run_command("list", "--log-path", str(opened.path.parent))
    goes_on, meant = going_on(opened), _meant(opened, run, case)
    if goes_on and (meant or not case):
        remedy = f"wait for its end, or name a run that has ended: {others}"
        return f"{run.name} still goes on, {goes_on}: no such round of it has ended", remedy
    if case and not meant:
        cases = list(dict.fromkeys(result.case for result in run.results))
        near = nearest(case, [*cases, *dict.fromkeys(_vendors(opened.plan).values())])
        return f"{run.name} has no case {case}", near or f"it has {', '.join(cases) or 'none'}"
    if not run.results:
        why = next(iter(run.notes), "")
        return f"{run.name} has no round{why and f': {why}'}", f"name another run: {others}"
    return (
        f"{run.name} has no such round",
        f"it has {counted(len(run.results), 'round')} in all: {run_command('show', str(opened.path))}",
    )
