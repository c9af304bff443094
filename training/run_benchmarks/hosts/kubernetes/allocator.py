"""The pods of an Indexed Job as a round's hosts: made when it begins, deleted when it ends."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count

from run_benchmarks.hosts.base import (
    Allocation,
    AllocationError,
    Host,
    NoAnswerError,
    NotGivenBackError,
    warn_of_stuck_jobs,
)
from run_benchmarks.hosts.granted import AllocationEnd, GrantedJob
from run_benchmarks.hosts.kubernetes.answers import asked, no_answer
from run_benchmarks.hosts.kubernetes.ends import PodTenure, deleted, ended, most_telling
from run_benchmarks.hosts.kubernetes.manifests import ALIVE, KINDS, LABEL_JOB, Workers
from run_benchmarks.hosts.kubernetes.pending import Pending
from run_benchmarks.names import LABEL_RUN
from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.run_log import LOGGER
from run_benchmarks.stages.fan_out import on_all
from run_benchmarks.transports.kubectl import KubectlTransport
from run_benchmarks.transports.kubectl.client import WHERE, Kubectl
from run_benchmarks.transports.kubectl.pods import Pod
from utils.errors import FlagPerfError

LET_GO_S = 5.0
BEATS, TOUCH_S = 5, 30.0  # so often within the time after which a pod ends: some may fail
DELETE_S = 45.0  # a pod has half a minute to end
STUCK_REMEDY = (
    "a pod goes once its node confirms its end, or is removed from the cluster: `kubectl describe node` of its node "
    "says what is wrong there"
)


class KubernetesHosts:
    """Pods of a job for each round or, where the settings name a job, of that one for the whole run.

    Args:
        run: the uid of the run, by which what it makes is labelled, and found again by a controller that takes it up.
        workers: the manifests of a case under a name.
    """

    keeps = KubectlTransport.keeps
    standing: tuple[Host, ...] = ()

    def __init__(
        self,
        settings: KubernetesSettings,
        run: str,
        workers: Callable[[CasePlan, str], Workers] | None = None,
    ) -> None:
        self._settings, self._run, self._workers = settings, run, workers
        self._kubectl = Kubectl(settings.namespace, settings.context)
        job, self._avoided = settings.job, set[str]()
        self._selector = f"{LABEL_JOB}={job}" if job else f"{LABEL_RUN}={run}"
        self._held: dict[str, Host] = {}  # pod -> the host that it is
        self._are_kept = False  # what lies in the pods is nowhere else
        self._stuck: dict[str, str] = {}  # jobs whose end was waited for in vain -> their pods

    def planned(self, case: CasePlan) -> tuple[Host, ...]:
        """None: Kubernetes names them."""
        return ()

    @asynccontextmanager
    async def revisit(self, names: Sequence[str]) -> AsyncIterator[Sequence[Host]]:
        """Those whose pods are still there; what lay in another has gone with it."""
        there: set[str] = set()
        with suppress(FlagPerfError):
            pods = await asked(lambda: self._kubectl.pods(self._selector))
            there = {pod.name for pod in pods if not pod.end}
        yield tuple(host for pod, host in self._held.items() if pod in there and host.name in names)

    def avoid(self, host: str) -> None:
        """Let further pods come to this node only where no other takes them."""
        self._avoided.add(host)

    @asynccontextmanager
    async def acquire(self, case: CasePlan, earlier: GrantedJob | None = None) -> AsyncIterator[Allocation]:
        """The pods of a job: those that are there, where the round had some before it was taken up."""
        hosts: tuple[Host, ...] = ()
        keeping: asyncio.Task[None] | None = None
        try:
            job, pods = await self._job_and_pods(case, earlier.pods if earlier else ())
            names = case.hosts or names_of(pods)
            hosts = hosts_of(names, pods, job, self._kubectl)
            self._held = {pod.name: hosts[pod.index] for pod in pods}
            LOGGER.info(f"Kubernetes' job {job} runs on {', '.join(host.name for host in hosts)}")
            keeping = asyncio.create_task(_keep(hosts, self._settings.abandoned_after / BEATS))
            decisive = 1 if case.roles else None  # a search goes on without its other nodes
            tenure = PodTenure(self._kubectl, job, _of_job(job), pods, decisive)
            end = end_of_round(names, pods, job, decisive)
            yield Allocation(hosts, tenure, end, self._keep_pods)
        except BaseException as error:
            if case.hosts and not keeping and isinstance(error, NoAnswerError | asyncio.CancelledError):
                raise  # the round may go on in its pods
            with suppress(FlagPerfError), warn_of_stuck_jobs():  # the first error is the one to be raised
                await self._leave(hosts, keeping)
            raise
        await self._leave(hosts, keeping)

    async def close(self) -> None:
        """Delete what was made for the run, and wait until it is gone. Idempotent.

        Raises:
            NotGivenBackError: pods are still there after a while.
        """
        self._stuck.clear()
        await asked(self._give_back)

    def _keep_pods(self) -> str:
        self._are_kept = True
        return f"within {self._settings.abandoned_after:g} s, after which its pods end by themselves"

    async def _leave(self, hosts: Sequence[Host], keeping: asyncio.Task[None] | None) -> None:
        if keeping:
            keeping.cancel()
        self._held = {}
        if self._are_kept:
            await on_all(hosts, _tell)
        elif not self._settings.job:
            await on_all(hosts, _let_go)
            await asked(self._give_back)

    async def _give_back(self) -> None:
        """As `close`, but it waits for no job twice: a node that never answers would cost every round that time."""
        if self._are_kept:
            return
        job = self._settings.job
        selector = ",".join([self._selector, *(f"{LABEL_JOB}!={each}" for each in self._stuck)])
        by_name = [f"{kind}/{job}" for kind in KINDS]
        which = by_name if job else [",".join(KINDS), f"--selector={selector}"]
        try:
            await self._kubectl.remove(*which, wait_s=DELETE_S)
        except FlagPerfError:
            self._raise_if_stuck(await self._kubectl.pods(selector))
            raise

    def _raise_if_stuck(self, pods: Sequence[Pod]) -> None:
        """Remember pods that are being deleted and do not go; NotGivenBackError where that is all that went wrong."""
        if not pods or not all(pod.metadata.deletion_timestamp for pod in pods):
            return
        stuck = {pod.job: "" for pod in pods}
        for job in stuck:
            stuck[job] = ", ".join(f"pod {pod.name}{_place(pod)}" for pod in pods if pod.job == job)
        self._stuck |= stuck
        # where a pod asks for no devices, a further one would find room beside it
        self._avoided.update(pod.spec.node_name for pod in pods if pod.spec.node_name)
        raise NotGivenBackError(stuck, DELETE_S, where=WHERE, remedy=STUCK_REMEDY)

    async def _job_and_pods(self, case: CasePlan, earlier: Sequence[str]) -> tuple[str, tuple[Pod, ...]]:
        """A job, with its pods by their index, which all run; of a round that is taken up those left of `earlier`."""
        nodes, limit_s = case.settings.nnodes, self._settings.pending_limit
        try:
            job = await self._job_for(case)
            if case.hosts:
                # one that is lost is not waited for: another in its place knows nothing of the round
                pods = await asked(lambda: self._kubectl.pods(_of_job(job)))
                return job, those_left(case.hosts, pods, job, earlier)
            stuck = tuple(self._stuck.values())
            return job, await Pending(self._kubectl, job, _of_job(job), nodes, limit_s, stuck).ready()
        except AllocationError:
            raise
        except FlagPerfError as error:
            raise no_answer(error) from error

    async def _job_for(self, case: CasePlan) -> str:
        """The name of the job whose pods the round gets."""
        if self._settings.job:
            return self._settings.job
        if case.hosts:
            pods = await asked(lambda: self._kubectl.pods(self._selector))
            if pods:
                # the newest: of earlier rounds some may still be there
                return max(pods, key=lambda pod: pod.metadata.creation_timestamp).job
            message = "there are no pods of this run any more"
            raise AllocationError(message, where="Kubernetes", remedy="begin the run anew")
        assert self._workers  # noqa: S101 - for mypy: none are needed to delete what there is
        with warn_of_stuck_jobs():
            await asked(self._give_back)  # what a controller that has died had asked for
        names = (f"flagperf-{self._run}-{secrets.token_hex(2)}" for _ in count())
        name = next(each for each in names if each not in self._stuck)
        manifests = self._workers(case, name).manifests(self._avoided)
        await asked(lambda: self._kubectl.apply(manifests))
        return name


def names_of(pods: Sequence[Pod]) -> tuple[str, ...]:
    """What the pods are called as hosts: by their nodes or, where two are on one, by themselves too."""
    alone = len({_node(pod) for pod in pods}) == len(pods)
    return tuple(_node(pod) if alone else _shared(pod) for pod in pods)


def hosts_of(names: Sequence[str], pods: Sequence[Pod], job: str, kubectl: Kubectl) -> tuple[Host, ...]:
    """The hosts of these names, in the order of the pods' indices; one whose pod is not there is out of reach."""
    by_index = {pod.index: pod.name for pod in pods}
    return tuple(
        Host(
            name,
            f"{job}-{index}.{job}",
            KubectlTransport(name, by_index.get(index, f"{job}-{index}"), kubectl),
        )
        for index, name in enumerate(names)
    )


