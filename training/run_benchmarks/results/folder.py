"""A run's result folder, opened: its plan, journal, summary and round folders, whatever state they are in.

Nothing in it is believed before it is checked; what cannot be read is noted and loses nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from run_benchmarks.names import FOLLOWED_EVENTS, JOURNAL, ROUND_FOLDER, is_run_folder
from run_benchmarks.plan.host_ranges import LONGEST_HOST
from run_benchmarks.reading import Allowance, parsed, read_object
from run_benchmarks.results.defined import defined
from run_benchmarks.results.journal_entries import read_journal
from run_benchmarks.results.of_2022 import cases_of_2022, observation_of_2022
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.power import NAMES as POWER
from run_benchmarks.results.power import scope_in
from run_benchmarks.results.reported import within_bounds
from run_benchmarks.results.round_folders import round_folders
from run_benchmarks.results.round_result import SCHEMA, Observation, RoundRecord, RoundResult
from utils.errors import FlagPerfError
from utils.node import rank_log_name
from utils.text_files import matching

R = TypeVar("R", bound=RoundRecord)
T = TypeVar("T")
# Of files that anybody may have written so much is read.
MOST_ENTRIES = 200_000  # of one
MOST_VALUES = 12_000_000  # of all but the journal together
MOST_WRONG = 50  # entries of one
LONGEST_NAME = 255  # of a folder, in characters
REMEDY = "name the folder of a run: it holds plan.json, journal.jsonl and a folder for each case"


@dataclass(frozen=True)
class RoundKey:
    """A round of a run: the name of its case, and its number from 1."""

    case: str
    number: int

    def __str__(self) -> str:
        return f"case {self.case}, round {self.number}"


@dataclass
class RunFolder:
    """What lies in `path`; `notes` say what of it cannot be read. `rounds` are those that have a folder.

    journal_gap: why `journal` is not all that was written; None where it is.
    of_2022: it has logs alone, and `cases` is what they tell. allowance: for all of its files but the journal.
    """

    path: Path
    notes: list[str] = field(default_factory=list)
    plan: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    journal: Sequence[Mapping[str, Any]] = ()
    journal_gap: FlagPerfError | None = None
    cases: Mapping[str, PlannedCase] = field(default_factory=dict)
    rounds: Collection[RoundKey] = ()
    of_2022: bool = False
    allowance: Allowance = field(default_factory=lambda: Allowance(MOST_VALUES))

    def round_path(self, key: RoundKey) -> Path:
        """Where a round lies, if it has a folder."""
        return self.path / key.case / f"round{key.number}"

    def folder_of(self, result: RoundResult) -> Path | None:
        """The folder with a round's logs; None where it has none of its own, but a link, which is not followed."""
        key = RoundKey(result.case, result.round)
        return self.round_path(key) if key in self.rounds else None

    def has_log(self, key: RoundKey) -> bool:
        """Whether global rank 0's log is there, or what was followed of it: what it reported stands nowhere else."""
        path = self.round_path(key)
        return (path / FOLLOWED_EVENTS).is_file() or bool(matching(path, f"*_noderank0/{rank_log_name(0)}"))

    def note(self, error: FlagPerfError) -> None:
        """Keep what is wrong with a file."""
        self.notes.append(f"{error.where}: {error.message}" if error.where else error.message)


def open_folder(path: Path) -> RunFolder:
    """The folder with what it says of the whole run.

    Raises:
        FlagPerfError: it is no result folder of a run, or cannot be listed.
    """
    folder = RunFolder(path)
    try:
        if not path.is_dir():
            raise FlagPerfError("there is no such folder", where=str(path), remedy=REMEDY)
        in_cases = round_folders(path, folder.note)
    except OSError as error:
        raise FlagPerfError(f"cannot be listed: {error.strerror}", where=str(path), remedy=REMEDY) from error
    folder.plan = _object(folder, "plan.json")
    folder.summary = _object(folder, "summary.json")
    journal = read_journal(path / JOURNAL)
    folder.journal, folder.journal_gap = journal.entries, journal.gap
    for wrong in journal.wrong:
        folder.note(wrong)
    folder.cases = {case.settings.name: case for case in _cases(folder)}
    order = {name: place for place, name in enumerate(folder.cases)}
    by_plan = sorted(in_cases, key=lambda case: order.get(case, len(order)))
    folder.rounds = dict.fromkeys(key for case in by_plan for key in _rounds_in(folder, case, in_cases[case]))
    if not (folder.plan or folder.summary or folder.journal or folder.rounds):
        raise _no_run(path)
    if not is_run_folder(path):
        rounds: dict[str, list[Path]] = {}
        for key in folder.rounds:
            rounds.setdefault(key.case, []).append(folder.round_path(key))
        folder.cases = cases_of_2022(rounds)
        folder.of_2022 = bool(folder.cases)
    return folder


def _no_run(path: Path) -> FlagPerfError:
    """What is wrong with a folder in which there is nothing of a run; it may lie inside of one."""
    run = next((parent for parent in path.resolve().parents[:3] if is_run_folder(parent)), None)
    if run:
        remedy = f"name the folder of its run: {run}"
        return FlagPerfError("is a part of a run", where=str(path), remedy=remedy)
    parts = [child.name for child in matching(path, "round*") if ROUND_FOLDER.fullmatch(child.name)]
    if parts or (path / "result.json").is_file():
        message = f"holds {', '.join(parts) or 'a round'}, but no case: it is no result folder of a run"
        return FlagPerfError(message, where=str(path), remedy=REMEDY)
    return FlagPerfError("is no result folder of a run", where=str(path), remedy=REMEDY)


