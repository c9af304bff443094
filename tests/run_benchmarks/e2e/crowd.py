"""A case of one rank on each of nine hosts, which is more than get code and image from the controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench
from tests.run_benchmarks.e2e.pair import write_case
from tests.run_benchmarks.e2e.setup import BASE_IMAGE

NODES = 9
HOSTS = [f"h{number}" for number in range(1, NODES + 1)]
CASE = f"crowd:pytorch:T1:{NODES}:1:1"
# Rank 0 steps, the others wait for its end.
SCRIPT = """\
import os, socket, time

from utils.events import Event, EventName, format_line

STEPS = 1
rank = int(os.environ["RANK"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def log(name, **value):
    print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


def connection():
    for _ in range(1200):
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.1)
    raise SystemExit("rank 0 cannot be reached")


if rank:
    assert connection().recv(1) == b"."
    raise SystemExit
server = socket.create_server(("", address[1]), backlog=64)
peers = [server.accept()[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
log(EventName.INIT_START)
begin = time.monotonic()
log(EventName.TRAIN_START, max_steps=STEPS)
for step in range(1, STEPS + 1):
    time.sleep(0.1)
    log(EventName.STEP_END, global_steps=step, loss=1.0, **{"seq/s": 80.0})
log(EventName.TRAIN_END)
took = time.monotonic() - begin
log(EventName.FINISHED, converged=True, num_trained_samples=8 * STEPS, raw_train_time=took, no_eval_time=took,
    pure_compute_time=took, e2e_time=took)
for peer in peers:
    peer.sendall(b".")
"""


def crowded(lab: LabFactory, folder: Path, data: Path) -> tuple[Lab, Bench]:
    """Nine hosts that have no image but the one that the case's is built on, and the run of the case on them."""
    hosts = lab(hosts=NODES, images=[BASE_IMAGE], fresh=True)
    bench = Bench(folder, HOSTS, hosts.env)
    write_crowd(bench, NODES)
    settings: Mapping[str, object] = {"VENDOR": "twin", "CASES": {CASE: str(data)}}
    bench.test(**settings)
    return hosts, bench


def write_crowd(bench: Bench, nnodes: int) -> None:
    """The vendor and the case `crowd:pytorch:T1:<nnodes>:1` in the copy of the tree."""
    bench.second_vendor()
    write_case(bench.training, "twin", f"T1x{nnodes}x1", "crowd", SCRIPT, steps=1)