def those_left(
    names: Sequence[str], pods: Sequence[Pod], job: str, earlier: Sequence[str] = ()
) -> tuple[Pod, ...]:
    """The pods that a round on these hosts began in, as far as they are there: the job may have made others since.

    Args:
        earlier: the names of those; none of a run that code began which did not record them.

    Raises:
        AllocationError: none is.
    """
    newest_first = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
    left = {
        pod.index: pod
        for pod in newest_first
        if 0 <= pod.index < len(names)
        and names[pod.index] in (_node(pod), _shared(pod))
        and (not earlier or pod.name in earlier)
    }
    if not left:
        raise AllocationError.by(ended(job, deleted(f"{job}-0"), names[0]))
    return tuple(left[index] for index in sorted(left))


def end_of_round(
    names: Sequence[str], left: Sequence[Pod], job: str, decisive: int | None = None
) -> AllocationEnd | None:
    """Why a round on these hosts cannot go on in the pods that are left: one of the first `decisive` has ended."""
    by_index = {pod.index: pod for pod in left}
    ends = {
        name: by_index[index].end if index in by_index else deleted(f"{job}-{index}")
        for index, name in enumerate(names[:decisive])
    }
    first = most_telling(ends)
    return ended(job, first[1], first[0]) if first else None


def _node(pod: Pod) -> str:
    return pod.spec.node_name or pod.name


def _shared(pod: Pod) -> str:
    return f"{_node(pod)}.{pod.index}"


def _of_job(job: str) -> str:
    """What selects the pods of one job alone: of the run's some may be of earlier rounds."""
    return f"{LABEL_JOB}={job}"


def _place(pod: Pod) -> str:
    return f" on {pod.spec.node_name}" if pod.spec.node_name else ""


async def _let_go(host: Host) -> None:
    """Say to a pod that nothing is wanted of it any more: it ends at once when it is deleted."""
    await host.transport.run(["rm", "-f", ALIVE], timeout=LET_GO_S)


async def _tell(host: Host) -> None:
    """Say to a pod that there is a controller."""
    await host.transport.run(["touch", ALIVE], timeout=TOUCH_S)


async def _keep(hosts: Sequence[Host], every_s: float) -> None:
    """Say to every pod, all the while, that there is a controller."""
    while True:
        await on_all(hosts, _tell)
        await asyncio.sleep(every_s)
