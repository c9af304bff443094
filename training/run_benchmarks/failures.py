"""From an error on a host to the failure that stands in the result."""

from __future__ import annotations

import shlex

from run_benchmarks.plan.redact import redact_text
from run_benchmarks.report.evidence import host_lost
from run_benchmarks.stages.image_distribute import DistributionError, ImagesDifferError
from run_benchmarks.transports.base import CommandError, TransportError
from utils.errors import FlagPerfError
from utils.records import Failure, FailureClass, Stage, Verdict

_CLASSES = {
    Stage.IMAGE: FailureClass.IMAGE_NOT_BUILT,
    Stage.LAUNCH: FailureClass.CONTAINER_NOT_STARTED,
    Stage.COLLECT: FailureClass.LOGS_NOT_COLLECTED,
}
_CLASSES_BY_ERROR = {
    DistributionError: FailureClass.IMAGE_NOT_DISTRIBUTED,
    ImagesDifferError: FailureClass.IMAGES_DIFFER,
}


class StageFailed(Exception):  # noqa: N818 - carries a result, not a fault
    """Ends a round at a stage."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure_on(host: str, stage: Stage, error: FlagPerfError) -> Failure:
    """What `error` at `stage` means for the round; the error's further lines are its evidence."""
    if isinstance(error, TransportError):
        return host_lost(host, stage, error.message)
    # a command may hold credentials: build arguments, options of the user's for the container
    message, evidence = map(redact_text, _told(error))
    by_stage = _CLASSES.get(stage, FailureClass.COMMAND_FAILED)
    kind = _CLASSES_BY_ERROR.get(type(error), by_stage)
    return Failure(Verdict.FAILED, stage, kind, host, message, evidence, redact_text(error.remedy))


def _told(error: FlagPerfError) -> tuple[str, str]:
    """A line that says what happened, and the evidence: a failed command is named by its first words."""
    if not isinstance(error, CommandError):
        message, _, evidence = error.message.partition("\n")
        return message, evidence
    done = error.completed
    return f"`{shlex.join(done.argv[:2])} ...` ended with exit code {done.returncode}", error.message


def interrupted(stage: Stage) -> Failure:
    """The failure of a round that the user ended."""
    message = f"the run was interrupted at the stage {stage.value}"
    return Failure(Verdict.INTERRUPTED, stage, FailureClass.INTERRUPTED, "", message)
