"""The controller is killed, or told to end, at each stage of a round on two hosts."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.run_benchmarks.e2e.harness import ending
from tests.run_benchmarks.faults.pairs import TRAINING_GOES_ON, Pair, stages_in
from tests.run_benchmarks.faults.rows import STAGES
from tests.run_benchmarks.faults.seen import Seen, fault

STEPS = 60
# The program gets a signal right after its journal has the stage.
AT_STAGE = """\
import os, runpy, sys
sys.path.insert(0, ".")
from run_benchmarks.journal import Journal
write = Journal.write

def write_and_signal(self, event, **facts):
    write(self, event, **facts)
    if facts.get("stage") == {stage!r}:
        os.kill(os.getpid(), {number})

Journal.write = write_and_signal
sys.argv[0] = "run_benchmarks/run.py"
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def signalled_at(pair: Pair, stage: str, number: signal.Signals) -> subprocess.Popen[str]:
    """A run that gets a signal when it comes to a stage."""
    code = AT_STAGE.format(stage=stage, number=int(number))
    return subprocess.Popen(
        [sys.executable, "-c", code, "--config", str(pair.bench.config)],
        cwd=pair.bench.training,
        env=pair.bench.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("stage", [pytest.param(stage, marks=fault(f"dead-{stage}")) for stage in STAGES])
def test_a_run_whose_controller_was_killed_is_resumed(stage: str, pair: Pair, seen: Seen) -> None:
    pair.configure(STEPS)
    killed = pair.bench.ended(signalled_at(pair, stage, signal.SIGKILL))
    assert killed.code == -signal.SIGKILL, killed.output
    seen.made()
    ended = pair.bench.run("resume")

    seen.run(ended.folder)
    pair.assert_whole(ended, STEPS)


@pytest.mark.parametrize("stage", [pytest.param(stage, marks=fault(f"ctrl-c-{stage}")) for stage in STAGES])
def test_ctrl_c_ends_a_run_in_order(stage: str, pair: Pair, seen: Seen) -> None:
    """What has been measured by then stays measured."""
    pair.configure(STEPS)
    ended = pair.bench.ended(signalled_at(pair, stage, signal.SIGINT))

    assert ended.folder is not None, ended.output
    seen.made(stages_in(ended.folder / "journal.jsonl")[stage])
    seen.run(ended.folder)
    assert ended.code == 130, ended.output
    pair.assert_in_order(ended)


@pytest.mark.parametrize(
    "signals",
    [
        pytest.param((signal.SIGTERM, signal.SIGTERM), marks=fault("sigterm-twice")),
        pytest.param((signal.SIGHUP,), marks=fault("sighup-hosts")),
    ],
)
@pytest.mark.usefixtures("hangup_is_heeded")
def test_signals_end_a_run_in_order(signals: tuple[signal.Signals, ...], pair: Pair, seen: Seen) -> None:
    pair.configure(10**6)
    process = pair.bench.start()
    with ending(pair.bench, process):
        pair.bench.wait_for_log(process, TRAINING_GOES_ON)
        seen.made()
        for number in signals:
            process.send_signal(number)
            time.sleep(0.5)
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    assert ended.code == 130, ended.output
    pair.assert_in_order(ended)
