"""What the end-to-end tests need once: the cpu image on this machine, and a small data set of real text."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from run_benchmarks.images import open_image_store
from run_benchmarks.images.build import BuildSite, build_name
from run_benchmarks.images.layers import plan_image
from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.records import Plan
from run_benchmarks.stages.image import ImageStage
from run_benchmarks.transports.local import LocalTransport

CHECKOUT = Path(__file__).resolve().parents[3]
TRAINING = CHECKOUT / "training"
BASE_IMAGE = os.environ.get("FLAGPERF_TEST_BASE_IMAGE") or "flagperf-base:bookworm"
# Outside /tmp, which the lab's hosts have of their own; its name holds the parameters it was made with.
DATA_ROOT = Path("/var/tmp/flagperf-test-data")
LINES_OF_TEXT = 4000
PREPARE = ("--seq-length", "64", "--max-predictions", "10", "--dup", "1", "--eval-samples", "128")
MORE = ("--shards", "2", "--parts-per-file", "2", "--vocab-size", "1000", "--eval-every", "8")


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """What is kept for all workers is made by one while the others wait."""
    DATA_ROOT.mkdir(parents=True, exist_ok=True)
    with (DATA_ROOT / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_data() -> Path:
    """A data set in the documented layout, by the real preparation; kept between test sessions."""
    corpus = TRAINING / "benchmarks" / "bert" / "demo_data" / "kjv.txt.xz"
    with lzma.open(corpus, "rt", encoding="utf-8") as lines:
        text = "".join(islice(lines, LINES_OF_TEXT))
    name = hashlib.sha256(f"{text}{PREPARE}{MORE}".encode()).hexdigest()[:12]
    out = DATA_ROOT / name
    with one_at_a_time(name):
        if (out / "manifest.json").is_file():
            return out
        source = DATA_ROOT / f"{name}.txt"
        source.write_text(text, encoding="utf-8")
        command = (sys.executable, "-m", "benchmarks.bert.prepare", "--text", str(source), "--out", str(out))
        subprocess.run([*command, *PREPARE, *MORE], cwd=TRAINING, check=True, capture_output=True, text=True)
    return out


def demo_data(model: str) -> Path:
    """The demo's data, by the real preparation; kept between test sessions while what makes them is the same."""
    folders = (TRAINING / "benchmarks" / model, TRAINING / "benchmarks" / "common")
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".xz"))
    makers = (path for path in files if "pytorch" not in path.parts)  # what trains on them does not make them
    made_by = hashlib.sha256(b"".join(path.read_bytes() for path in makers)).hexdigest()
    out = DATA_ROOT / f"{model}_demo_{made_by[:12]}"
    with one_at_a_time(out.name):
        if (out / "manifest.json").is_file():
            return out
        command = (sys.executable, "-m", f"benchmarks.{model}.prepare", "--demo", "--out", str(out))
        subprocess.run(command, cwd=TRAINING, check=True, capture_output=True, text=True)
    return out


def make_image(plan: Plan, log_dir: Path) -> str:
    """The image of the plan's first case on this machine's own engine, built by the harness itself."""
    image, work = plan_image(plan, plan.cases[0]), log_dir / "work"
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    site = BuildSite(
        str(plan.training_dir),
        str(work),
        "run-test",
        build_name("test", "localhost", image.tag),
        True,
    )
    hosts = {"localhost": LocalTransport("localhost")}
    store = open_image_store(plan.run)
    assert store is not None
    stage = ImageStage(store, hosts, {"localhost": site}, image, plan.run.pip, "build", log_dir)
    with one_at_a_time("image"):
        asyncio.run(stage.run())
    return image.tag


def machine_plan(config_dir: Path, data: Path, case: str = "bert:pytorch:cpu:1:2:1") -> Plan:
    """A plan for this machine alone, as a user's two files would give it."""
    config_dir.mkdir(parents=True, exist_ok=True)
    (config_dir / "cluster_conf.py").write_text('HOSTS = ["localhost"]\n')
    lines = [
        'VENDOR = "cpu"',
        f'CASES = {{"{case}": "{data}"}}',
        f'FLAGPERF_PATH = "{config_dir}/host"',
        f'FLAGPERF_LOG_PATH = "{config_dir}/result"',
        f'IMAGE_BUILD_ARGS = {{"BASE_IMAGE": "{BASE_IMAGE}"}}',
        "PIP_FROM_HOST = True",
    ]
    (config_dir / "test_conf.py").write_text("\n".join(lines) + "\n")
    return load_plan(config_dir, TRAINING)
