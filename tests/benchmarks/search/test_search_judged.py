"""What a true controller writes is what its judge takes: also of one that was killed, and of a worker that was lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.search.controller.settings import SearchSettings
from run_benchmarks.results.search.contradictions import contradictions
from run_benchmarks.results.search.figures import search_figures
from run_benchmarks.results.search.log import read_search
from tests.benchmarks.search.engine_processes import PATIENCE_S, running
from tests.run_benchmarks.results.search.searched import search_case
from utils.figure_records import Peak

SETTINGS = SearchSettings(2, 12.0, None, (1, 2, 3), 1, heartbeat_s=0.3, lost_s=1.5)


def test_the_log_of_a_search_adds_up(tmp_path: Path) -> None:
    with running(tmp_path, SETTINGS) as engine:
        first = engine.controller()
        engine.worker(0, 0.1)
        lost = engine.worker(1, 0.1)
        engine.wait_for("TRIAL_END", 3)
        first.kill()
        first.wait()
        second = engine.controller()
        engine.wait_for("TRIAL_END", 5)
        lost.kill()
        lost.wait()
        engine.worker(1, 0.1, start=2)
        assert second.wait(PATIENCE_S) == 0
    log = read_search(engine.log)
    case = search_case(2, search_seconds=12, epochs_by_round=[1, 2, 3])
    case = replace(case, settings=replace(case.settings, nproc=1))
    assert contradictions(case, log, Peak(2, None, ""), 10) == []
    assert log.account.start is not None and log.account.start.starts == 2
    figures = search_figures(log.account, None, 1)
    assert all(figure.value is not None for name, figure in figures.items() if name != "score_per_watt")
    assert figures["lost_trials"].value == log.account.ended["lost"]
    assert (figures["waiting"].value or 0.0) < 0.9
