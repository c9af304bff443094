"""Folders that are small to write and large to show: what is taken of them, and what work they make."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.comparison.compare import Choice, compare
from run_benchmarks.comparison.selecting import ComparedRound, groups_of
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results import bounds, tables
from run_benchmarks.results.load import load_run
from run_benchmarks.results.table import LONGEST_CELL, aligned
from run_benchmarks.results.tables import results_tables
from run_benchmarks.results.text import run_text
from tests.run_benchmarks.comparison.compared import write_compared
from tests.run_benchmarks.written_run import NAME, write_run
from utils.figures import Figure

CHECK = {"name": "clock", "status": "warning", "detail": "+0.7 s", "remedy": ""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(tmp_path / "run20260102030405")
    return tmp_path / "run20260102030405"


def change_summary(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    change(summary)
    (folder / "summary.json").write_text(json.dumps(summary))


@pytest.mark.parametrize(
    ("preflight", "reason"),
    [
        # quadratic work on it once stopped `show` for hours, and all pages of `serve`
        ({f"{'1' * 300}a1{'b' * number}": [CHECK] for number in range(3)}, "at most 200 characters"),
        ({"h1": [{**CHECK, "name": "n" * 1000}]}, "more than 100 characters"),
        ({"h1": [CHECK] * 101}, "at most 100 items"),
        ({f"h{number}": [{**CHECK, "name": f"n{number}"}] for number in range(101)}, "more than 100 checks"),
        ({f"h{number}": [] for number in range(10_001)}, "at most 10000 items"),
    ],
)
def test_a_preflight_of_which_no_table_could_be_made_is_not_taken(
    preflight: object, reason: str, folder: Path
) -> None:
    change_summary(folder, lambda summary: summary.update(preflight=preflight))
    run = load_run(folder, by_name_alone)
    assert run.checks == {}
    assert any(reason in note for note in run.notes), run.notes
    assert NAME in run_text(run, 100)


def test_more_results_and_figures_than_a_table_may_have_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MOST_RESULTS", 2)
    monkeypatch.setattr(bounds, "MOST_FIGURES", 3)
    run = load_run(folder, by_name_alone)
    assert len(run.results) == 2
    assert len({name for result in run.results for name in result.figures}) == 3
    assert "3 results: those after the first 2 are left out" in run.notes
    assert any("those after 3 are left out" in note for note in run.notes)


@pytest.mark.parametrize("name", ["case", "hosts"])
def test_names_that_no_folder_can_have_are_not_taken(name: str, folder: Path) -> None:
    """One such name would make each row of a table as wide."""

    def change(summary: dict[str, Any]) -> None:
        summary["rounds"].append(
            {**summary["rounds"][0], name: ["h" * 201] if name == "hosts" else "c" * 256}
        )

    change_summary(folder, change)
    run = load_run(folder, by_name_alone)
    assert len(run.results) == 3
    assert any("a name longer than a folder's" in note for note in run.notes)


def test_figures_with_a_unit_a_round_do_not_make_a_row_each(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names x units x rounds: a file of 12 MB once took 3 GB."""
    first = load_run(folder, by_name_alone).results[0]
    figure = Figure(1.0, "", "", "")
    rounds = [replace(first, round=n, figures={"rate": replace(figure, unit=f"u{n}")}) for n in range(10)]
    assert len(results_tables(rounds)[-1].rows) == 10
    monkeypatch.setattr(tables, "MOST_CELLS", 40)
    table = results_tables(rounds)[-1]
    assert len(table.rows) == 4
    assert any("10 figures" in note and "more than 4 are not shown" in note for note in table.footnotes)


def test_one_cell_does_not_make_all_rows_as_wide() -> None:
    lines = aligned([["a" * 10 * LONGEST_CELL, "b"], *[["c", "d"]] * 3]).splitlines()
    assert max(map(len, lines)) < 1.1 * LONGEST_CELL


def test_a_comparison_holds_no_figure_against_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounds that have no value were once looked for among all, one by one."""
    count, held = 40, []
    values = [None if number % 2 else 1.0 + number for number in range(count)]
    runs = [str(write_compared(tmp_path, name, {"p_train": values})) for name in ("run1", "run2")]
    groups = groups_of(runs, tmp_path, by_name_alone)
    monkeypatch.setattr(Figure, "__eq__", lambda self, other: held.append(other) or self is other)
    comparison = compare(groups, Choice())
    assert comparison.cases[0].rows[0].cells["A"].runs == [0] * (count // 2)
    assert len(held) < count


def test_cases_are_paired_without_asking_each_for_its_model_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, asked = 30, []
    groups = [
        groups_of(
            [str(write_cases(tmp_path / name, name, count)), str(write_cases(tmp_path / "x", "x", 1))],
            tmp_path,
            by_name_alone,
        )[0]
        for name in ("a", "b")
    ]
    model = ComparedRound.model.fget
    assert model
    monkeypatch.setattr(ComparedRound, "model", property(lambda self: asked.append(self) or model(self)))
    comparison = compare([groups[0], replace(groups[1], letter="B")], Choice())
    assert len(comparison.cases) == 1, "of the only model that both have"
    assert len(asked) < 5 * count


def write_cases(folder: Path, name: str, count: int) -> Path:
    """A run of so many cases whose names, and all models but one, no other run has."""
    for number in range(count):
        case = f"{name if number else 'shared'}{number}:pytorch:{name}:1:1:1"
        write_compared(folder.parent, folder.name, {"p_train": [1.0]}, case=case)
    (folder / "plan.json").write_text("{}")
    return folder
