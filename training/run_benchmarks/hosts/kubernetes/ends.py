"""Why pods are not there any more, as what becomes of the round; and what stands of them in its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from run_benchmarks.hosts.granted import AllocationEnd, GrantedJob
from run_benchmarks.transports.kubectl.client import Kubectl
from run_benchmarks.transports.kubectl.pods import Pod, PodEnd
from utils.errors import FlagPerfError
from utils.records import FailureClass, Verdict

WATCH_S = 5.0
MOST_EVENTS = 5
# Class -> the verdict, what happened, what to do.
_ENDS = {
    FailureClass.NODE_FAILED: (
        Verdict.UNREACHABLE,
        "a node of the job failed",
        "`kubectl describe node` says more of it",
    ),
    FailureClass.ALLOCATION_PREEMPTED: (
        Verdict.FAILED,
        "a pod was taken away",
        "give the pods a priority_class that is not preempted, or ask for the memory and the disk that they use",
    ),
    FailureClass.ALLOCATION_TIME_LIMIT: (
        Verdict.TIMED_OUT,
        "the job's deadline was reached",
        "raise CASE_DEADLINE_HOURS, from which it follows",
    ),
    FailureClass.ALLOCATION_OUT_OF_MEMORY: (
        Verdict.FAILED,
        "a pod used more memory than it was granted",
        "give it more, resources in HOSTS = kubernetes(...), or use a smaller batch",
    ),
    FailureClass.ALLOCATION_CANCELLED: (
        Verdict.FAILED,
        "a pod was deleted",
        "ask who deleted it, or its job; the API server's audit log names the user",
    ),
    FailureClass.ALLOCATION_ENDED: (
        Verdict.FAILED,
        "a pod has ended",
        "a pod ends by itself where it hears of no controller for abandoned_after in HOSTS = kubernetes(...)",
    ),
}


def ended(job: str, end: PodEnd, node: str = "", events: Sequence[str] = ()) -> AllocationEnd:
    """What the end of a pod means for the round."""
    verdict, what, remedy = _ENDS[end.kind]
    host = node if end.kind is FailureClass.NODE_FAILED else ""
    evidence = "\n".join([end.message, *(f"event: {event}" for event in events)])
    remedy = f"{remedy}; see docs/failures.md, {end.kind.value}"
    message = f"Kubernetes' job {job}: {what} ({end.message})"
    return AllocationEnd(verdict, end.kind, message, evidence, remedy, host=host)


class PodTenure:
    """Of the pods of a job, all of which run.

    Args:
        decisive: so many of the first pods end it; the loss of another is seen by who waits for what runs there.
    """

    def __init__(
        self, kubectl: Kubectl, job: str, selector: str, pods: Sequence[Pod], decisive: int | None = None
    ) -> None:
        self._kubectl, self._job, self._selector = kubectl, job, selector
        self._decisive = {pod.name for pod in pods[:decisive]}
        self._nodes = {pod.name: pod.spec.node_name or "" for pod in pods}
        self._started, self._state = min(pod.status.start_time for pod in pods), "Running"

    @property
    def id(self) -> str:
        """The job's name."""
        return self._job

    @property
    def is_suspended(self) -> bool:
        """Never: where its job is, its pods are gone."""
        return False

    async def end(self) -> AllocationEnd:
        """Why a pod is not there any more: the first that is known of."""
        while True:
            with suppress(FlagPerfError):  # an API server that does not answer says nothing of its pods
                if (gone := await self._gone()) is not None:
                    name, end = gone
                    self._state = end.kind.value
                    events = await self._kubectl.events_of(name)
                    return ended(self._job, end, self._nodes[name], events[-MOST_EVENTS:])
            await asyncio.sleep(WATCH_S)

    def at_end(self, script: str) -> None:
        """Nothing: all that runs in a pod ends with it."""

    async def record(self) -> GrantedJob:
        """The job, as it was seen last."""
        nodes = tuple(self._nodes.values())
        pods = tuple(self._nodes)
        return GrantedJob("kubernetes", self._job, nodes, self._state, started=self._started, pods=pods)

    async def _gone(self) -> tuple[str, PodEnd] | None:
        pods = {pod.name: pod for pod in await self._kubectl.pods(self._selector)}
        seen = {name: pods[name].end if name in pods else deleted(name) for name in self._nodes}
        if not any(seen[name] for name in self._decisive):
            return None
        return most_telling(seen)


def most_telling(ends: Mapping[str, PodEnd | None]) -> tuple[str, PodEnd] | None:
    """The end that says most, and whose it is; None where nothing has ended."""
    told = [(name, end) for name, end in ends.items() if end]
    # where a pod is lost, its job deletes the others: what only says so says least
    return min(told, key=lambda each: each[1].kind is FailureClass.ALLOCATION_CANCELLED, default=None)


def deleted(name: str) -> PodEnd:
    """Of a pod that is not there."""
    return PodEnd(FailureClass.ALLOCATION_CANCELLED, f"pod {name}: it is not there any more")
