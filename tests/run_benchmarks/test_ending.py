"""How a run is ended from outside: by signals, and by its terminal; the real program, in a process of its own."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.live_files import live_files
from tests.ports import reserved_port
from tests.run_benchmarks.faults.seen import Seen, fault
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run

PATIENCE_S = 120.0
pytestmark = pytest.mark.usefixtures("hangup_is_heeded")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:  # nobody can listen on this port meanwhile
        run = make_whole_run(tmp_path, port, monkeypatch)
        run.behave("hang")
        yield run


@pytest.fixture
def start(run: WholeRun) -> Iterator[Callable[..., Program]]:
    """Start the program; what a test that failed leaves of it is ended."""
    programs: list[Program] = []

    def start(*before: str, terminal: int | None = None) -> Program:
        programs.append(Program(run, *before, terminal=terminal))
        programs[-1].wait_until_it_trains()
        return programs[-1]

    yield start
    for program in programs:
        program.process.terminate()
        program.ended()


class Program:
    """A run of the program; `before` are the words of a command that starts it, `terminal` is a file descriptor."""

    def __init__(self, run: WholeRun, *before: str, terminal: int | None = None) -> None:
        self.run = run
        with (run.folder / "output").open("wb") as output:
            streams = output if terminal is None else terminal
            self.process = subprocess.Popen(
                [*before, *run.command()],
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=streams,
                stderr=streams,
                start_new_session=terminal is None,  # `setsid` sees to it otherwise
            )

    def wait_until_it_trains(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not live_files(self.run.host, "runs/*/*/*/round1/*/rank0.out.log"):
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)

    @property
    def output(self) -> str:
        return (self.run.folder / "output").read_text()

    def ended(self) -> int:
        return self.process.wait(PATIENCE_S)


def assert_left_in_order(run: WholeRun) -> None:
    (result,) = run.summary["rounds"]
    assert result["verdict"] == "INTERRUPTED"
    assert run.summary["exit_code"] == 130
    assert json.loads((run.result / "journal.jsonl").read_text().splitlines()[-1])["event"] == "run_ended"
    assert run.units_left() == []
    assert not list(run.host.glob("runs/*"))
    # what there was is brought home all the same
    assert (run.result / result["case"] / "round1" / "localhost_noderank0" / "rank0.out.log").is_file()


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", [pytest.param(each, marks=fault(each.name.lower())) for each in SIGNALS])
def test_a_signal_ends_the_run_in_order(
    number: signal.Signals, run: WholeRun, start: Callable[..., Program], seen: Seen
) -> None:
    program = start()
    program.process.send_signal(number)
    seen.made()
    assert program.ended() == 130, program.output
    seen.run(run.result)
    assert f"interrupted by {number.name}" in program.output
    assert_left_in_order(run)


def test_rounds_that_were_not_begun_are_named(run: WholeRun, start: Callable[..., Program]) -> None:
    case = "toy:pytorch:X1:1:1:3"
    run.configure(f'CASES = {{"{case}": "{run.folder}/data"}}\n')
    program = start()
    program.process.send_signal(signal.SIGTERM)
    assert program.ended() == 130, program.output
    note = f"{case}: not begun: round 2, 3"
    assert run.summary["notes"] == ["the run was ended by SIGTERM", note]
    (log_end,) = [line for line in program.output.splitlines() if "exit code 130" in line]
    assert "130: interrupted; 1 of 3 rounds did not succeed" in log_end
    assert log_end.endswith("; 2 of 3 rounds were not run")
    assert f"- {note}\n" in (run.result / "summary.md").read_text()


def test_a_run_that_ignores_the_loss_of_its_terminal_goes_on(start: Callable[..., Program]) -> None:
    program = start("nohup")
    status = Path(f"/proc/{program.process.pid}/status").read_text()
    (ignored,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn:"))
    assert ignored & 1 << (signal.SIGHUP - 1), "still so while it trains"
    program.process.send_signal(signal.SIGHUP)
    program.process.send_signal(signal.SIGTERM)
    assert program.ended() == 130
    assert "SIGHUP" not in program.output
    assert "interrupted by SIGTERM" in program.output


@pytest.mark.parametrize(
    "before", [(), ("sh", "-c", 'trap "" HUP; exec "$@"', "sh")], ids=["hung up", "ignored"]
)
def test_a_terminal_that_is_closed(
    before: Sequence[str], run: WholeRun, start: Callable[..., Program]
) -> None:
    """Its kernel says SIGHUP to what runs in it, and every write to it fails from then on."""
    controlling, terminal = pty.openpty()
    # `setsid --ctty` makes the pseudo-terminal the controlling one, as a login does
    program = start("setsid", "--ctty", *before, terminal=terminal)
    os.close(terminal)
    os.close(controlling)
    if before:
        program.process.send_signal(signal.SIGTERM)
    assert program.ended() == 130
    assert_left_in_order(run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("module", ["run_benchmarks.plan.load", "run_benchmarks.stages.deploy"])
def test_a_signal_before_the_run_has_a_folder_is_said_in_a_sentence(
    module: str, number: signal.Signals, run: WholeRun
) -> None:
    """While the program loads what it needs: its own import is where the signal comes."""
    done = run_with(run, f"imported({module!r}, {int(number)})")
    assert (done.returncode, done.stderr) == (130, f"interrupted by {number.name}\n")
    assert not (run.folder / "result").exists()


def test_a_signal_while_a_class_is_made_is_said_in_a_sentence(run: WholeRun) -> None:
    done = run_with(run, f"class_made({int(signal.SIGHUP)})")
    assert (done.returncode, done.stderr) == (130, "interrupted by SIGHUP\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_the_folder_and_the_first_host_is_told_in_the_summary(
    number: signal.Signals, run: WholeRun
) -> None:
    done = run_with(run, f"packed({int(number)})")
    assert done.returncode == 130, done.stderr
    assert f"interrupted by {number.name}" in done.stderr and "Traceback" not in done.stderr
    assert run.summary["exit_code"] == 130 and run.summary["rounds"] == []
    assert json.loads((run.result / "journal.jsonl").read_text().splitlines()[-1])["event"] == "run_ended"
    assert not run.host.exists()


# A signal at a moment that no clock can hit: when a module is loaded, or when the tree has been packed.
MOMENTS = """\
import importlib.abc, os, sys

def imported(name, number):
    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname, path=None, target=None):
            if fullname == name:
                os.kill(os.getpid(), number)
    sys.meta_path.insert(0, Finder())

def class_made(number):
    class Named:
        def __set_name__(self, owner, name):
            os.kill(os.getpid(), number)
    from run_benchmarks import verbs
    def main(words):
        class Owner:
            named = Named()
    verbs.main = main

def packed(number):
    from run_benchmarks import session
    real = session.tree_of
    def tree_of(plan):
        os.kill(os.getpid(), number)
        return real(plan)
    session.tree_of = tree_of

"""


def run_with(run: WholeRun, moment: str) -> subprocess.CompletedProcess[str]:
    command = run.command()
    place = command.index("-c") + 1
    command[place] = f"{MOMENTS}{moment}\n{command[place]}"
    return subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=PATIENCE_S
    )
