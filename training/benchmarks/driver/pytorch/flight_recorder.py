"""PyTorch's flight recorder: what the collectives of this rank have come to, written down when somebody asks for it.

PyTorch itself writes it where NCCL's watchdog runs out of time, and else never.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from pathlib import Path

from utils.stacks import ASK_FOR_RECORD, RECORD_PLACE, record_name

# What PyTorch's builds have of these: NCCL has a recorder of its own.
_DUMPS = ("_dump_nccl_trace_json", "_dump_fr_trace_json")


def answer_with_record(rank: int) -> None:
    """From now on ASK_FOR_RECORD is answered with a file in the node's folder, whatever the main thread waits for.

    The interpreter writes a signal's number into a pipe as it comes, and a thread that costs nothing waits there.
    """
    place = os.environ.get(RECORD_PLACE)
    if not place:
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(ASK_FOR_RECORD, lambda *_: None)
    path = Path(place).with_name(record_name(rank))
    threading.Thread(target=_answer, args=(reading, path), name="flight recorder", daemon=True).start()


def _answer(reading: int, path: Path) -> None:
    while numbers := os.read(reading, 64):
        if ASK_FOR_RECORD in numbers:
            _write(path)


def _write(path: Path) -> None:
    recorders = importlib.import_module("torch._C._distributed_c10d")
    records = [getattr(recorders, name)() for name in _DUMPS if hasattr(recorders, name)]
    if records:
        partial = path.with_name(f"{path.name}.part")
        partial.write_bytes(max(records, key=len))  # the other one has recorded nothing
        partial.replace(path)
