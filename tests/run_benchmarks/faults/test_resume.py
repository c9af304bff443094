"""The controller is killed and the run taken up: the same verdict and figures as if nothing had happened."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from run_benchmarks import verbs
from run_benchmarks.interruption import asker_here
from run_benchmarks.results.round_result import RoundResult
from tests.live_files import live_files
from tests.ports import reserved_port
from tests.run_benchmarks.faults.seen import Seen, fault
from tests.run_benchmarks.whole_run import PROGRAM, WholeRun, make_whole_run
from utils.records import Failure, FailureClass, Stage, Verdict

T = TypeVar("T")
CASE = "toy:pytorch:X1:1:1:1"
Capture = pytest.CaptureFixture[str]
# After these lines of the journal the controller is killed; what comes of the round then.
BEGUN_ANEW = ("checked", "round_started", "launch", "started")
TAKEN_UP = ("train", "collect", "clean_up")
KILLING = """\
import os, signal
from run_benchmarks.journal import Journal
write = Journal.write

def write_and_die(self, event, **facts):
    write(self, event, **facts)
    if {line!r} in (event, facts.get("stage")):
        os.kill(os.getpid(), signal.SIGKILL)

Journal.write = write_and_die
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:
        yield make_whole_run(tmp_path, port, monkeypatch)


