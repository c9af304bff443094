"""A run's journal is read whole whatever nodes have said in it, or it is told that it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.journal import Journal, kept_folders
from run_benchmarks.names import JOURNAL
from run_benchmarks.results import journal_entries
from run_benchmarks.results.journal_entries import MOST_WRONG, JournalEntries, read_journal
from tests.run_benchmarks.builders import make_case, observed
from utils.records import Failure, FailureClass, Stage, Verdict

CASE = make_case(["h1"])
NAME = CASE.settings.name
COMMAS = ("," * 4095 + "\n") * 20
FAILED = Failure(Verdict.FAILED, Stage.LAUNCH, FailureClass.COMMAND_FAILED, "h1", COMMAS, COMMAS, COMMAS)


def written(folder: Path, *entries: dict[str, Any]) -> Path:
    """A journal with these entries, each with its `event`."""
    journal = Journal(folder / JOURNAL)
    for entry in entries:
        journal.write(**entry)
    journal.close()
    return folder / JOURNAL


def round_of(number: int, *, failure: Failure | None = FAILED) -> list[dict[str, Any]]:
    """What a round says that was seen when it had failed."""
    of_round = {"case": NAME, "round": number}
    seen = observed(CASE, failure=failure).as_dict()
    return [
        {"event": "round_started", **of_round},
        {
            "event": "started",
            **of_round,
            "host": "h1",
            "task": "flagperf-task",
            "seen": {},
        },  # as nobody writes it
        {"event": "stage", **of_round, "stage": "train", "seen": seen},
        {"event": "neighbours", **of_round, "host": "h1", "runs": ["run20260102030405-abcdef"] * 100},
        {"event": "stage", **of_round, "stage": "collect", "seen": seen},
        {"event": "neighbours", **of_round, "host": "h1", "runs": ["another"] * 100},
        {"event": "round_ended", **of_round},
    ]


def test_what_a_node_said_in_many_rounds_costs_nothing_that_follows(tmp_path: Path) -> None:
    """After a hundred rounds of a host that answers with commas nobody knew which logs were to be kept on another."""
    rounds = [entry for number in range(1, 101) for entry in round_of(number)]
    path = written(tmp_path, *rounds, {"event": "kept", "folder": "x"})
    read = read_journal(path)
    assert (read.gap, read.wrong) == (None, [])
    assert kept_folders(read.entries) == {"x"}
    assert path.stat().st_size < 100 * 30_000


def test_of_rounds_that_are_over_only_what_became_of_them_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is seen of a round of hundreds of nodes has thousands of values, and a run has any number of rounds."""
    monkeypatch.setattr(journal_entries, "MOST_VALUES", 4_000)
    rounds = [entry for number in range(1, 101) for entry in round_of(number, failure=None)]
    read = read_journal(written(tmp_path, *rounds[:-1]))
    assert (read.gap, read.wrong) == (None, [])
    of_last = [entry for entry in read.entries if entry["round"] == 100]
    assert [(each["event"], "seen" in each, "runs" in each) for each in of_last] == [
        ("round_started", False, False),
        ("stage", False, False),
        ("neighbours", False, False),
        ("stage", True, False),
        ("neighbours", False, True),
    ]
    assert not any({"seen", "runs"} & each.keys() for each in read.entries if each["round"] < 100)


def lines(*texts: str) -> Callable[[Path], JournalEntries]:
    def read(folder: Path) -> JournalEntries:
        (folder / JOURNAL).write_text("".join(texts))
        return read_journal(folder / JOURNAL)

    return read


STARTED, RESUMED, KEPT = (
    json.dumps({"event": name}) + "\n" for name in ("run_started", "run_resumed", "kept")
)
HALF = '{"event": "ke'


@pytest.mark.parametrize("rest", [(), (HALF,), (HALF + "\n",), (HALF + "\n", RESUMED, KEPT)])
def test_a_line_that_was_cut_off_by_its_controllers_end_hides_nothing(
    tmp_path: Path, rest: tuple[str, ...]
) -> None:
    read = lines(STARTED, *rest)(tmp_path)
    assert read.gap is None
    assert len(read.wrong) == (HALF in "".join(rest))


@pytest.mark.parametrize(
    ("rest", "where"),
    [
        ((HALF + "\n", KEPT), ":2"),
        ((KEPT, HALF + KEPT, KEPT), ":3"),
        ((HALF + "\n", HALF + "\n", RESUMED), ":2"),
        (('{"event": {}}\n' * 20,), ":12"),
        (("x" * 3000,), ""),
    ],
)
def test_what_hides_a_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: tuple[str, ...], where: str
) -> None:
    monkeypatch.setattr(journal_entries, "MOST_VALUES", 22)
    monkeypatch.setattr(journal_entries, "LARGEST_JOURNAL", 2_000)
    read = lines(STARTED, *rest)(tmp_path)
    assert read.gap and read.gap.where == f"{tmp_path / JOURNAL}{where}" and read.gap.remedy
    assert read.gap.message.startswith("not all of the run's journal can be read: ")
    assert read.wrong


def test_of_many_lines_that_cannot_be_read_a_few_are_named(tmp_path: Path) -> None:
    read = lines(STARTED, "\n" * 10_000, KEPT)(tmp_path)
    assert read.gap and read.gap.where == f"{tmp_path / JOURNAL}:2"
    assert len(read.wrong) == MOST_WRONG + 1 and "what follows is not looked at" in str(read.wrong[-1])


def test_where_there_is_no_journal_nothing_is_hidden(tmp_path: Path) -> None:
    assert read_journal(tmp_path / JOURNAL) == JournalEntries()
