"""A run whose metrics a real Prometheus scrapes: real processes beside a FAKE chip, until they may end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.metrics.definitions import DEVICE_METRICS
from tests.ports import free_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from tests.search_log import lines_of_search, two_trials

OBSERVABILITY = Path(__file__).resolve().parents[3] / "docs" / "observability"
OPERATIONS, TRAINING = "ops:pytorch:X1:1:1:1", "toy:pytorch:X1:1:1:2"
WAIT_S = 120.0
HEAD = """\
import sys, time
from pathlib import Path

from utils.events import Event, EventName, format_line

data, begin = Path(sys.argv[sys.argv.index("--data_dir") + 1]), time.monotonic()


def log(name, **value):
    print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


def finish(**value):
    log(EventName.TRAIN_END)
    seconds = time.monotonic() - begin
    times = dict.fromkeys(("raw_train_time", "no_eval_time", "pure_compute_time", "e2e_time"), seconds)
    log(EventName.FINISHED, **times, **value)


"""
# It reports a step ten times a second until there is a file `go`; the second one fails.
SCRIPT = f"""{HEAD}
is_second = (data / "begun").exists()
(data / "begun").touch()
log(EventName.INIT_START, config={{"target": 0.5, "max_steps": 100000}})
log(EventName.INIT_EVALUATION, metric="accuracy", accuracy=0.1)
log(EventName.TRAIN_START)
log(EventName.EVALUATE, metric="accuracy", accuracy=0.3, target=0.5)
step = 0
while not (data / ("go again" if is_second else "go")).exists():
    step += 1
    log(EventName.STEP_END, global_steps=step, loss=2.0 / step, num_trained_samples=8 * step, **{{"seq/s": 80.0}})
    time.sleep(0.1)
if is_second:
    raise SystemExit("the toy breaks")
log(EventName.EVALUATE, metric="accuracy", accuracy=0.6, target=0.5)
finish(converged=True, num_trained_samples=8 * step)
"""
# It measures, and says what a search's controller would say, until there is a file `measured`.
MEASUREMENT = f"""{HEAD}
log(EventName.INIT_START)
log(EventName.TRAIN_START)
print(*{lines_of_search(two_trials()[:10], finished=False)!r}, sep=chr(10), flush=True)
log(EventName.STEP_END, global_steps=1, max_steps=2, metric="fp32", fp32=1e12, unit="FLOP/s")
while not (data / "measured").exists():
    time.sleep(0.1)
rate = {{"value": 1e12, "unit": "FLOP/s", "better": "higher", "definition": "a toy's", "window": "all"}}
finish(figures={{"fp32": rate}})
"""
# FAKE of a chip: what its library would tell, every quantity that there is.
CHIP = """\
from utils.telemetry.quantities import QUANTITIES
from utils.telemetry.records import Sample


class Devices:
    note = "a fake"

    def sample(self, time_ms):
        readings = {each.name: 50.0 for each in QUANTITIES}
        return [Sample(time_ms, "acme", device, throttle="thermal", **readings) for device in ("0", "1")]

    def close(self):
        pass


def open_devices():
    return Devices()
"""


class Watched:
    """The run, its controller if there is one, and the Prometheus that watches it.

    text: a scrape that was kept. begun: when it was made, in s since the epoch.
    """

    def __init__(self, run: WholeRun, port: int, prometheus: str) -> None:
        self.run, self.port, self.prometheus = run, port, prometheus
        self.text, self.begun = b"", time.time()
        self.controller: subprocess.Popen[bytes] | None = None

    def start(self, *verb: str) -> None:
        """Start the controller, which goes on beside the test."""
        with (self.run.folder / "controller.log").open("ab") as log:
            command = self.run.command(*verb)
            self.controller = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def end(self) -> int:
        """The exit code of the controller, which ends by itself."""
        assert self.controller is not None
        return self.controller.wait(WAIT_S)

    def kill(self) -> None:
        """End the controller as a power cut would."""
        assert self.controller is not None
        self.controller.kill()
        self.controller.wait()

    def let(self, name: str) -> None:
        """Let what waits for a file of this name go on."""
        (self.run.folder / "data" / name).touch()

    def scrape(self) -> None:
        """Keep what the run says now, as `text`."""
        self.text = _read(f"http://127.0.0.1:{self.port}/metrics")

    def ask(self, path: str, **parameters: str) -> Any:
        """What Prometheus answers."""
        query = urllib.parse.urlencode(parameters)
        return json.loads(_read(f"{self.prometheus}/api/v1/{path}?{query}"))["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What an expression gives now: series with their labels and values."""
        series: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return series

    def until(self, expression: str) -> list[dict[str, Any]]:
        """The same, once it gives anything."""
        return waited_for(lambda: self.query(expression), expression)


def waited_for(look: Callable[[], Any], what: str) -> Any:
    """What a look gives, once that is something."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            if seen := look():
                return seen
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"nothing came of it within {WAIT_S:g} s: {what}")


@contextmanager
def watched_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """A run that has not begun, and a Prometheus with the files of docs/observability that waits for it."""
    port, own_port = free_port(), free_port()
    run = make_whole_run(folder, free_port(), monkeypatch)
    run.tree.write("acme/acme_monitor.py", CHIP)
    for case, script in (("toy", SCRIPT), ("ops", MEASUREMENT)):
        run.tree.write(f"benchmarks/{case}/pytorch/run_pretraining.py", script)
        run.tree.write(f"acme/{case}-pytorch/config/config_X1x1x1.py", "")
    run.tree.write("benchmarks/ops/pytorch/config/_base.py", 'case_kind = "measure"\n')
    cases = {OPERATIONS: f"{folder}/data", TRAINING: f"{folder}/data"}
    run.configure(f"CASES = {cases!r}\nMETRICS_PORT = {port}\nMONITOR_INTERVAL = 0.5\n")
    with prometheus(folder, port, own_port) as address:
        watched = Watched(run, port, address)
        try:
            yield watched
        finally:
            for name in ("measured", "go", "go again"):
                watched.let(name)
            if watched.controller is not None and watched.controller.poll() is None:
                watched.controller.send_signal(signal.SIGTERM)
                watched.controller.wait(WAIT_S)


@contextmanager
def prometheus(folder: Path, target: int, port: int) -> Iterator[str]:
    """The address of a Prometheus with our files, but that it scrapes this port, and more often."""
    own = folder / "prometheus"
    own.mkdir()
    shutil.copy(OBSERVABILITY / "alerts.yml", own)
    text = (OBSERVABILITY / "prometheus.yml").read_text()
    assert "127.0.0.1:9435" in text and "interval: 5s" in text
    config = own / "prometheus.yml"
    config.write_text(
        text.replace("127.0.0.1:9435", f"127.0.0.1:{target}").replace("interval: 5s", "interval: 1s")
    )
    argv = [
        f"--config.file={config}",
        f"--storage.tsdb.path={own / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (own / "log").open("wb") as log:
        process = subprocess.Popen([program("prometheus"), *argv], stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        waited_for(lambda: _read(f"{address}/-/ready"), "prometheus")
        yield address
    finally:
        process.terminate()
        process.wait(WAIT_S)


def _read(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - it is our own
        content: bytes = answer.read()
        return content


def program(name: str) -> str:
    """Where Debian's package has put a program; where there is none the test is skipped, and fails where CI is set."""
    path = shutil.which(name)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            f"there is no {name}: apt-get install prometheus"
        )
    return path


def device_metrics() -> set[str]:
    """The names of all that is told of a device."""
    return {each.definition.sample for each in DEVICE_METRICS}
