"""What a round can end with: verdicts, stages and failure classes, as they stand in `result.json`.

Each says what it means here, and nowhere else: the tables of docs/results.md are made from this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class _Word(str, Enum):
    """A word of `result.json` that brings its meaning."""

    _value_: str
    meaning: str

    def __new__(cls, word: str, meaning: str) -> _Word:
        """The member `word`."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member


class Verdict(_Word):
    """How a round ended."""

    CONVERGED = ("CONVERGED", "an evaluation met the target")
    MEASURED = (
        "MEASURED",
        "a case that has no target (of the kind `measure`) did its work and reported its figures",
    )
    NOT_CONVERGED = ("NOT_CONVERGED", "training reached its cap of steps or samples first")
    FAILED = (
        "FAILED",
        "a rank failed, an image was not built, a container did not start, a command failed, "
        "the controller's disk is full",
    )
    TIMED_OUT = ("TIMED_OUT", "the deadline came first")
    UNREACHABLE = ("UNREACHABLE", "a host was lost")
    INTERRUPTED = ("INTERRUPTED", "Ctrl-C, SIGTERM, or SIGHUP when the terminal was closed")
    INVALID = (
        "INVALID",
        "the logs bear no result: FINISHED is missing, stands twice or comes from another rank too, what it says "
        "does not add up, or a case of the kind `measure` reports no figure",
    )

    @property
    def is_success(self) -> bool:
        """Whether the case did what it is for; `run.py` exits with 0 only if every round did."""
        return self in (Verdict.CONVERGED, Verdict.MEASURED)


class Stage(str, Enum):
    """The stages of a round, in order."""

    ACQUIRE = "acquire"
    PREFLIGHT = "preflight"
    DEPLOY = "deploy"
    IMAGE = "image"
    LAUNCH = "launch"
    TRAIN = "train"
    COLLECT = "collect"
    CLEAN_UP = "clean_up"
    JUDGE = "judge"


class FailureClass(_Word):
    """What kind of thing went wrong."""

    HOSTS_NOT_ACQUIRED = (
        "hosts_not_acquired",
        "the round was refused its hosts, or did not get them in time",
    )
    HOST_NOT_HEALTHY = ("host_not_healthy", "a host that the round was granted did not pass the preflight")
    IMAGE_NOT_BUILT = ("image_not_built", "building failed")
    IMAGE_NOT_DISTRIBUTED = (
        "image_not_distributed",
        "it was built, but did not reach a host: streaming, pushing, pulling",
    )
    IMAGES_DIFFER = ("images_differ", "the hosts' images are not the same")
    CONTAINER_NOT_STARTED = (
        "container_not_started",
        "the engine refused to start a task or a monitor, or a node does not know its peer's address",
    )
    RANK_FAILED = (
        "rank_failed",
        "a rank ended with an error; the first to fail is named, not those that lost their peer",
    )
    RANK_KILLED = ("rank_killed", "a rank was killed (SIGKILL), often by the kernel for want of memory")
    OUT_OF_MEMORY = ("out_of_memory", "its last lines say so")
    HOST_UNREACHABLE = ("host_unreachable", "contact was lost and did not come back in time")
    COMMAND_FAILED = ("command_failed", "another command on a host, e.g. when the code was brought there")
    DISK_FULL = ("disk_full", "a host has no room, or its user no quota, for the code, an image or a task")
    DEADLINE = ("deadline", "training took longer than `CASE_DEADLINE_HOURS`")
    INTERRUPTED = ("interrupted", "the user ended the run")
    NO_RESULT = (
        "no_result",
        "all ranks ended with 0, but FINISHED was not reported exactly once, by global rank 0 (of all ranks; a "
        "case's own script may report it on each), its log cannot be read, or it has no figure where the case is to "
        "measure",
    )
    INCONSISTENT_RESULT = (
        "inconsistent_result",
        "what FINISHED says does not add up: with itself, with the events before it, with the plan's target, or with "
        "the controller's clock; the message names both values",
    )
    LOGS_NOT_COLLECTED = (
        "logs_not_collected",
        "training ended well, but the first node's logs could not be collected",
    )
    CONTROLLER_ERROR = (
        "controller_error",
        "an error on the controller, such as a full disk; the message and the traceback are in the run's log",
    )


@dataclass(frozen=True)
class Failure:
    """Why a round did not end well: the stage and host, the class, and the evidence itself.

    file: where more of the evidence stands, relative to the run's folder; empty where that is not one file.
    """

    # its name in `result.json`, `class`, is a word of Python's
    __pydantic_config__: ClassVar = {"alias_generator": lambda name: name.removeprefix("failure_")}

    verdict: Verdict
    stage: Stage
    failure_class: FailureClass
    host: str
    message: str
    evidence: str = ""
    remedy: str = ""
    file: str = ""

    @property
    def headline(self) -> str:
        """Where it happened, of which class it is, and what it was: a line."""
        where = f" on {self.host}" if self.host else ""
        return f"at the stage {self.stage.value}{where} ({self.failure_class.value}): {self.message}"
