"""What operating a run reads of its folder: its status, its attempts, its spare hosts; whatever stands in it."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import strategies as st

from run_benchmarks.attempts import attempts_in, on_present_hosts, restore_spares
from run_benchmarks.names import JOURNAL, RUN_LOG
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.tables import results_tables
from run_benchmarks.session import Session
from run_benchmarks.verbs import main
from tests.fuzz.long_run import holds
from tests.fuzz.test_results import VALUES, torn
from tests.fuzz.test_resumption import journals
from tests.run_benchmarks.builders import make_case
from utils.records import FailureClass, Verdict

CASE = make_case(["h1", "h2"])
SPARES = ("s1", "s2", "s3")
LOG = """\
2026-01-02 03:04:05,678\t[INFO]\t[runner.py,1]case toy:pytorch:X1:2:1:1, round 1 of 1: start
2026-01-02 03:04:06,678\t[INFO]\t[lines.py,1]step 7, loss 2.0000, 100 samples/s, acc 0.5 (target 0.7)
"""
FAILED: dict[str, Any] = {
    "case": CASE.settings.name,
    "round": 1,
    "verdict": "FAILED",
    "started": "2026-01-02T03:04:05+00:00",
    "hosts": ["h1", "h2"],
    "figures": {},
    "failure": {
        "verdict": "FAILED",
        "stage": "train",
        "class": "engine_failed",
        "host": "h2",
        "message": "gone",
        "evidence": "",
        "remedy": "",
    },
}


@st.composite
def failed(draw: st.DrawFn) -> str:
    """The result of an attempt, with other values, torn, or as it is."""
    content = deepcopy(FAILED)
    if draw(st.booleans()):
        target = content["failure"] if draw(st.booleans()) else content
        target[draw(st.sampled_from(sorted(target)))] = draw(VALUES)
    text = json.dumps(content, default=str)
    return draw(torn(st.just(text))) if draw(st.booleans()) else text


@holds(journal=journals(), log=torn(st.just(LOG * 3)))
def test_whatever_a_folder_holds_its_status_is_shown(journal: str, log: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.json").write_text('{"cases": []}')
        (folder / JOURNAL).write_text(journal, encoding="utf-8", errors="replace")
        (folder / RUN_LOG).write_text(log, encoding="utf-8", errors="replace")
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            assert main(["status", name]) == 0
    assert all(line.isprintable() for line in shown.getvalue().replace("\t", " ").splitlines())
    assert f"{folder}: started" in shown.getvalue()


@holds(results=st.lists(failed(), max_size=3))
def test_whatever_attempts_left_a_round_has_its_row_and_its_cause(results: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for number, text in enumerate(results, 1):
            path = Path(name) / f"round1.attempt{number}" / "result.json"
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8", errors="replace")
        attempts = attempts_in(Path(name) / "round1")
    assert [each.folder for each in attempts] == sorted({each.folder for each in attempts})
    assert {each.folder for each in attempts} <= {f"round1.attempt{number}" for number in (1, 2, 3)}
    assert all(isinstance(each.failure_class, FailureClass) for each in attempts)
    result = RoundResult(
        case=CASE.settings.name,
        round=1,
        verdict=Verdict.CONVERGED,
        started="",
        hosts=("h1",),
        figures={},
        attempts=attempts,
    )
    (table,) = results_tables([result])
    assert table.rows[0][1] == (f"1 (attempt {len(attempts) + 1})" if attempts else "1")
    assert all(
        row.startswith("|") for row in table.markdown().splitlines() if attempts and row.count("|") > 3
    )


HOSTS = st.sampled_from(("h1", "h2", *SPARES, "elsewhere", "", "\x1b[2J"))


PLACES = st.tuples(st.sampled_from(("", "acme")), HOSTS | st.text(max_size=3))


@holds(noted=st.dictionaries(PLACES, HOSTS | st.text(max_size=3), max_size=6))
def test_whatever_a_journal_says_of_spares_each_has_one_place_at_most(
    noted: Mapping[tuple[str, str], str],
) -> None:
    cluster = SimpleNamespace(groups={}, spares_of=lambda vendor: SPARES)
    session = cast(Session, SimpleNamespace(replaced={}, plan=SimpleNamespace(cluster=cluster)))
    restore_spares(session, noted)
    present = on_present_hosts(session, replace(CASE, hosts=("h1", "h2"))).hosts
    assert len(set(present)) == 2 and set(present) <= {"h1", "h2", *SPARES}
