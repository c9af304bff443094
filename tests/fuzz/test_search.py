"""A controller's log, as its judge, its report and the panel read it: whatever stands in it, a result or a reason."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import strategies as st

from run_benchmarks.display.drawing import figure_rows
from run_benchmarks.display.lines import PlainLines
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.reading import parsed
from run_benchmarks.report.report import report_body
from run_benchmarks.results.folder import open_folder
from run_benchmarks.results.load import load_run
from run_benchmarks.results.round_result import RoundResult
from tests.fuzz.long_run import holds
from tests.fuzz.test_results import VALUES, torn
from tests.run_benchmarks.display.rounds import round_of
from tests.run_benchmarks.results.search.searched import write_search_run
from tests.search_log import end, epoch, lines_of_search, start, trial, two_trials, worker
from utils.events import PREFIX, parse_line
from utils.search.events import CONTROLLER_LOG

RECORDS = [
    *two_trials(),
    start(7.0, starts=2),
    worker(9.0, 1, "lost"),
    trial(11.0, 2, 0, attempt=2),
    epoch(12.0, 2, 0, 1, attempt=2),
    end(12.0, 2, 0, 1, state="lost", attempt=2),
]
LINES = [json.loads(line.removeprefix(PREFIX)) for line in lines_of_search(RECORDS)]
FIELDS = sorted({name for line in LINES for name in line["value"]})
NUMBERS = st.sampled_from([0, 1, 2, -1, 1e-320, 0.5, 1e24, 2**79, 2**90, float("inf"), float("nan")])


@st.composite
def logs(draw: st.DrawFn) -> str:
    """Lines of a search in any order, some with other values, torn, twice or not there."""
    lines = []
    for line in [*LINES, *draw(st.lists(st.sampled_from(LINES), max_size=9))]:
        if draw(st.integers(0, 9)) == 0:
            continue
        value = dict(line["value"])
        if draw(st.integers(0, 4)) == 0:
            value[draw(st.sampled_from(FIELDS))] = draw(st.one_of(NUMBERS, VALUES))
        lines.append(f"{PREFIX} {json.dumps({**line, 'value': value}, default=str)}")
    if draw(st.booleans()):
        lines = draw(st.permutations(lines))
    return draw(torn(st.just("\n".join([*lines, ""]))))


@holds(log=logs())
def test_whatever_a_controller_says_there_is_a_result_and_a_report(log: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run20260102030405"
        write_search_run(folder, (2, two_trials()))
        (round_folder,) = folder.glob("*/round1")
        (round_folder / "h1_noderank0" / CONTROLLER_LOG).write_text(log, encoding="utf-8", errors="replace")
        for written in folder.rglob("result.json"):
            written.unlink()
        (folder / "summary.json").unlink()
        run = load_run(folder, by_name_alone)
        (result,) = run.results
        assert parsed(RoundResult, result.as_dict(), "result.json")
        assert "Failed" in str(report_body(open_folder(folder), run, str)) or result.search is None


@holds(log=logs())
def test_whatever_a_controller_says_the_panel_shows_something(log: str) -> None:
    progress, lines = round_of(["h1", "h2"], measures=True), PlainLines()
    lines.round_started(progress.nodes, progress.training)
    for line in log.splitlines():
        event = parse_line(line)
        if event:
            progress.training.update(event)
            progress.event(event)
            lines.event(event)
            assert figure_rows(progress)
