"""What it means for a round that a host, or a task on it, is not there any more."""

from __future__ import annotations

from run_benchmarks.results.symptoms import DISK_FULL
from run_benchmarks.stages.watch import Lost
from utils.records import Failure, FailureClass, Stage, Verdict

FREE_SPACE = (
    "free space on {host} (`df -h` there), or name another FLAGPERF_PATH_HOST; with MIN_FREE_DISK_GIB in test_conf.py "
    "the preflight refuses a host that has less"
)
# What is said of a task, or of its host, that is not there any more.
GONE = {
    FailureClass.TASK_REMOVED: "the task was removed while it ran",
    FailureClass.ENGINE_FAILED: "the container engine failed while the task ran",
    FailureClass.AUTHENTICATION_FAILED: "the host does not let the user in",
    FailureClass.HOST_KEY_NOT_TRUSTED: "the host's ssh key is not trusted",
}


def unit_gone(host: str, ending: Lost) -> Failure:
    """The host answers, but knows nothing of the task any more."""
    kind, message = ending.cause or FailureClass.COMMAND_FAILED, ending.message
    what = GONE.get(kind, "the task is not there any more, or the engine does not answer for it")
    remedy = ending.remedy or f"see on {host} who removed it"
    remedy = f"{remedy}; see docs/failures.md, {kind.value}"
    if DISK_FULL.search(message):
        kind, what = FailureClass.DISK_FULL, "how the task ended is not known, for the disk is full"
        remedy = FREE_SPACE.format(host=host)
    return Failure(Verdict.FAILED, Stage.TRAIN, kind, host, what, message, remedy)


def host_lost(
    host: str, stage: Stage, message: str, kind: FailureClass | None = None, remedy: str = ""
) -> Failure:
    """The failure of a round in which `host` was not reached any more, or let nobody in; `remedy` goes first.

    Args:
        message: where it has several lines, the first says what decided that the host is lost.
    """
    kind = kind or FailureClass.HOST_UNREACHABLE
    remedy = remedy or f"check {host} and the way to it"
    left = "what may be left there is removed, once the host is back, by the command in a note and at the run's end"
    what = GONE.get(kind, "the host is out of reach")
    decided, _, why = message.partition("\n")
    what = f"{what}: {decided}" if why else what
    return Failure(Verdict.UNREACHABLE, stage, kind, host, what, message, f"{remedy}; {left}")