def read_observation(folder: RunFolder, key: RoundKey) -> Observation | None:
    """What the controller saw of a round; None where no `round.json` says it, as in schema 1.

    Raises:
        FlagPerfError: there is one that cannot be read.
    """
    path = folder.round_path(key) / "round.json"
    content = read_object(path, below=folder.path, allowance=folder.allowance)
    if content is None:
        return observation_of_2022(key.case, key.number, path.parent) if folder.of_2022 else None
    return observation_of(key, content, path)


def observation_of(key: RoundKey, content: Mapping[str, Any], path: Path) -> Observation:
    """What the controller saw of a round, as a file has it.

    Raises:
        FlagPerfError: it is none, or another round's.
    """
    return _of_round(key, _of_one_folder(parsed(Observation, content, str(path)), path), path)


def read_result(folder: RunFolder, key: RoundKey) -> RoundResult | None:
    """A round's `result.json`; None where it has none, or one that cannot be read, which is noted."""
    path = folder.round_path(key) / "result.json"
    try:
        content = read_object(path, below=folder.path, allowance=folder.allowance)
        return None if content is None else _of_round(key, _result(folder, content, path), path)
    except FlagPerfError as error:
        folder.note(error)
        return None


def summed_up(folder: RunFolder) -> dict[RoundKey, RoundResult]:
    """The results in `summary.json`, each of which stands in its round's folder too."""
    where = f"{folder.path / 'summary.json'}: rounds"
    rounds = as_list(folder.summary.get("rounds"))
    results = _readable(folder, rounds, lambda number: f"{where}[{number}]", partial(_result, folder))
    return {RoundKey(result.case, result.round): result for result in results}


def as_list(value: object) -> list[Any]:
    """`value` if it is a list, and an empty one otherwise."""
    return value if isinstance(value, list) else []


def section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The mapping that a stranger's JSON has under a name, or an empty one."""
    value = content.get(name)
    return value if isinstance(value, dict) else {}


def _object(folder: RunFolder, name: str) -> Mapping[str, Any]:
    try:
        return read_object(folder.path / name, allowance=folder.allowance) or {}
    except FlagPerfError as error:
        folder.note(error)
        return {}


def _cases(folder: RunFolder) -> Iterator[PlannedCase]:
    def case_of(content: Any, where: str) -> PlannedCase:
        return parsed(PlannedCase, content, where)

    where = f"{folder.path / 'plan.json'}: cases"
    cases = as_list(folder.plan.get("cases"))
    yield from _readable(folder, cases, lambda number: f"{where}[{number}]", case_of)


def _readable(
    folder: RunFolder, entries: Iterable[Any], where: Callable[[int], str], read: Callable[[Any, str], T]
) -> Iterator[T]:
    """The entries that can be read, with a note for each that cannot, up to where there are too many."""
    wrong = 0
    for number, entry in enumerate(islice(entries, MOST_ENTRIES)):
        try:
            yield read(entry, where(number))
        except FlagPerfError as error:
            folder.note(error)
            wrong += 1
        if wrong == MOST_WRONG:
            folder.notes.append(
                f"{where(number)}: the {wrong}th that cannot be read: what follows is not looked at"
            )
            return


def _rounds_in(folder: RunFolder, case: str, names: Iterable[str]) -> Iterator[RoundKey]:
    """The rounds among the folders of a case, without those in which is a link to a folder, as of a node."""
    numbers = (int(match[1]) for name in names if (match := ROUND_FOLDER.fullmatch(name)))
    for key in (RoundKey(case, number) for number in sorted(numbers)):
        path = folder.round_path(key)
        try:
            link = _link_in(path)
        except OSError as error:
            folder.note(FlagPerfError(f"cannot be listed: {error.strerror}", where=str(path)))
            continue
        if link:
            folder.note(FlagPerfError("is a link, which is not followed", where=str(link)))
        else:
            yield key


def _link_in(path: Path) -> Path | None:
    with os.scandir(path) as entries:
        return next((Path(each.path) for each in entries if each.is_symlink() and each.is_dir()), None)


def _result(folder: RunFolder, content: Any, where: object) -> RoundResult:
    if not isinstance(content, dict):
        raise FlagPerfError("is no JSON object", where=str(where))
    result = _of_one_folder(parsed(RoundResult, content, str(where)), where)
    case = folder.cases.get(result.case)
    scope = scope_in(" ".join(each.source for name, each in result.figures.items() if name in POWER))
    figures = {name: defined(name, each, case, scope) for name, each in result.figures.items()}
    return within_bounds(replace(result, schema=SCHEMA, figures=figures))


def _of_one_folder(record: R, where: object) -> R:
    """The record, whose names are those of folders, and lead to no other one."""
    if record.case in (".", "..") or any({"/", "\0"} & {*name} for name in (record.case, *record.hosts)):
        raise FlagPerfError("a case or host in it has a name that leads elsewhere", where=str(where))
    longest = max((len(host.encode(errors="replace")) for host in record.hosts), default=0)
    if len(record.case) > LONGEST_NAME or longest > LONGEST_HOST:
        raise FlagPerfError("a case or host in it has a name longer than a folder's", where=str(where))
    return record


def _of_round(key: RoundKey, record: R, path: Path) -> R:
    """The record, which must be that of the round in whose folder it lies."""
    own = RoundKey(record.case, record.round)
    if own != key:
        raise FlagPerfError(f"is of {own}, and does not belong here", where=str(path))
    return record
