"""A folder of a run that is replaced by a link when links have been looked for: nothing is read behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from run_benchmarks.names import node_folder_name
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.report.report import write_report
from run_benchmarks.results.evidence import start_log_of
from run_benchmarks.results.folder import RunFolder, open_folder
from run_benchmarks.results.judge import judge
from run_benchmarks.results.load import run_in
from run_benchmarks.results.planned import planned
from run_benchmarks.stages.watch import Ended, Outcome
from tests.run_benchmarks.builders import START_MS, make_case, observed, training_events, write_rank_log
from tests.run_benchmarks.written_run import NAME, write_run
from utils.inventory import INVENTORY_FILE, HostInventory, Inventory, Software
from utils.stacks import STACKS_FILE, RankState
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

CASE = make_case(["h1"])
MARK = "SECRET4711"  # in all that a private node folder holds
NODE, ROUND, CASE_FOLDER = f"{NAME}/round1/{node_folder_name('h1', 0)}", f"{NAME}/round1", NAME
HUNG = Outcome({}, False, {}, hung_s=300.0)
FAILED, WELL = Outcome({0: Ended(1, 1.0)}, False, {}), Outcome({0: Ended(0, 1.0)}, False, {})


def write_node(folder: Path) -> Path:
    """A node's folder, of which every file tells the mark."""
    write_rank_log(folder, training_events(metric=MARK), tail=f"ValueError: {MARK}")
    start_log_of("pytorch", folder).write_text(f"the launcher says {MARK}\n")
    source = SourceInfo(START_MS - 5000, MARK, Scope.MACHINE, 1.0)
    samples = (Sample(START_MS + 1000 * second, MARK, power_w=100.0) for second in range(10))
    (folder / TELEMETRY_FILE).write_text("".join(map(record_line, (source, *samples))))
    inventory = Inventory(HostInventory(kernel=MARK), Software())
    (folder / INVENTORY_FILE).write_text(json.dumps(asdict(inventory)))
    frames = f'  Thread 1 (idle): "MainThread"\n      {MARK} (/data/train.py:10)\n      <module> (/data/train.py:17)\n'
    state = RankState(0, 100, "S", "futex_wait", "py-spy", "")
    (folder / STACKS_FILE).write_text(f"{state.line()}\n{frames}")
    return folder


def replace_by_link(path: Path, target: Path) -> None:
    """What the folder's owner does."""
    path.rename(path.with_name(f"{path.name} as it was"))
    path.symlink_to(target)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A run that its reader alone may read."""
    run = tmp_path / "private" / "run20260102030405"
    write_run(run)
    for path in run.rglob("*.json"):
        path.write_text(path.read_text().replace("a note", MARK))
    write_node(run / NODE)
    return run


@pytest.fixture
def strangers(tmp_path: Path) -> Path:
    run = tmp_path / "strangers" / "run20260102030405"
    write_run(run)
    return run


@pytest.mark.parametrize("outcome", [WELL, FAILED, HUNG])
@pytest.mark.parametrize("replaced", [NODE, ROUND, CASE_FOLDER])
def test_a_round_is_not_judged_by_what_a_link_leads_to(
    replaced: str, outcome: Outcome, private: Path, strangers: Path
) -> None:
    seen = observed(CASE, outcome=outcome)
    assert MARK in repr(judge(planned(CASE), seen, private / ROUND, str)), (
        "these are read where no link leads to them"
    )
    replace_by_link(strangers / replaced, private / replaced)
    assert MARK not in repr(judge(planned(CASE), seen, strangers / ROUND, str))


def _keep_all(folder: Path) -> None:
    pass


def _without_results(folder: Path) -> None:
    """As a controller leaves it that was killed: the rounds are judged when they are read."""
    for path in (folder / "summary.json", *folder.glob("*/*/result.json")):
        path.unlink()


@pytest.mark.parametrize("left", [_keep_all, _without_results])
@pytest.mark.parametrize("replaced", [NODE, ROUND, CASE_FOLDER])
def test_a_report_shows_nothing_that_a_link_leads_to(
    replaced: str, left: Callable[[Path], None], private: Path, strangers: Path, tmp_path: Path
) -> None:
    for folder in (private, strangers):
        left(folder)
    assert MARK in _reported(open_folder(private), tmp_path)
    opened = open_folder(strangers)
    replace_by_link(strangers / replaced, private / replaced)
    assert MARK not in _reported(opened, tmp_path)


def _reported(folder: RunFolder, tmp_path: Path) -> str:
    write_report(tmp_path / "page.html", folder, run_in(folder, by_name_alone), str)
    return (tmp_path / "page.html").read_text()
