"""Pods that are to start: waited for as long as waiting helps, with what the cluster says of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from run_benchmarks.hosts.base import AllocationError
from run_benchmarks.hosts.kubernetes.answers import no_answer
from run_benchmarks.hosts.kubernetes.ends import ended
from run_benchmarks.run_log import LOGGER
from run_benchmarks.transports.kubectl.client import WHERE, Kubectl
from run_benchmarks.transports.kubectl.pods import NEVER_STARTS, PULLING_FAILS, Pod
from utils.errors import FlagPerfError
from utils.numbers import counted

LOOK_S = 2.0
# So long a registry may fail; and so long a job may have no pods, before its events are looked at.
PULL_PATIENCE_S, NO_PODS_S = 120.0, 10.0
MOST_EVENTS = 5
REFUSED = "violates PodSecurity"  # what waiting does not mend
PULL_REMEDY = (
    "push the image, or name another with image in HOSTS = kubernetes(...); pull_secrets names credentials"
)


class Pending:
    """The `count` pods of a job, on their way to run.

    Args:
        limit_s: so long they may be pending.
        stuck: pods of earlier rounds that are still there, and so may be what keeps these waiting.
    """

    def __init__(
        self, kubectl: Kubectl, job: str, selector: str, count: int, limit_s: float, stuck: Sequence[str] = ()
    ) -> None:
        self._kubectl, self._job, self._selector = kubectl, job, selector
        self._count, self._limit_s, self._stuck = count, limit_s, stuck
        self._begin = time.monotonic()
        self._pulling_failed_at: float | None = None
        self._said = ""

    async def ready(self) -> tuple[Pod, ...]:
        """The pods by their index, once all of them run.

        Raises:
            AllocationError: they never will, or did not in time; it quotes the cluster.
            NoAnswerError: of what became of them nothing is known.
        """
        while True:
            pods = await self._pods()
            ready = tuple(pod for pod in pods if pod.is_ready)
            if [pod.index for pod in ready] == [*range(self._count)]:
                self._see_one_image(ready)
                return ready
            why = await self._why(pods)
            self._say(pods, why)
            if self._are_late():
                stuck = (
                    f" (not given back by earlier rounds: {'; '.join(self._stuck)})" if self._stuck else ""
                )
                raise self._refused(
                    f"still pending after {self._limit_s:g} s: {why}{stuck}", self._remedy(why)
                )
            await asyncio.sleep(LOOK_S)

    async def _pods(self) -> list[Pod]:
        """By their index. An API server that does not answer says nothing of them, and is asked until they are late.

        Raises:
            NoAnswerError: it never answered, or refused.
        """
        while True:
            try:
                return sorted(await self._kubectl.pods(self._selector), key=lambda pod: pod.index)
            except FlagPerfError as error:
                failed = no_answer(error)
                if not failed.may_pass or self._are_late():
                    raise failed from error
                self._log(f"is not known, and asked again: {error.message}")
            await asyncio.sleep(LOOK_S)

    def _are_late(self) -> bool:
        return time.monotonic() - self._begin > self._limit_s

    async def _why(self, pods: Sequence[Pod]) -> str:
        """What is waited for; AllocationError where that is in vain."""
        for pod in pods:
            if pod.end:
                raise AllocationError.by(ended(self._job, pod.end, pod.spec.node_name or ""))
        if not pods:
            return await self._why_none()
        waiting = [pod.waits_for for pod in pods if not pod.is_ready]
        never = [each for each in waiting if each.reason in NEVER_STARTS]
        if never:
            raise self._refused(f"its pods cannot start: {never[0]}", PULL_REMEDY)
        self._note_pulling([each.reason for each in waiting], str(next(iter(waiting), "")))
        return (
            str(next((each for each in waiting if each.reason), ""))
            or "their containers are made and started"
        )

    async def _why_none(self) -> str:
        if time.monotonic() - self._begin < NO_PODS_S:
            return "it has no pods yet"
        events = (await self._kubectl.events_of(self._job))[-MOST_EVENTS:]
        refused = [event for event in events if REFUSED in event]
        if refused:
            remedy = "`kubectl describe namespace` shows what it allows; the pods keep to the standard `restricted`"
            raise self._refused(f"the cluster makes no pods: {refused[0]}", remedy)
        return "it has no pods: " + ("; ".join(events) or "and no events say why")

    def _note_pulling(self, reasons: Sequence[str], why: str) -> None:
        if not PULLING_FAILS.intersection(reasons):
            self._pulling_failed_at = None
            return
        now = time.monotonic()
        self._pulling_failed_at = self._pulling_failed_at or now
        if now - self._pulling_failed_at > PULL_PATIENCE_S:
            raise self._refused(f"the image cannot be pulled: {why}", PULL_REMEDY)

    def _see_one_image(self, pods: Sequence[Pod]) -> None:
        images = {pod.spec.node_name or pod.name: pod.image for pod in pods}
        if len(set(images.values())) > 1:
            listed = ", ".join(f"{node} {image}" for node, image in images.items())
            remedy = "name the image by its digest, or by a tag that is never moved"
            raise self._refused(f"its pods run different images: {listed}", remedy)

    def _say(self, pods: Sequence[Pod], why: str) -> None:
        ready = sum(pod.is_ready for pod in pods)
        self._log(f"{ready} of {counted(self._count, 'pod')} ready; {why}")

    def _log(self, text: str) -> None:
        line = f"Kubernetes' job {self._job}: {text}"
        if line != self._said:
            LOGGER.info(line)
            self._said = line

    def _remedy(self, why: str) -> str:
        if "Unschedulable" in why:
            return (
                "ask for what a node has (`kubectl describe nodes`), name tolerations and node_selector, or raise "
                "pending_limit in HOSTS = kubernetes(...)"
            )
        return f"`kubectl describe job {self._job}` and `kubectl get events` say more"

    def _refused(self, message: str, remedy: str) -> AllocationError:
        return AllocationError(f"job {self._job}: {message}", where=WHERE, remedy=remedy)
