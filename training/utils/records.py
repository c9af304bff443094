"""What a round can end with: verdicts and failure classes, as they stand in `result.json`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """How a round ended."""

    CONVERGED = "CONVERGED"
    NOT_CONVERGED = "NOT_CONVERGED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    UNREACHABLE = "UNREACHABLE"
    INTERRUPTED = "INTERRUPTED"
    INVALID = "INVALID"


class Stage(str, Enum):
    """The stages of a round, in order."""

    PREFLIGHT = "preflight"
    DEPLOY = "deploy"
    IMAGE = "image"
    LAUNCH = "launch"
    TRAIN = "train"
    COLLECT = "collect"
    CLEAN_UP = "clean_up"
    JUDGE = "judge"


class FailureClass(str, Enum):
    """What kind of thing went wrong."""

    IMAGE_NOT_BUILT = "image_not_built"
    IMAGE_NOT_DISTRIBUTED = "image_not_distributed"
    IMAGES_DIFFER = "images_differ"
    CONTAINER_NOT_STARTED = "container_not_started"
    RANK_FAILED = "rank_failed"
    RANK_KILLED = "rank_killed"
    OUT_OF_MEMORY = "out_of_memory"
    HOST_UNREACHABLE = "host_unreachable"
    COMMAND_FAILED = "command_failed"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"
    NO_RESULT = "no_result"
    INCONSISTENT_RESULT = "inconsistent_result"
    LOGS_NOT_COLLECTED = "logs_not_collected"
    CONTROLLER_ERROR = "controller_error"


@dataclass(frozen=True)
class Failure:
    """Why a round did not end well: the stage and host, the class, and the evidence itself."""

    verdict: Verdict
    stage: Stage
    failure_class: FailureClass
    host: str
    message: str
    evidence: str = ""
    remedy: str = ""
