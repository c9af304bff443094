"""What to do next about a rank that failed, by the class of its failure: where to look, and by which command."""

from __future__ import annotations

from run_benchmarks.results.losses import FREE_SPACE
from utils.records import FailureClass

ARROW = "-> "  # what stands before the remedy of FlagPerf's own errors
KERNEL_LOG = "`journalctl -k --since -1h` (or `dmesg -T`)"
# {host}: where the rank ran. What the message says already is not said again.
OF_CLASS = {
    FailureClass.RANK_KILLED: "look on {host} who sent SIGKILL: "
    f"{KERNEL_LOG} there has a line `Killed process` where the kernel did, with the memory that it used, or `NVRM`, "
    "`Xid` or another driver's name; where it has neither, it was a person, a batch system or a clean-up job",
    FailureClass.HOST_OUT_OF_MEMORY: "use fewer loader processes or a smaller batch, or end what else uses memory on "
    f"{{host}}: {KERNEL_LOG} there has a line `Out of memory: Killed process`, and above it a table of all processes",
    FailureClass.CONTAINER_OUT_OF_MEMORY: "raise or remove the limit (`--memory` in ACCE_CONTAINER_OPT, or that of the "
    "ssh user's slice); for shared memory raise SHM_SIZE",
    FailureClass.DEVICE_OUT_OF_MEMORY: "lower train_batch_size, and raise gradient_accumulation_steps by "
    "the same factor",
    FailureClass.OUT_OF_MEMORY: f"its last lines do not say which memory: see {KERNEL_LOG} on {{host}} for the host's; "
    "for the device's lower train_batch_size",
    FailureClass.DEVICE_MISSING: "compare what the vendor's tool lists on {host} with what the container is given: "
    "ACCE_CONTAINER_OPT, and the engine's accelerator runtime",
    FailureClass.DEVICE_LOST: f"see on {{host}} which device it was, by the vendor's tool and {KERNEL_LOG}; most want "
    "a reset or a restart of the host",
    FailureClass.DIVERGED: "lower learning_rate, lengthen warmup_steps, or use bf16 in place of fp16",
    FailureClass.DISK_FULL: FREE_SPACE,
}


def remedy_of(kind: FailureClass, host: str, log: str, tail: str, advice: str = "") -> str:
    """What to do about a failure of `kind` of a rank on `host`.

    Args:
        log: the name of the file whose last lines are `tail`.
        advice: of who runs the tasks there, which knows more of it than the class.
    """
    own = _own_remedy(tail)  # by its looks: whatever runs in a rank can write it
    first = advice or OF_CLASS.get(kind, "").format(host=host)
    read = f"{log} says: {own}" if own and own not in first else f"read {log} in the node's folder"
    return "; ".join(filter(None, (first, read, f"see docs/failures.md, {kind.value}")))


def _own_remedy(tail: str) -> str:
    """What FlagPerf's own error among the last lines says is to be done; empty where there is none, or several."""
    lines = [line.strip() for line in tail.splitlines()]
    remedies = [line[len(ARROW) :] for line in lines if line.startswith(ARROW)]
    return remedies[0] if len(remedies) == 1 else ""
