"""Pods as the API tells of them, and what it means that one does not start, or is not there any more."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as model

from utils.records import FailureClass
from utils.text_files import shortened

MOST_PODS = 10_000
LONGEST_TEXT = 1000  # characters of what the cluster says of one thing
_CAMEL = ConfigDict(alias_generator=to_camel, populate_by_name=True)
Text = Annotated[str, AfterValidator(lambda text: shortened(text, LONGEST_TEXT))]
# As Kubernetes allows them; names become folders, and words of commands.
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
Word = Annotated[str, AfterValidator(lambda text: shortened(text, 256))]

# What a container waits for that no waiting mends: its pod's own text is wrong.
NEVER_STARTS = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"})
PULLING_FAILS = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
# The reasons of the condition DisruptionTarget, and of a pod that has failed.
_TAKEN = frozenset({"PreemptionByScheduler", "EvictionByEvictionAPI", "Preempting", "Evicted"})
_NODE = frozenset(
    {"DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet", "NodeLost", "NodeShutdown"}
    | {"Terminated", "Shutdown", "UnexpectedAdmissionError"}
)


@model(frozen=True, config=_CAMEL)
class _Told:
    """Why something is as it is; exit_code: of a container that has ended."""

    reason: Word = ""
    message: Text = ""
    exit_code: int = 0

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.reason, self.message.strip())))


@model(frozen=True, config=_CAMEL)
class _State:
    waiting: _Told | None = None
    terminated: _Told | None = None


@model(frozen=True, config=_CAMEL)
class _Container:
    state: _State = field(default_factory=_State)
    image_id: Text = Field(default="", validation_alias="imageID")


@model(frozen=True, config=_CAMEL)
class _Condition:
    type: Word
    status: Word
    reason: Word = ""
    message: Text = ""


@model(frozen=True, config=_CAMEL)
class _Status:
    phase: Word = ""
    reason: Word = ""
    message: Text = ""
    start_time: Word = ""
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


@model(frozen=True, config=_CAMEL)
class _Spec:
    node_name: Name | None = None


@model(frozen=True, config=_CAMEL)
class _Metadata:
    name: Name
    creation_timestamp: Word = ""  # RFC 3339, UTC
    deletion_timestamp: Word | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


@model(frozen=True, config=_CAMEL)
class Pod:
    """A pod: what of it decides something here."""

    metadata: _Metadata
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)

    @property
    def name(self) -> str:
        """Its name, which no other pod of the namespace has at the time."""
        return self.metadata.name

    @property
    def index(self) -> int:
        """Its place in an Indexed Job; -1 of a pod of another kind."""
        text = self.metadata.annotations.get("batch.kubernetes.io/job-completion-index", "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else -1

    @property
    def job(self) -> str:
        """The job that it belongs to; empty where it belongs to none."""
        name = self.metadata.labels.get("batch.kubernetes.io/job-name", "")
        return name if re.fullmatch(r"[a-z0-9-]{1,63}", name) else ""

    @property
    def image(self) -> str:
        """What it runs, by its digest; empty where that is not told."""
        return next((each.image_id for each in self.status.container_statuses), "")

    @property
    def is_ready(self) -> bool:
        """Whether it runs, and its start is over."""
        return self._is("Ready") and self.status.phase == "Running" and not self.metadata.deletion_timestamp

    @property
    def waits_for(self) -> _Told:
        """What it waits for that has not started; no reason where nobody says."""
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return _Told(condition.reason, condition.message)
        waiting = (each.state.waiting for each in self.status.container_statuses)
        return next(filter(None, waiting), _Told())

    @property
    def end(self) -> PodEnd | None:
        """How it ended, or is about to; None where it goes on, or is yet to start."""
        status = self.status
        terminated = [each.state.terminated for each in status.container_statuses if each.state.terminated]
        of_pod = [_Told(each.reason, each.message) for each in status.conditions if _disrupts(each)]
        reasons = [*of_pod, *([_Told(status.reason, status.message)] if status.reason else ()), *terminated]
        is_over = status.phase in ("Failed", "Succeeded", "Unknown") or terminated
        if not (is_over or of_pod or self.metadata.deletion_timestamp):
            return None
        kind = next((kind for each in reasons if (kind := _KINDS.get(each.reason))), None)
        if kind is None:
            kind = FailureClass.ALLOCATION_ENDED if is_over else FailureClass.ALLOCATION_CANCELLED
            kind = FailureClass.NODE_FAILED if status.phase == "Unknown" else kind
        why = "; ".join(map(str, reasons)) or ("it is being deleted" if not is_over else "it has ended")
        where = f" on {self.spec.node_name}" if self.spec.node_name else ""
        return PodEnd(kind, f"pod {self.name}{where}, phase {status.phase or 'unknown'}: {why}")

    def _is(self, condition: str) -> bool:
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)


def _disrupts(condition: _Condition) -> bool:
    return condition.type == "DisruptionTarget" and condition.status == "True"


_KINDS = {
    **dict.fromkeys(_TAKEN, FailureClass.ALLOCATION_PREEMPTED),
    **dict.fromkeys(_NODE, FailureClass.NODE_FAILED),
    "DeadlineExceeded": FailureClass.ALLOCATION_TIME_LIMIT,
    "OOMKilled": FailureClass.ALLOCATION_OUT_OF_MEMORY,
}


@dataclass(frozen=True)
class PodEnd:
    """Why a pod is not there any more, or will not be: `message` names it and quotes the cluster."""

    kind: FailureClass
    message: str


@model(frozen=True, config=_CAMEL)
class Pods:
    """A list of pods."""

    items: Annotated[tuple[Pod, ...], Field(max_length=MOST_PODS)] = ()


@model(frozen=True, config=_CAMEL)
class _Event:
    reason: Word = ""
    message: Text = ""

    @property
    def text(self) -> str:
        """The two in one line."""
        return str(_Told(self.reason, self.message))


@model(frozen=True, config=_CAMEL)
class Events:
    """A list of events."""

    items: Annotated[tuple[_Event, ...], Field(max_length=MOST_PODS)] = ()
