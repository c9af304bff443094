"""A run that breaks off: it is never taken for one that launched nothing, and what there is of it is kept."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import foreground, round_state, runner, session
from run_benchmarks.display.lines import PlainLines
from run_benchmarks.full_disk import FULL
from run_benchmarks.hosts.fixed import FixedHosts
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.round import Round
from run_benchmarks.runtimes.process import ProcessRuntime
from run_benchmarks.session import Session
from run_benchmarks.stages import launch
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from utils.errors import FlagPerfError

Capture = pytest.CaptureFixture[str]
CASE = "toy:pytorch:X1:1:1:2"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    """A run of a case with two rounds."""
    with reserved_port() as port:  # nobody can listen on this port meanwhile
        whole = make_whole_run(tmp_path, port, monkeypatch)
        whole.configure(f'CASES = {{"{CASE}": "{tmp_path}/data"}}\n')
        yield whole


def full(path: Path, *arguments: object) -> None:
    """A disk without room."""
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


def test_a_result_that_cannot_be_written_leaves_the_next_round_its_turn(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The disk is full while the first round ends (round.json twice, result.json), and has room again."""
    write, calls = round_state.write_json, iter([full] * 3)
    monkeypatch.setattr(round_state, "write_json", lambda *a: next(calls, write)(*a))
    assert run.main() == 1
    shown = capsys.readouterr()
    assert f"round 1: FAILED at the stage judge (controller_error): {FULL}" in shown.err
    assert shown.err.count("cannot be written; the run goes on") == 1
    assert not (run.result / CASE / "round1" / "result.json").exists()
    assert (run.result / CASE / "round2" / "result.json").is_file()
    assert run.units_left() == []
    assert not (run.result / "summary.json").exists() and "run.py resume" in shown.err
    assert run.main("resume") == 0
    assert [each["verdict"] for each in run.summary["rounds"]] == ["CONVERGED", "CONVERGED"]


def unwritable(*arguments: object) -> None:
    """A text that cannot be encoded."""
    "\ud800".encode()


