"""What a run's folder tells of a controller that is gone, and of a round that is run again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.history.live import progress
from run_benchmarks.results.controller import DIED, lost_controller
from run_benchmarks.results.folder import open_folder

BEGUN: Mapping[str, Any] = {"time": 100, "event": "run_started"}
UNSAVED: Mapping[str, Any] = {"time": 200, "event": "run_unsaved", "reason": "its disk\nis full"}
OF_ROUND = {"case": "c", "round": 1}


def written(folder: Path, *entries: Mapping[str, Any]) -> Path:
    """A run's folder with these lines in its journal."""
    (folder / "plan.json").write_text("{}")
    (folder / "journal.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return folder


@pytest.mark.parametrize(
    ("entries", "fate"),
    [
        ((BEGUN,), DIED),
        ((BEGUN, UNSAVED), "its controller ended and could not write all results (its disk is full)"),
        ((BEGUN, UNSAVED, {"time": 300, "event": "run_resumed"}), DIED),
    ],
)
def test_one_that_ended_by_itself_has_not_died(
    tmp_path: Path, entries: tuple[Mapping[str, Any], ...], fate: str
) -> None:
    assert lost_controller(open_folder(written(tmp_path, *entries))).fate == fate


def test_its_last_sign_is_a_line_of_its_journal_or_of_its_log(tmp_path: Path) -> None:
    written(tmp_path, BEGUN, UNSAVED, {"time": 1e300, "event": "stage"})
    assert lost_controller(open_folder(tmp_path)).last_sign == 200, "and none that is still to come"
    (tmp_path / "flagperf_run.log").touch()
    os.utime(tmp_path / "flagperf_run.log", (250, 250))
    assert lost_controller(open_folder(tmp_path)).last_sign == 250


def test_a_round_that_is_run_again_says_at_which_attempt_it_is(tmp_path: Path) -> None:
    failed = {**OF_ROUND, "event": "attempt_ended", "verdict": "FAILED"}
    again = {**OF_ROUND, "event": "stage", "stage": "train"}
    assert progress(written(tmp_path, again, failed))["rounds"] == [("c", "1", "FAILED", "")]
    assert progress(written(tmp_path, again, failed, again))["rounds"] == [
        ("c", "1 (attempt 2)", "train", "")
    ]


def test_who_was_refused_to_take_a_run_up_gives_no_sign_of_it(tmp_path: Path) -> None:
    """Else the time in which nobody watched the round would count as watched."""
    resumed = {"time": 300, "event": "run_resumed"}
    refused = {"time": 310, "event": "run_not_taken_up", "last_sign": 200}
    written(tmp_path, BEGUN, {"time": 200, "event": "stage"}, resumed, refused)
    (tmp_path / "flagperf_run.log").touch()
    assert lost_controller(open_folder(tmp_path)).last_sign == 200
    written(tmp_path, BEGUN, {"time": 200, "event": "stage"}, resumed, refused, {**resumed, "time": 400})
    os.utime(tmp_path / "flagperf_run.log", (310, 310))
    assert lost_controller(open_folder(tmp_path)).last_sign == 400
