"""What a report shows of a search: read as a page, and in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.report.report import write_report
from run_benchmarks.report.rounds import round_view
from run_benchmarks.report.search.family import MOST_LEAVES, MOST_NODES, family_of, lines_of
from run_benchmarks.report.search.timeline import timeline_of
from run_benchmarks.results.folder import open_folder
from run_benchmarks.results.load import run_in
from run_benchmarks.results.rules import OPEN, Rules
from run_benchmarks.results.summary import Run
from run_benchmarks.results.tables import results_tables
from tests.browser import PHONE, serious_faults
from tests.run_benchmarks.results.search.searched import write_search_run
from tests.search_log import LongSearch, account_of, end, epoch, start, trial, two_trials
from utils.search.events import TrialStart

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Whether any label of a tree has a horizontal part of a line within it.
CROSSED = """tree => {
    const rows = [...tree.querySelectorAll("path")].flatMap(path => {
        const box = path.getBoundingClientRect();
        return [[box.left, box.right, box.top], [box.left, box.right, box.bottom]];
    });
    return [...tree.querySelectorAll("text")].some(text => {
        const box = text.getBoundingClientRect();
        const baseline = box.top + 0.8 * box.height;
        return rows.some(([left, right, y]) => left < box.right && box.left < right && box.top + 2 < y && y < baseline);
    });
}"""
Opener = Callable[..., "Page"]
LONG = LongSearch()
RECORDS = LONG.records()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """The report of a run with a search on one worker, and one on two, each of a host."""
    folder = tmp_path_factory.mktemp("made") / "run20260102030405"
    run = write_search_run(folder, (1, LongSearch(workers=1, seed=3).records()), (2, RECORDS))
    path = folder / "report.html"
    write_report(path, open_folder(folder), run, str)
    return path, run


def test_the_page_says_whether_it_succeeded_and_shows_its_course(made: tuple[Path, Run]) -> None:
    text = made[0].read_text()
    assert text.count('<span class="good">Succeeded</span> by all rules') == 2
    for heading in ("The best architectures", "The family of architectures", "The workers over time"):
        assert text.count(f"<h3>{heading}</h3>") == 2
    best = account_of(RECORDS).best
    assert best is not None
    assert f'<th scope="row">{best.start.trial}</th><td class="number">{best.accuracy:.4f}</td>' in text
    assert "worker 1 (h2)" in text and "trial lost <span" in text


def test_what_was_sampled_is_shown_over_the_time_in_which_was_searched(made: tuple[Path, Run]) -> None:
    folder, result = open_folder(made[0].parent), made[1].results[1]
    view = round_view(result, folder.folder_of(result), folder.cases[result.case], 1000, str)
    assert view["phases"] == ["init", "train"]


def test_a_search_that_does_not_count_failed_and_says_why(tmp_path: Path) -> None:
    records = [start(search_seconds=7200.0), *two_trials()[1:]]
    run = write_search_run(tmp_path / "run20260102030405", (2, records))
    write_report(tmp_path / "report.html", open_folder(tmp_path / "run20260102030405"), run, str)
    text = (tmp_path / "report.html").read_text()
    outcome = re.search(r'<p><span class="bad">Failed</span> (.*)</p>', text)
    assert outcome and "one counts from 3600 s on" in outcome[1] and "search_not_valid" in outcome[1]


def test_a_trial_run_is_marked_as_one(tmp_path: Path) -> None:
    run = write_search_run(tmp_path / "run20260102030405", (2, two_trials()), search_seconds=600)
    write_report(tmp_path / "report.html", open_folder(tmp_path / "run20260102030405"), run, str)
    text = (tmp_path / "report.html").read_text()
    assert '<span class="good">Succeeded</span> a trial run, which is not comparable' in text


def test_the_tree_has_the_best_and_all_that_they_were_made_of() -> None:
    account = account_of(RECORDS)
    family = family_of(account, str)
    assert family is not None
    assert family.trials == len(account.trials)
    drawn = {int(each.label.partition(":")[0]): each for each in family.members}
    best = sorted(account.trials.values(), key=lambda each: -(each.accuracy or 0))[:MOST_LEAVES]
    assert {each.start.trial for each in best} <= drawn.keys()
    parents = {account.trials[number].start.parent for number in drawn} - {None}
    assert parents <= drawn.keys()
    assert len(list(lines_of(family))) == sum(each.parent is not None for each in family.members)
    assert len({(each.x, each.y) for each in family.members}) == len(family.members), "none hides another"
    assert [number for number, each in drawn.items() if each.is_best] == [best[0].start.trial]
    for number, each in drawn.items():
        parent = account.trials[number].start.parent
        assert each.parent == ((drawn[parent].x, drawn[parent].y) if parent else None)


def test_a_chain_without_end_is_drawn_as_far_as_there_is_room() -> None:
    records = two_trials()[:3]
    for number in range(1, 1200):
        at = 10.0 * number
        records.append(trial(at, number, 0, number - 1 or None))
        records += [epoch(at + 5, number, 0, 1, number / 2000), end(at + 5, number, 0, 1, number / 2000)]
    family = family_of(account_of(records), str)
    assert family is not None and family.shown == MOST_NODES and family.trials == 1199


def test_a_secret_that_a_trial_names_is_hidden_wherever_the_page_shows_it(tmp_path: Path) -> None:
    run = tmp_path / "run20260102030405"
    write_search_run(run, (2, RECORDS))
    (log,) = run.rglob("controller.out.log")
    log.write_text(re.sub(r'"edits": \[[^\]]*\]', '"edits": ["widen sesame"]', log.read_text()))
    folder, secrets = open_folder(run), Secrets(held=frozenset({"sesame"}))
    write_report(run / "report.html", folder, run_in(folder, lambda: secrets), secrets.hide)
    text = (run / "report.html").read_text()
    assert "sesame" not in text and text.count("widen ***") > MOST_LEAVES


def test_the_rows_of_workers_show_gaps() -> None:
    timeline = timeline_of(account_of(two_trials()), ["h1"])
    first, second = timeline.rows
    assert (first.label, second.label) == ("worker 0 (h1)", "worker 1 (node 1)")
    assert [part.kind for part in first.parts] == ["there", "done"]
    assert second.waiting == "210 s of 6:50"
    there, work = second.parts
    assert (there.start, there.width) == (0.0, 100.0)
    assert work.start == pytest.approx(100 * 10 / 410, abs=0.001)
    assert work.width == pytest.approx(100 * 200 / 410, abs=0.001)


def test_weak_scaling_is_against_one_worker_of_the_same_kind(made: tuple[Path, Run]) -> None:
    table = results_tables(made[1].results)[-1]
    assert table.headings[0] == "weak scaling"
    alone, two = (result.figures["score"].value or 0.0 for result in made[1].results)
    assert [row[2] for row in table.rows] == ["1", "2"]
    assert table.rows[0][-1] == "1"
    assert float(table.rows[1][-1]) == pytest.approx(two / (2 * alone), rel=0.01)
    first, second = made[1].results
    assert first.search is not None
    others = [replace(first, search=replace(first.search, data_digest="other")), second]
    assert results_tables(others)[-1].rows[1][-1] == "-"
    another_task = [replace(first, rules=Rules(OPEN, {"epochs_by_round": (1, 2)})), second]
    assert results_tables(another_task)[-1].rows[1][-1] == "-"
    longer = [replace(first, search=replace(first.search, search_seconds=43_200.0)), second]
    table = results_tables(longer)[-1]
    assert table.rows[1][-1] == "-" and "for as long" in table.footnotes[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_drawn_and_can_be_used(open_page: Opener, made: tuple[Path, Run], scheme: str) -> None:
    page = open_page(made[0], color_scheme=scheme, viewport={"width": PHONE, "height": 800})
    page.locator("h2").last.scroll_into_view_if_needed()
    page.locator("svg.family").last.scroll_into_view_if_needed()
    assert page.locator("svg.family circle.best").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    assert serious_faults(page) == []


def test_on_a_desk_nothing_is_cut_off_and_no_line_runs_through_a_label(
    open_page: Opener, tmp_path: Path
) -> None:
    edits = ("deepen layer4_2_relu3", "widen layer3_5_conv1", "skip relu_12 to bn_31")
    large = {"edits": edits, "parameters": 23_528_522, "training_operations": 23_053_458_315}
    records = [replace(each, **large) if isinstance(each, TrialStart) else each for each in RECORDS]
    run = write_search_run(tmp_path / "run20260102030405", (2, records))
    write_report(tmp_path / "report.html", open_folder(tmp_path / "run20260102030405"), run, str)
    page = open_page(tmp_path / "report.html", viewport={"width": 1300, "height": 900})
    table = page.locator(".wide:has(table.best)").first
    assert table.evaluate("each => each.scrollWidth <= each.clientWidth")
    assert page.locator("svg.family").first.evaluate(CROSSED) is False
