"""The shell that waits on a node for the end of its job."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil

from run_benchmarks.hosts.slurm.last_act import WAIT

PATIENCE_S = 60.0


def child_of(shell: subprocess.Popen[bytes], *but: psutil.Process) -> psutil.Process:
    """What the shell waits with now."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for child in psutil.Process(shell.pid).children():
            if child not in but and child.name() == "sleep":
                return child
        time.sleep(0.01)
    raise AssertionError("it waits with nothing")


def test_nothing_of_it_is_left_whatever_the_signal_hits_first(tmp_path: Path) -> None:
    argv = ["sh", "-c", WAIT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin
        shell.stdin.write(f"echo done; cp /dev/null {tmp_path}/done".encode())
        shell.stdin.close()
        shell.stdin = None
        first = child_of(shell)
        first.terminate()
        second = child_of(shell, first)
        shell.terminate()
        assert shell.communicate(timeout=PATIENCE_S)[0] == b"done\n"
        assert shell.returncode == 0
    assert not psutil.wait_procs([second], timeout=PATIENCE_S)[1]
    assert (tmp_path / "done").exists()
