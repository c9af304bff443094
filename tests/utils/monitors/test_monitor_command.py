"""`python3 -m utils.monitors` as the harness starts it: a process of its own, on the real /proc."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from run_benchmarks.results.telemetry_file import read_telemetry
from tests.utils.monitors.value_log import logged_values
from utils.monitors.__main__ import _stop_on_signals
from utils.monitors.registry import SOURCES

TRAINING = Path(__file__).parents[3] / "training"
PATIENCE_S = 120.0  # it ends what hangs; a busy machine takes its time
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\t\[[A-Z]+\]\t\[\w+\.py,\d+\].+")


def monitors(*arguments: str | Path | float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "utils.monitors", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(TRAINING)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_three_ticks_of_this_machine(tmp_path: Path) -> None:
    process = monitors(
        "--log-dir", tmp_path, "--vendor-dir", TRAINING / "cpu", "--interval", 0.1, "--ticks", 3
    )
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    memory = logged_values(tmp_path / "mem_monitor.log")
    assert 1 <= len(memory) <= 3 and all(0 < (value or 0) < 1 for value in memory)
    assert all(0 <= (value or 0) <= 1 for value in logged_values(tmp_path / "cpu_monitor.log"))
    telemetry = read_telemetry(tmp_path / "telemetry.jsonl")
    assert {info.source for info in telemetry.sources} == SOURCES.keys() - {"accelerators"}
    cores = telemetry.devices("cores")
    assert len(cores) == psutil.cpu_count() and set(cores) == set(map(str, range(len(cores))))
    assert len(telemetry.devices("mem")[""]) == len(memory)
    log = (tmp_path / "monitor.log").read_text().splitlines()
    assert all(LOG_LINE.fullmatch(line) for line in log)
    assert any("no accelerators to sample" in line for line in log)


def test_sources_are_chosen_and_each_has_its_interval(tmp_path: Path) -> None:
    process = monitors("--log-dir", tmp_path, "--sources", "mem=0.05,cpu", "--interval", 0.1, "--ticks", 2)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    sources = read_telemetry(tmp_path / "telemetry.jsonl").sources
    assert {info.source: info.interval_s for info in sources} == {"mem": 0.05, "cpu": 0.1}


@pytest.mark.parametrize("words", ["acme", "cpu=0", "cpu=x", "cpu=", "cpu=inf", "cpu,,mem,rap"])
def test_sources_that_are_none_are_refused(tmp_path: Path, words: str) -> None:
    process = monitors("--log-dir", tmp_path, "--sources", words)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2 and "argument --sources" in errors


def test_where_power_cannot_be_measured_the_log_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    process = monitors("--log-dir", tmp_path / "logs", "--sys", tmp_path, "--interval", 0.05, "--ticks", 2)
    process.communicate(timeout=PATIENCE_S)
    (line,) = (tmp_path / "logs" / "pwr_monitor.log").read_text().splitlines()
    assert re.fullmatch(r"# \S+\tnot measured: no source for the power of the whole machine.*", line)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_everything_on_disk(tmp_path: Path, number: signal.Signals) -> None:
    process = monitors("--log-dir", tmp_path, "--interval", 0.05)
    telemetry = tmp_path / "telemetry.jsonl"
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not (
        telemetry.exists() and telemetry.read_text().count('"mem"') > 2
    ):
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert telemetry.read_text().endswith("}\n")
    samples = len(read_telemetry(telemetry).devices("mem")[""])
    assert f"mem: {samples} samples, 0 failed" in (tmp_path / "monitor.log").read_text()


class OrderedTwice(threading.Event):
    """`timeout` sends a signal to its child and then to the child's group: the second may come while this is set."""

    sets = 0

    def set(self) -> None:
        self.sets += 1
        if self.sets < 3:
            signal.raise_signal(signal.SIGTERM)
        super().set()


def test_a_second_signal_does_not_enter_where_the_first_one_still_is() -> None:
    """An event's lock is not one that its own thread may take again: the monitor hung, and was killed."""
    stop = OrderedTwice()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _stop_on_signals(stop)
        signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (stop.is_set(), stop.sets) == (True, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--log-dir", "/no/such/folder"], "no such folder: /no/such/folder"),
        (["--log-dir", "/tmp", "--vendor-dir", "/no/vendor"], "no such folder: /no/vendor"),
        (["--log-dir", "/tmp", "--interval", "0"], "must be above 0"),
        (["--log-dir", "/tmp", "--interval", "nan"], "must be above 0"),
        (["--log-dir", "/proc/self"], "/proc/self cannot be written to"),
        ([], "--log-dir"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], message: str) -> None:
    process = monitors(*arguments)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert message in errors
