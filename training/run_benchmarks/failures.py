"""From an error on a host to the failure that stands in the result."""

from __future__ import annotations

import shlex
from dataclasses import replace

from run_benchmarks.full_disk import FULL, unwritten_file
from run_benchmarks.hosts.granted import AllocationEnd
from run_benchmarks.plan.redact import redact_text
from run_benchmarks.results.last_words import EVIDENCE_LINES
from run_benchmarks.results.losses import FREE_SPACE, host_lost
from run_benchmarks.results.symptoms import DISK_FULL
from run_benchmarks.runtimes.engine import ENGINE_DOWN
from run_benchmarks.transports.base import CommandError, TransportError
from run_benchmarks.unforeseen import UnforeseenError, remedy_for, traceback_text
from utils.errors import FlagPerfError, raised
from utils.records import Failure, FailureClass, Stage, Verdict

_CLASSES = {
    Stage.IMAGE: FailureClass.IMAGE_NOT_BUILT,
    Stage.LAUNCH: FailureClass.CONTAINER_NOT_STARTED,
    Stage.COLLECT: FailureClass.LOGS_NOT_COLLECTED,
}


class StageFailed(Exception):  # noqa: N818 - carries a result, not a fault
    """Ends a round at a stage."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class TakenAway(StageFailed):
    """Ends a round whose hosts are taken away. is_over: they are out of reach."""

    def __init__(self, stage: Stage, end: AllocationEnd) -> None:
        super().__init__(
            Failure(end.verdict, stage, end.failure_class, end.host, end.message, end.evidence, end.remedy)
        )
        self.is_over = end.is_over


def failure_on(host: str, stage: Stage, error: FlagPerfError) -> Failure:
    """What `error` at `stage` means for the round; the error's further lines are its evidence."""
    if isinstance(error, TransportError):
        return host_lost(host, stage, error.message, error.failure_class, error.remedy)
    # a command may hold credentials: build arguments, options of the user's for the container
    message, evidence = map(redact_text, _head_and_rest(error))
    kind = error.failure_class or _CLASSES.get(stage, FailureClass.COMMAND_FAILED)
    remedy = redact_text(error.remedy)
    # what is collected is written by the controller
    is_hosts = stage is not Stage.COLLECT and not isinstance(error, UnforeseenError)
    if ENGINE_DOWN.search(error.message):
        kind = FailureClass.ENGINE_FAILED
    if host and is_hosts and DISK_FULL.search(error.message):
        kind, remedy = FailureClass.DISK_FULL, FREE_SPACE.format(host=host)
    remedy = remedy or f"see docs/failures.md, {kind.value}"
    return Failure(Verdict.FAILED, stage, kind, host, message, evidence, remedy)


def _head_and_rest(error: FlagPerfError) -> tuple[str, str]:
    """A line that says what happened, and the evidence: a failed command is named by its first words."""
    if not isinstance(error, CommandError):
        message, _, evidence = error.message.partition("\n")
        return message, evidence
    done = error.completed
    return f"`{shlex.join(done.argv[:2])} ...` ended with exit code {done.returncode}", error.message


def unexpected(stage: Stage, error: Exception) -> Failure:
    """What an error means for the round that no host and no stage answers for.

    A FlagPerfError speaks for itself; anything else is an error of the controller: its disk, its own code.
    """
    if isinstance(error, TransportError):
        return failure_on(error.where, stage, error)
    if isinstance(error, FlagPerfError):
        failure = failure_on("", stage, error)
        where = f"{redact_text(error.where)}: " if error.where else ""
        return replace(failure, message=f"{where}{failure.message}")
    return Failure(
        Verdict.FAILED,
        stage,
        FailureClass.CONTROLLER_ERROR,
        "",
        FULL if unwritten_file(error) else redact_text(f"on the controller: {raised(error)}"),
        "" if unwritten_file(error) else "\n".join(traceback_text(error).splitlines()[-EVIDENCE_LINES:]),
        remedy_for(error),
    )


def interrupted(stage: Stage, by: str) -> Failure:
    """The failure of a round that the user ended; `by` says how."""
    message = f"the run was ended by {by} at the stage {stage.value}"
    saved = ", with --continue-from and this run's folder where the case saves checkpoints"
    has_trained = stage in (Stage.TRAIN, Stage.COLLECT, Stage.CLEAN_UP, Stage.JUDGE)
    remedy = f"start it again{saved if has_trained else ''}"
    return Failure(Verdict.INTERRUPTED, stage, FailureClass.INTERRUPTED, "", message, remedy=remedy)
