"""What a round can end with: verdicts, stages and failure classes, as they stand in `result.json`.

Each says what it means here, and nowhere else: the tables of docs/results.md are made from this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Fault(str, Enum):
    """By whose fault a round failed, where another attempt may do better: on which hosts that is made."""

    MACHINE = "on the same hosts"
    HOST = "with a spare in the host's place, or on the same hosts"  # it is not what it was


class _Word(str, Enum):
    """A word of `result.json` that brings its meaning and, of a failure, whose fault that is."""

    _value_: str
    meaning: str
    fault: Fault | None

    def __new__(cls, word: str, meaning: str, fault: Fault | None = None) -> _Word:
        """The member `word`."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning, member.fault = meaning, fault
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
        "the scheduler took the hosts away, the controller's disk is full",
    )
    TIMED_OUT = ("TIMED_OUT", "the deadline, or the end of the job that holds the hosts, came first")
    UNREACHABLE = ("UNREACHABLE", "a host was lost, or lets nobody in")
    INTERRUPTED = ("INTERRUPTED", "Ctrl-C, SIGTERM, or SIGHUP when the terminal was closed")
    INVALID = (
        "INVALID",
        "the logs bear no result: FINISHED is missing, stands twice or comes from another rank too, what it says "
        "does not add up, a case of the kind `measure` reports no figure, or a search does not meet its rules",
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
    IDLE = "idle"
    LAUNCH = "launch"
    TRAIN = "train"
    COLLECT = "collect"
    CLEAN_UP = "clean_up"
    JUDGE = "judge"


class FailureClass(_Word):
    """What kind of thing went wrong. Without a fault it is the user's, or nobody can tell: it is not tried again."""

    HOSTS_NOT_ACQUIRED = (
        "hosts_not_acquired",
        "the round was refused its hosts, or did not get them in time",
    )
    ALLOCATION_CANCELLED = (
        "allocation_cancelled",
        "somebody cancelled the job whose nodes the round had, or waited for",
    )
    ALLOCATION_PREEMPTED = (
        "allocation_preempted",
        "the scheduler gave the round's nodes to another job",
        Fault.MACHINE,
    )
    ALLOCATION_TIME_LIMIT = (
        "allocation_time_limit",
        "the job whose nodes the round had came to its time limit, or so near to it that the logs had to be saved",
    )
    ALLOCATION_OUT_OF_MEMORY = (
        "allocation_out_of_memory",
        "the scheduler ended the job, as it used more memory than it was granted",
    )
    ALLOCATION_ENDED = (
        "allocation_ended",
        "the job whose nodes the round had is not there any more, and the scheduler says none of the above",
    )
    NODE_FAILED = ("node_failed", "the scheduler says that a node of the job failed", Fault.HOST)
    HOST_NOT_HEALTHY = (
        "host_not_healthy",
        "a host that the round was granted did not pass the preflight",
        Fault.HOST,
    )
    HOSTS_NOT_PREPARED = (
        "hosts_not_prepared",
        "all of several hosts that the round was granted failed the preflight alike, by what the configuration names",
    )
    DATA_ALTERED = ("data_altered", "a case's data on a host are not what their manifest says")
    IMAGE_NOT_BUILT = ("image_not_built", "building failed")
    IMAGE_NOT_DISTRIBUTED = (
        "image_not_distributed",
        "it was built, but did not reach a host: streaming, pushing, pulling",
        Fault.MACHINE,
    )
    IMAGES_DIFFER = ("images_differ", "the hosts' images are not the same")
    CONTAINER_NOT_STARTED = (
        "container_not_started",
        "the engine refused to start a task, or a node does not know its peer's address",
    )
    ENGINE_FAILED = (
        "engine_failed",
        "the container engine does not answer, or was started anew while a task ran",
        Fault.MACHINE,
    )
    TASK_REMOVED = ("task_removed", "somebody else removed the task, or its container, while it ran")
    RANK_FAILED = (
        "rank_failed",
        "a rank ended with an error, or too early; the first is named, not those that lost their peer",
    )
    RANK_KILLED = ("rank_killed", "a rank was killed (SIGKILL), and the kernel's counters do not say why")
    HOST_OUT_OF_MEMORY = (
        "host_out_of_memory",
        "the kernel killed a rank because the host had no memory left, or would give a rank none",
    )
    CONTAINER_OUT_OF_MEMORY = (
        "container_out_of_memory",
        "the kernel killed a rank at the memory limit of its container or control group, or a rank says that "
        "`/dev/shm` is full",
    )
    DEVICE_OUT_OF_MEMORY = (
        "device_out_of_memory",
        "a rank's last lines say that its device has no memory left",
    )
    OUT_OF_MEMORY = ("out_of_memory", "a rank's last lines say so, and not of which memory")
    DEVICE_MISSING = ("device_missing", "a rank's last lines say that it sees no such device")
    DEVICE_LOST = (
        "device_lost",
        "a rank's last lines say that its device is gone, or that its memory has a fault",
        Fault.HOST,
    )
    DIVERGED = ("diverged", "the loss is not a finite number any more")
    HOST_UNREACHABLE = (
        "host_unreachable",
        "contact was lost and did not come back in time",
        Fault.HOST,
    )
    AUTHENTICATION_FAILED = ("authentication_failed", "a host does not let the user in by ssh")
    HOST_KEY_NOT_TRUSTED = ("host_key_not_trusted", "a host's ssh key is not known, or has changed")
    COMMAND_FAILED = ("command_failed", "another command on a host, e.g. when the code was brought there")
    DISK_FULL = (
        "disk_full",
        "a host has no room, or its user no quota, for the code, an image or a task",
        Fault.HOST,
    )
    COLLECTIVE_HANG = (
        "collective_hang",
        "training reported nothing for longer than `HANG_TIMEOUT`: a rank has stopped, or ranks wait for each other; "
        "the lagging ones are named where that can be told",
    )
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
    SEARCH_NOT_VALID = (
        "search_not_valid",
        "a search took less than an hour, was trained in less than FP16, or came to an accuracy of 70 % at most: "
        "the message names which",
    )
    DISTURBED = (
        "disturbed",
        "something disturbed the training, and `REQUIRE_UNDISTURBED` says that such a round does not count",
    )
    LOGS_NOT_COLLECTED = (
        "logs_not_collected",
        "training ended well, but the first node's logs could not be collected, and FINISHED had not been seen",
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