@pytest.mark.parametrize("broken", [full, unwritable])
def test_a_summary_that_cannot_be_written_is_shown_and_is_no_success(
    broken: Callable[..., None], run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(runner, "write_summary", broken)
    assert run.main() == 1
    shown = capsys.readouterr()
    assert shown.out.count("CONVERGED") == 2
    assert "the run is not written whole" in shown.err
    assert "run.py resume" in shown.err
    assert '"run_ended"' not in (run.result / "journal.jsonl").read_text()


def test_what_goes_wrong_in_a_round_is_its_result_and_the_next_has_its_turn(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of the units breaks, once; they are gone all the same."""
    start, calls = ProcessRuntime.start, iter([RuntimeError("the start broke, token=word")])

    async def broken(*arguments: Any, **options: Any) -> Any:
        for error in calls:
            raise error
        return await start(*arguments, **options)

    monkeypatch.setattr(ProcessRuntime, "start", broken)
    assert run.main() == 1
    first, second = run.summary["rounds"]
    assert (first["verdict"], second["verdict"]) == ("FAILED", "CONVERGED")
    assert "the start broke" in first["failure"]["message"]
    assert "word" not in (run.result / "flagperf_run.log").read_text()
    assert run.units_left() == []


def test_a_display_that_breaks_costs_the_round_nothing(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: PlainLines, nodes: object, training: object) -> None:
        raise RuntimeError("the display broke, token=word")

    monkeypatch.setattr(PlainLines, "round_started", broken)
    assert run.main() == 0
    assert [each["verdict"] for each in run.summary["rounds"]] == ["CONVERGED", "CONVERGED"]
    log = (run.result / "flagperf_run.log").read_text()
    assert "the display broke" in log and "word" not in log


def test_an_error_between_two_rounds_leaves_a_summary_of_the_first(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def first_alone(session: Session, case: CasePlan, number: int, begun: RoundSoFar | None) -> Round:
        if number > 1:
            raise FlagPerfError("the second broke, token=word")
        return Round(session, case, number, begun)

    monkeypatch.setattr(runner, "Round", first_alone)
    assert run.main() == 1, "2 would mean that nothing was launched"
    shown = capsys.readouterr().err
    assert "the run broke off" in shown and "the second broke" in shown
    assert "word" not in shown
    assert run.summary["exit_code"] == 1
    assert json.loads((run.result / CASE / "round1" / "result.json").read_text())["verdict"] == "CONVERGED"
    assert run.units_left() == []


def test_a_round_whose_end_cannot_be_logged_costs_no_other(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def broken(*arguments: object) -> None:
        raise FlagPerfError("the log broke, token=word")

    monkeypatch.setattr(runner, "_log_result", broken)
    assert run.main() == 0
    shown = capsys.readouterr().err
    assert "could not be logged: the log broke" in shown and "word" not in shown
    assert [result["verdict"] for result in run.summary["rounds"]] == ["CONVERGED"] * 2


def test_an_error_that_escapes_the_run_is_not_taken_for_a_wrong_configuration(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    async def broken(*arguments: object) -> None:
        raise FlagPerfError("the hosts could not be left")

    monkeypatch.setattr(runner, "_leave_hosts", broken)
    assert run.main() == 1
    assert "the hosts could not be left" in capsys.readouterr().err
    assert "the hosts could not be left" in (run.result / "flagperf_run.log").read_text()


def test_hosts_that_cannot_be_let_go_of_do_not_cost_the_results(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    async def broken(self: FixedHosts) -> None:
        raise RuntimeError("the scheduler does not answer")

    monkeypatch.setattr(FixedHosts, "close", broken)
    assert run.main() == 0
    note = "the hosts could not be let go of: RuntimeError: the scheduler does not answer"
    assert run.summary["notes"] == [note]
    error = capsys.readouterr().err
    assert note in error and "Traceback" not in error
    assert "Traceback" in (run.result / "flagperf_run.log").read_text()


def test_the_end_of_a_run_does_not_wait_for_what_does_not_heed_it(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def swallows(self: FixedHosts) -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    monkeypatch.setattr(FixedHosts, "close", swallows)
    for place, name in (
        (runner, "CLOSE_TIMEOUT_S"),
        (session, "CANCEL_GRACE_S"),
        (foreground, "CANCEL_GRACE_S"),
    ):
        monkeypatch.setattr(place, name, 0.1)
    assert run.main() == 0
    assert run.summary["notes"] == ["the hosts could not be let go of: TimeoutError: not done after 0.1 s"]


def test_results_that_cannot_be_written_anywhere_end_the_run_before_it_launches(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(foreground, "write_json", full)  # the plan is the first thing that is written
    assert run.main() == 2
    told = capsys.readouterr().err
    assert "nothing was launched" in told and "--log-path" in told
    assert not run.host.exists()


def test_a_task_that_ends_before_its_log_opens_tells_why(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The folder of its log is gone: the shell says so, to nobody but the runtime."""
    monkeypatch.setattr(launch, "TASK_SHELL", 'rm -rf "${1%/*}"; ' + launch.TASK_SHELL)
    assert run.main() == 1
    failure = run.summary["rounds"][0]["failure"]
    assert failure["stage"] == "train"
    assert "start_pytorch_task.log: No such file or directory" in failure["evidence"]
    assert "task_output.log" in failure["remedy"]
    assert (run.result / CASE / "round1" / "localhost_noderank0" / "task_output.log").is_file()


def test_a_host_that_a_round_could_not_leave_is_left_at_the_end_of_the_run(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever went wrong when the round cleaned up: what it had started is removed after all."""
    remove_all, calls = ProcessRuntime.remove_all, iter([MemoryError("no memory")] * 2)

    async def broken(*arguments: Any, **options: Any) -> tuple[str, ...]:
        for error in calls:
            raise error
        return await remove_all(*arguments, **options)

    monkeypatch.setattr(ProcessRuntime, "remove_all", broken)
    assert run.main() == 0
    assert [each["verdict"] for each in run.summary["rounds"]] == ["CONVERGED", "CONVERGED"]
    assert (run.result / "flagperf_run.log").read_text().count(
        "units of this run may be left on localhost"
    ) == 2
    assert run.units_left() == []
    assert not list(run.host.glob("runs/*"))
