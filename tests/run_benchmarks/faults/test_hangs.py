"""Rank stopped (SIGSTOP) so that its peers hang: real ranks of PyTorch that meet in gloo, on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.names import Node
from run_benchmarks.runtimes.base import Mount
from run_benchmarks.stages.hang import keep_stacks
from run_benchmarks.transports.base import Transport
from tests.ports import reserved_port
from tests.run_benchmarks.builders import make_nodes
from tests.run_benchmarks.faults.pairs import made_in_rank
from tests.run_benchmarks.faults.seen import Seen, fault
from tests.run_benchmarks.plan.tree import VENDOR, copy_code
from tests.run_benchmarks.runtimes.conftest import TRAINING, Bench, bench_of
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from utils.errors import FlagPerfError
from utils.stacks import STACKS_FILE, read_stacks, record_name

# Rank 1 stops itself: what it is doing then is the same each time.
SCRIPT = """\
import os, signal, time
from datetime import timedelta

import torch
import torch.distributed as dist

from utils.events import Event, EventName, format_line
from benchmarks.driver.pytorch.flight_recorder import answer_with_record
from utils.stacks import answer_with_stacks

rank = int(os.environ["RANK"])
answer_with_stacks()
answer_with_record(rank)


def log(name, **value):
    if rank == 0:
        print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


def train(step):
    if step == 3 and rank == 1:
        print(f"the fault is made at {time.time()}", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(torch.ones(1))
    log(EventName.STEP_END, global_steps=step, loss=1.0)


torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="env://", timeout=timedelta(minutes=5))
log(EventName.INIT_START)
log(EventName.TRAIN_START)
for step in range(1, 100):
    train(step)
"""

# A rank without a framework; the second one stops itself.
IDLE = """\
import os, signal, time
from utils.stacks import answer_with_stacks

def waits():
    print("ready", flush=True)
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)

answer_with_stacks()
waits()
"""


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Bench]:
    yield from bench_of("docker", tmp_path)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Bench]:
    yield from bench_of("process", tmp_path)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WholeRun:
    with reserved_port() as port:
        run = make_whole_run(tmp_path, port, monkeypatch)
    run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", SCRIPT)
    run.tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "")
    shutil.rmtree(run.tree.training / "benchmarks" / "driver")
    copy_code(TRAINING / "benchmarks" / "driver", run.tree.training / "benchmarks" / "driver")
    run.tree.write("acme/vendor.py", VENDOR.replace('["acme-list"]', r'["printf", r"Acme X1\nAcme X1\n"]'))
    return run


@fault("stopped")
def test_a_rank_that_is_stopped_is_named_and_the_round_ends(run: WholeRun, seen: Seen) -> None:
    run.configure(f'CASES = {{"toy:pytorch:X1:1:2:1": "{run.folder}/data"}}\nHANG_TIMEOUT = 3\n')
    assert run.main() == 1

    made_in_rank(seen, run.result)
    seen.run(run.result)
    (result,) = run.summary["rounds"]
    failure: dict[str, Any] = result["failure"]
    assert (result["verdict"], failure["stage"], failure["class"]) == ("FAILED", "train", "collective_hang")
    assert failure["host"] == "localhost"
    assert "rank 1 on localhost is stopped" in failure["message"]
    assert "STEP_END, step 2" in failure["message"]
    assert "longer than HANG_TIMEOUT = 3 s in test_conf.py" in failure["message"]
    assert "train (" in failure["evidence"]
    stacks = run.result / failure["file"]
    assert stacks.name == STACKS_FILE
    by_rank = {state.rank: (state, lines) for state, lines in read_stacks(stacks.read_text())}
    assert by_rank[1][0].state == "T"
    assert any("all_reduce" in line for line in by_rank[0][1])
    assert any("train" in line and "all_reduce" not in line for line in by_rank[1][1])
    record = json.loads((stacks.parent / record_name(0)).read_text())
    assert record["pg_status"]["0"]["last_enqueued_collective"] == "3"
    assert not (stacks.parent / record_name(1)).exists()  # who is stopped has not been asked
    assert run.units_left() == []
    assert not list(run.host.glob("runs/*"))


def test_the_stacks_of_ranks_in_a_container_are_taken(containers: Bench, tmp_path: Path) -> None:
    """Confined as a task is: py-spy would need no capability there, and faulthandler needs neither."""
    engine, image = containers.engine, os.environ.get("FLAGPERF_TEST_BASE_IMAGE") or "flagperf-base:bookworm"
    if subprocess.run([*engine, "image", "inspect", image], capture_output=True, check=False).returncode:
        pytest.skip(f"{engine[0]} has no image {image}")
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o777)
    logs.chmod(0o777)
    mounts = (Mount(str(TRAINING), "/training"), Mount(str(logs), "/logs", read_only=False))
    where = "--nnodes 1 --node-rank 0 --nproc 2 --master-addr h --master-port 1 --log-dir /logs"
    ranks = f'cd /training && exec python3 -m utils.node {where} -- python3 -u -c "$1"'
    unit = containers.unit(ranks, IDLE, image=image, mounts=mounts, capabilities=("DAC_OVERRIDE", "SYS_NICE"))
    nodes = make_nodes(["here"])

    async def scenario(transport: Transport) -> dict[Node, FlagPerfError]:
        await containers.runtime.start(transport, unit)
        while sum("ready" in log.read_text() for log in logs.glob("rank*.out.log")) < 2:
            await asyncio.sleep(0.05)
        while True:  # until it has come to a stop
            errors = await keep_stacks(
                containers.runtime, {"here": transport}, {0: unit.name}, {0: "/logs"}, nodes
            )
            if errors or '"state": "T"' in (logs / STACKS_FILE).read_text():
                return errors

    assert containers.use(scenario) == {}
    (running, _), (stopped, _) = seen = read_stacks((logs / STACKS_FILE).read_text())
    assert (running.rank, stopped.rank, stopped.state) == (0, 1, "T")
    assert all(any("waits" in line for line in lines) for _, lines in seen)


def test_an_engine_says_that_a_task_is_paused(containers: Bench) -> None:
    """Its words are the cause, and the remedy names the command that tells when."""
    unit, nodes, engine = containers.unit("sleep 60"), make_nodes(["here"]), containers.engine[0]

    async def scenario(transport: Transport) -> dict[Node, FlagPerfError]:
        await containers.runtime.start(transport, unit)
        await transport.run((engine, "pause", unit.name))
        return await keep_stacks(containers.runtime, {"here": transport}, {0: unit.name}, {0: "/logs"}, nodes)

    (error,) = containers.use(scenario).values()
    assert "is paused" in error.message
    assert "docker events --since 1h --until 0s --filter event=pause" in error.remedy


def test_a_node_that_cannot_tell_its_stacks_says_why(processes: Bench, tmp_path: Path) -> None:
    nodes = make_nodes(["here"])

    async def scenario(transport: Transport) -> dict[Node, FlagPerfError]:
        return await keep_stacks(
            processes.runtime, {"here": transport}, {0: "gone"}, {0: str(tmp_path)}, nodes
        )

    (error,) = processes.use(scenario).values()
    assert "no process writes to a rank's log" in error.message
