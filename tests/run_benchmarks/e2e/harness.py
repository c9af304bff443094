"""Runs `run.py` as a user does: a config folder, a subprocess, and the result tree it leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.setup import BASE_IMAGE, TRAINING

# The hosts share this machine's cores, and other tests do: threads that wait for each other cost ten times as much.
ALONE = {"cpu_threads": 1, "log_freq": 5}
# Real BERT at the demo's size, for some seconds only; the target lies just above an untrained model's accuracy.
QUICK = {**ALONE, "target": 0.02, "max_steps": 400, "warmup_steps": 10, "eval_interval_samples": 640}
# Never done: something else has to end it.
ENDLESS = {**ALONE, "target": 0.99, "max_steps": 10_000_000, "decay_steps": 10_000_000}
PATIENCE_S = 900.0
# A vendor whose chip is the host's processor under another name, with a peak of its own.
TWIN = """\
DEVICE_TYPE = "cpu"
VISIBLE_DEVICES_ENV = "TWIN_VISIBLE_DEVICES"
COLLECTIVE_BACKEND = {"pytorch": "gloo"}
CHIPS = {"T1": {"device_names": ["twin"], "memory_gib": None, "peak_flops": {"fp32": 1e12, "bf16": 1e12},
                "source": "made up for a test"}}
LIST_DEVICES_COMMAND = ["nproc"]


def parse_device_list(stdout):
    return [f"twin {number}" for number in range(int(stdout))]
"""


@dataclass(frozen=True)
class Ended:
    """A run that has ended, and what it left."""

    code: int
    output: str
    folder: Path | None

    @property
    def summary(self) -> dict[str, Any]:
        """`summary.json`."""
        assert self.folder is not None, self.output
        loaded: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return loaded

    def rounds(self) -> list[dict[str, Any]]:
        """The rounds' results, in the order in which they ran."""
        return list(self.summary["rounds"])

    def uid(self) -> str:
        """What the run's units were labelled with."""
        return str(self.summary["uid"])


class Bench:
    """A copy of the training tree with configs of its own, and a config folder; runs of it are subprocesses."""

    def __init__(self, folder: Path, hosts: Sequence[str], env: Mapping[str, str]) -> None:
        self.folder = folder
        self.env = {**os.environ, **env}
        self.training = folder / "training"
        ignored = shutil.ignore_patterns("result", ".flagperf", "__pycache__")
        shutil.copytree(TRAINING, self.training, ignore=ignored)
        self.config = folder / "config"
        self.config.mkdir()
        self.cluster(HOSTS=list(hosts))

    def cluster(self, **settings: object) -> None:
        """Write `cluster_conf.py`."""
        self._write("cluster_conf.py", settings)

    def test(self, **settings: object) -> None:
        """Write `test_conf.py`, with what every test needs under `settings`."""
        common: dict[str, object] = {
            "VENDOR": "cpu",
            "FLAGPERF_PATH_HOST": "/var/lib/flagperf-test",
            "FLAGPERF_PATH_CONTAINER": "/workspace/flagperf",
            "FLAGPERF_LOG_PATH_HOST": str(self.folder / "result"),
            "FLAGPERF_LOG_PATH_CONTAINER": "/workspace/flagperf/result",
            "SHM_SIZE": "1G",
            "MIN_FREE_DISK_GIB": 1,
            "RETRIES": 0,  # what a fault comes to is seen at the first attempt
            "IMAGE_BUILD_ARGS": {"BASE_IMAGE": BASE_IMAGE},
        }
        self._write("test_conf.py", {**common, **settings})

    def _write(self, name: str, settings: Mapping[str, object]) -> None:
        text = "".join(f"{key} = {value!r}\n" for key, value in settings.items())
        (self.config / name).write_text(text)

    def vendor_config(self, chip_by_node: str, settings: Mapping[str, object]) -> None:
        """Write `config_<chip>x<nnodes>x<nproc>.py` into the copy of the tree."""
        lines = [f"{key} = {value!r}\n" for key, value in settings.items()]
        path = self.training / "cpu" / "bert-pytorch" / "config" / f"config_{chip_by_node}.py"
        path.write_text("from config_common import *\n" + "train_batch_size = 32\n" + "".join(lines))

    def second_vendor(self) -> Path:
        """Make `twin` in the copy of the tree, a folder of its own; its image is any base image."""
        twin = self.training / "twin"
        image = twin / "docker_image" / "pytorch"
        image.mkdir(parents=True)
        (twin / "vendor.py").write_text(TWIN)
        (image / "Dockerfile").write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nLABEL vendor=twin\n")
        return twin

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `run.py` in the copy's training folder, as the documentation says."""
        command = [sys.executable, "run_benchmarks/run.py", "--config", str(self.config), *arguments]
        return subprocess.Popen(
            command,
            cwd=self.training,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> Ended:
        """Run `run.py` to its end."""
        return self.ended(self.start(*arguments))

    def ended(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for the end of a run."""
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=90)
            raise AssertionError(f"the run did not end by itself:\n{output[-6000:]}") from None
        return Ended(process.returncode, output, self._newest_run())

    def _newest_run(self) -> Path | None:
        runs = sorted((self.folder / "result").glob("run*"), key=lambda path: path.stat().st_mtime_ns)
        return runs[-1] if runs else None

    def wait_for_log(self, process: subprocess.Popen[str], text: str) -> Path:
        """Wait until `text` stands in the newest run's log; the run's folder."""

        def found() -> Path | None:
            run = self._newest_run()
            log = run / "flagperf_run.log" if run else None
            return run if log and log.is_file() and text in log.read_text() else None

        return wait_until(found, lambda: process.poll() is None, f"{text!r} in the run's log")


def wait_until(found: Callable[[], Any], alive: Callable[[], bool], what: str) -> Any:
    """The first true value of `found`."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        assert alive(), f"the run ended before there was {what}"
        time.sleep(0.2)
    raise AssertionError(f"there was no {what} after {PATIENCE_S:g} s")


@contextmanager
def ending(bench: Bench, process: subprocess.Popen[str]) -> Iterator[None]:
    """End `process` in order where a test fails while it runs."""
    try:
        yield
    except BaseException:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=90)
        print(output[-6000:])
        raise


def containers(lab: Lab, host: int) -> str:
    """FlagPerf's containers on a lab host, whatever their state."""
    listed = lab.ssh(
        host, "docker", "ps", "--all", "--filter", "label=flagperf.run", "--format", "{{.Names}}"
    )
    return listed.stdout.strip()


def run_folder(lab: Lab, host: int, uid: str) -> str:
    """What a run has left in FlagPerf's work folder on a lab host."""
    folder = "/var/lib/flagperf-test/.flagperf/runs"
    return lab.ssh(host, "find", folder, "-mindepth", "1", "-path", f"*{uid}*").stdout.strip()