def killed_after(run: WholeRun, line: str, first: str = "") -> None:
    """A run whose controller does what `first` says, and is killed right after it has written a line of its journal."""
    killing = f"{first}\n{KILLING.format(line=line)}"
    words = [killing + word if word == PROGRAM else word for word in run.command()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr


def wait_for(value: Callable[[], T]) -> T:
    """What `value` gives, once it is something."""
    end = time.monotonic() + 60
    while not (there := value()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return there


def files_of(folder: Path) -> set[str]:
    """All that lies in a run's folder, but for names that differ from run to run."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def result_of(run: WholeRun) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run.result / CASE / "round1" / "result.json").read_text())
    return loaded


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=fault(f"died-{line}")) for line in (*BEGUN_ANEW, *TAKEN_UP, "round_ended")],
)
def test_a_run_whose_controller_was_killed_ends_as_if_nothing_had_happened(
    run: WholeRun, line: str, capsys: Capture, seen: Seen
) -> None:
    killed_after(run, line)
    seen.made()
    assert run.main("show") == 0 and run.main("status") == 0  # what is on disk can be read at any moment
    assert run.main("resume") == 0
    assert result_of(run)["verdict"] == "CONVERGED"
    seen.run(run.result)
    assert run.summary["exit_code"] == 0 and len(run.summary["rounds"]) == 1
    assert run.units_left() == []
    assert not list((run.host / "runs").iterdir())
    events = [json.loads(text)["event"] for text in (run.result / "journal.jsonl").read_text().splitlines()]
    assert events.count("round_started") == (2 if line in BEGUN_ANEW[1:] else 1)
    assert events.count("round_ended") == 1 and events[-1] == "run_ended"
    whole = {f"{CASE}/round1/localhost_noderank0/rank0.out.log", f"{CASE}/round1/result.json", "report.html"}
    assert whole <= files_of(run.result)
    assert not [name for name in files_of(run.result) if "/." in name]


def test_a_run_is_stopped_from_elsewhere(run: WholeRun) -> None:
    run.behave("hang")
    with subprocess.Popen(
        run.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout and any("step 1" in line for line in process.stdout)
        stopped = subprocess.run(run.command("stop", "latest"), capture_output=True, text=True, timeout=60)
        assert process.wait() == 130
    assert stopped.returncode == 0 and "exit code 130" in stopped.stdout, stopped.stderr
    assert result_of(run)["verdict"] == "INTERRUPTED" and run.units_left() == []
    assert f"`run.py stop` of {asker_here()}" in result_of(run)["failure"]["message"]
    assert not (run.result / "stop_requested").exists()


def test_a_run_whose_controller_died_is_stopped_in_its_place(run: WholeRun, capsys: Capture) -> None:
    run.behave("hang")
    killed_after(run, "train")
    assert verbs.main(["status", str(run.result)]) == 0  # with another configuration than the run's
    shown = capsys.readouterr().out
    assert re.search(r"its controller has died; its last sign was 0:\d\d ago", shown)
    assert f"resume {run.result} --config {run.tree.config}" in shown
    assert run.main("stop") == 0
    result = result_of(run)
    assert result["verdict"] == "INTERRUPTED" and run.units_left() == []
    assert f"ended by `run.py stop` of {asker_here()} at the stage train" in result["failure"]["message"]
    assert "without a controller" in result["figures"]["round_time"]["caveat"]
    told = capsys.readouterr()
    assert "SIGTERM" not in told.err and "leftovers" not in told.err
    assert (run.result / CASE / "round1" / "localhost_noderank0" / "rank0.out.log").is_file()
    assert run.summary["exit_code"] == 130
    log = (run.result / "flagperf_run.log").read_text()
    assert "Step 2: end the round that was under way" in log and "to be ended at the stage train" in log
    assert run.main("stop") == 0 and "has ended already" in capsys.readouterr().out
    assert run.main("resume") == 2
    run.configure(
        'CASES = {"toy:pytorch:X1:1:1:9": "/data"}\n'
    )  # of a run that has ended nothing else is looked at
    assert run.main("resume") == 2
    error = capsys.readouterr().err
    assert "the run has ended, with exit code 130" in error and "1:9" not in error
    assert "saved no checkpoints" in error and f"--config {run.tree.config}" in error


@pytest.mark.parametrize("verb", ["resume", "stop"])
def test_a_training_that_its_deadline_ended_while_nobody_watched_has_timed_out(
    run: WholeRun, verb: str
) -> None:
    """On the host `timeout` ends it; that is heard of before the run is stopped."""
    run.behave("hang")
    run.configure("CASE_DEADLINE_HOURS = 4 / 3600\n")
    killed_after(run, "train", "from run_benchmarks.stages import launch\nlaunch.DEADLINE_MARGIN_S = 0")
    (log,) = wait_for(lambda: live_files(run.host / "runs", "**/start_pytorch_task.log"))
    wait_for(lambda: "ended by signal 15" in log.read_text())
    run.main(verb)
    assert (result_of(run)["verdict"], result_of(run)["failure"]["class"]) == ("TIMED_OUT", "deadline")
    assert run.summary["exit_code"] == (130 if verb == "stop" else 1)
    assert run.units_left() == []


def test_a_round_that_was_begun_and_is_not_begun_anew_is_named(run: WholeRun) -> None:
    killed_after(run, "started")
    assert run.main("stop") == 0
    by = f"the run was ended by `run.py stop` of {asker_here()}"
    begun = f"case {CASE}, round 1: begun, came to the stage launch, and was not begun anew"
    assert run.summary["notes"][1:] == ["nothing more was launched", by, begun]
    assert run.summary["rounds"] == [] and run.units_left() == []


def test_an_attempt_after_which_the_run_is_ended_is_its_rounds_result(run: WholeRun) -> None:
    run.behave("hang")
    killed_after(run, "train")
    journal = run.result / "journal.jsonl"
    failed = RoundResult(
        case=CASE,
        round=1,
        started="",
        hosts=("localhost",),
        failure=Failure(Verdict.FAILED, Stage.TRAIN, FailureClass.ENGINE_FAILED, "localhost", "it broke"),
        verdict=Verdict.FAILED,
        figures={},
    )
    (run.result / CASE / "round1").mkdir(parents=True, exist_ok=True)
    (run.result / CASE / "round1" / "result.json").write_text(json.dumps(failed.as_dict()))
    with journal.open("a") as file:
        file.write(json.dumps({"time": 1.0, "event": "attempt_ended", "case": CASE, "round": 1}) + "\n")
    assert run.main("stop") == 0
    (ended,) = run.summary["rounds"]
    assert (ended["verdict"], ended["failure"]["class"]) == ("FAILED", "engine_failed")
    assert run.units_left() == []


def test_what_has_changed_since_the_run_began_is_named_and_nothing_is_done(
    run: WholeRun, capsys: Capture
) -> None:
    run.behave("hang")
    killed_after(run, "train")
    run.configure('SHM_SIZE = "3G"\n')
    assert run.main("resume") == 2
    error = capsys.readouterr().err
    assert "run.shm_size: was 32G, is 3G" in error and "start a new run" in error
    run.configure(f'CASES = {{"toy:pytorch:X1:1:1:9": "{run.folder}/data"}}\n')
    assert run.main("resume") == 2
    error = capsys.readouterr().err
    assert (
        f"a case of the run = '{CASE}': is not a case of test_conf.py" in error
        and "command line" not in error
    )
    run.configure()
    run.tree.write("acme/new_file.py", "")
    assert run.main("resume") == 2
    assert "the code that hosts get is not that" in capsys.readouterr().err
    (run.tree.training / "acme" / "new_file.py").unlink()
    assert run.main("stop") == 0


def test_two_controllers_on_one_run_are_refused(run: WholeRun, capsys: Capture) -> None:
    run.behave("hang")
    killed_after(run, "train")
    with subprocess.Popen(
        run.command("resume"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout and any("step 1" in line for line in process.stdout)
        assert run.main("resume") == 2
        assert "another process has locked it" in capsys.readouterr().err
        assert run.main("stop") == 0
        assert process.wait() == 130
