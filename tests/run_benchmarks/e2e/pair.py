"""A case in place of training where a test is of what is around it: two ranks that say a word to each other a step.

They import no framework, so that they start in no time, take no core, and need no image but one with Python. Who
waits for a peer that is silent waits as a collective does.
"""

from __future__ import annotations

from pathlib import Path

ENDLESS_STEPS = 10**6
SCRIPT = """\
import os, socket, time

from utils.events import Event, EventName, format_line

STEPS = 1
rank = int(os.environ["RANK"])


def log(name, **value):
    if rank == 0:
        print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


def connection():
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        return socket.create_server(("", address[1])).accept()[0]
    for _ in range(600):
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.1)
    raise SystemExit("rank 0 cannot be reached")


peer = connection()
words = peer.makefile()
log(EventName.INIT_START)
log(EventName.TRAIN_START, max_steps=STEPS)
for step in range(1, STEPS + 1):
    peer.sendall(f"step {step} of rank {rank}\\n".encode())
    heard = words.readline()
    if heard != f"step {step} of rank {1 - rank}\\n":
        raise SystemExit(f"the peer is gone: {heard!r}")
    print(heard, end="", flush=True)
    log(EventName.STEP_END, global_steps=step, loss=1.0, **{"seq/s": 80.0})
    if step < STEPS:
        time.sleep(0.1)
log(EventName.TRAIN_END)
log(EventName.FINISHED, converged=True, num_trained_samples=8 * STEPS, raw_train_time=0.05 * STEPS,
    no_eval_time=0.04 * STEPS, pure_compute_time=0.03 * STEPS, e2e_time=0.1 * STEPS)
"""


def write_pair(training: Path, vendor: str, chip: str, steps: int = 1) -> None:
    """Make the case `pair:pytorch:<chip>:2:1` of `vendor` in a copy of the training tree."""
    case = training / "benchmarks" / "pair" / "pytorch"
    base = f"target_accuracy = 0.5\nmax_steps = {steps}\ntrain_batch_size = 8\n"
    files = {
        case / "__init__.py": "",
        case / "run_pretraining.py": SCRIPT.replace("STEPS = 1\n", f"STEPS = {steps}\n"),
        case / "config" / "_base.py": base,
        case / "config" / "mutable_params.py": "mutable_params = []\n",
        training / vendor / "pair-pytorch" / "config" / f"config_{chip}x2x1.py": "",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
