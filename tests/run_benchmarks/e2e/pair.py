"""A case in place of training where a test is of what is around it: two ranks that say a word to each other a step.

They import no framework, so that they start in no time, take no core, and need no image but one with Python. Who
waits for a peer that is silent waits as a collective does.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

ENDLESS_STEPS = 10**6
SCRIPT = """\
import os, socket, time

from utils.events import Event, EventName, format_line

STEPS = 1
rank = int(os.environ["RANK"])


def log(name, **value):
    if rank == 0:
        print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


def fault():
    print(f"the fault is made at {time.time()}", flush=True)


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
begin = time.monotonic()
log(EventName.TRAIN_START, max_steps=STEPS)
for step in range(1, STEPS + 1):
    pass  # what else a test wants of each step
    try:
        peer.sendall(f"step {step} of rank {rank}\\n".encode())
        heard = words.readline()
    except OSError as error:
        heard = error
    if heard != f"step {step} of rank {1 - rank}\\n":
        raise SystemExit(f"Connection closed by remote peer: {heard!r}")  # as NCCL says it
    print(heard, end="", flush=True)
    log(EventName.STEP_END, global_steps=step, loss=1.0, **{"seq/s": 80.0})
    if step < STEPS:
        time.sleep(0.1)
log(EventName.TRAIN_END)
took = time.monotonic() - begin
log(EventName.FINISHED, converged=True, num_trained_samples=8 * STEPS, raw_train_time=took, no_eval_time=took,
    pure_compute_time=took, e2e_time=took)
"""


def write_pair(training: Path, vendor: str, chip: str, steps: int = 1, at_step: str = "") -> None:
    """Make the case `pair:pytorch:<chip>:2:1` of `vendor` in a copy of the training tree.

    Args:
        at_step: what a rank does when a step begins; `rank`, `step` and `fault` are there for it.
    """
    script = SCRIPT.replace("STEPS = 1\n", f"STEPS = {steps}\n")
    if at_step:
        more = indent(at_step.rstrip("\n") + "\n", "    ")
        script = script.replace("    pass  # what else a test wants of each step\n", more)
    write_case(training, vendor, f"{chip}x2x1", "pair", script, steps)


def write_case(training: Path, vendor: str, config: str, model: str, script: str, steps: int) -> None:
    """Make a case of a script alone in a copy of the training tree, with one configuration of a vendor."""
    case = training / "benchmarks" / model / "pytorch"
    base = f"target_accuracy = 0.5\nmax_steps = {steps}\ntrain_batch_size = 8\n"
    files = {
        case / "__init__.py": "",
        case / "run_pretraining.py": script,
        case / "config" / "_base.py": base,
        case / "config" / "mutable_params.py": "mutable_params = []\n",
        training / vendor / f"{model}-pytorch" / "config" / f"config_{config}.py": "",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
