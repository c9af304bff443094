"""What an allocator is: where the hosts of a round come from, and when they are known.

A fixed list knows its hosts before the run; a scheduler names them when it grants them (Slurm: `salloc`
answers with a job ID and a list of nodes, each then reached by `srun --overlap --jobid=ID -w NODE`; Kubernetes:
the pods of a job, each reached by `kubectl exec POD` and by its peers under an address that is not its name).
The round asks for an allocation before it deploys anything, and gives it back when nothing of it is left there.
It needs no more than this: hosts in the order of their node ranks, and a transport to each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from run_benchmarks.hosts.granted import AllocationEnd, GrantedJob, Tenure
from run_benchmarks.plan.host_ranges import LONGEST_HOST
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.run_log import LOGGER
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError
from utils.records import FailureClass
from utils.text_files import shortened

LONGEST_LIST = 1000  # characters of what is stuck
SHOWN = 60  # characters of a name that is too long


@dataclass(frozen=True)
class Host:
    """A host that a round may use.

    name: as the user or the scheduler calls it: in logs, folders and results. No two of a run share one.
    address: by which the other hosts of its allocation reach it.

    Raises:
        AllocationError: no folder can have its name.
    """

    name: str
    address: str
    transport: Transport

    def __post_init__(self) -> None:
        if len(self.name.encode()) > LONGEST_HOST:
            message = (
                f"{shortened(self.name, SHOWN)}: no file can be named after more than {LONGEST_HOST} bytes"
            )
            remedy = "let the scheduler leave that node out, or give it a shorter name"
            raise AllocationError(message, where="", remedy=remedy)


@dataclass(frozen=True)
class Allocation:
    """The hosts of one round, in the order of their node ranks: `hosts[0]` is node 0, the master.

    Nodes may share a file system: whatever FlagPerf makes there is named by its run, node or content.
    tenure: how long they are granted; None where nobody takes them away. end: why that is over already.
    keep: lets what was granted stay when it is given back, for a controller that takes the run up; says within what
    time. None where what lies on the hosts stays there anyway.
    """

    hosts: tuple[Host, ...]
    tenure: Tenure | None = None
    end: AllocationEnd | None = None
    keep: Callable[[], str] | None = None


class AllocationError(FlagPerfError):
    """The hosts of a round were refused, or were not granted in time: a result of that round, not of the run.

    end: what became of what was granted, or was to be.
    """

    failure_class = FailureClass.HOSTS_NOT_ACQUIRED
    end: AllocationEnd | None = None

    @classmethod
    def by(cls, end: AllocationEnd) -> AllocationError:
        """Of hosts that were taken away before a round had them."""
        error = cls(end.message, where="", remedy=end.remedy)
        error.end = end
        return error


class NoAnswerError(AllocationError):
    """What a scheduler has of the hosts is not known: it did not answer, or its answer is no word on them.

    may_pass: to ask again may help.
    """

    may_pass = True


class NotTakenUpError(FlagPerfError):
    """A round whose hosts nobody can tell anything of is left as it is, and the run with it: it may go on there."""


class WaitEndedError(NotTakenUpError):
    """So the user wants it: by a signal, while the hosts were waited for. by: its name."""

    def __init__(self, case: str, by: str) -> None:
        message = f"what became of the hosts of {case} was not known yet when {by} ended the waiting for them"
        remedy = (
            "do this again, or end the run with `run.py stop`: it was left as it is, and its tasks may go on"
        )
        super().__init__(message, where="", remedy=remedy)
        self.by = by


class NotGivenBackError(FlagPerfError):
    """A scheduler was asked to end jobs, and does not confirm that it has.

    stuck: job -> its pods or nodes, in words.
    """

    def __init__(self, stuck: Mapping[str, str], after_s: float, *, where: str, remedy: str) -> None:
        listed = shortened("; ".join(stuck.values()), LONGEST_LIST)
        message = f"still there {after_s:g} s after it was asked to end: {listed}"
        super().__init__(message, where=where, remedy=remedy)
        self.stuck = stuck


@contextmanager
def warn_of_stuck_jobs() -> Iterator[None]:
    """Where hosts are not given back, only say so: their scheduler gives them to nobody, and there may be others."""
    try:
        yield
    except NotGivenBackError as error:
        LOGGER.warning(str(error))


class Allocator(Protocol):
    """Where hosts come from. An allocation that is lost shows by its tenure, and as lost transports.

    keeps: whether what lies on its hosts stays there when they are given back, as in Transport.
    """

    keeps: bool

    @property
    def standing(self) -> Sequence[Host]:
        """Hosts that are there for the whole run: they are checked once, before the first round."""
        ...

    def planned(self, case: CasePlan) -> Sequence[Host]:
        """Those standing hosts that every round of the case will get; none where they are known only then."""
        ...

    def acquire(
        self, case: CasePlan, earlier: GrantedJob | None = None
    ) -> AbstractAsyncContextManager[Allocation]:
        """Hosts for one round of the case, as long as the context lasts.

        Where hosts are known only then, `case.hosts` has those that the round had before it was taken up, or none;
        `earlier` is the job that they were of.

        Entering may take as long as a queue does, and may be cancelled: what was asked for is given back then, and
        what a round had before it was taken up left as it is. Leaving ends what was granted; units and
        files of the round are gone by then, or their host is out of reach. What does not end in time is not waited for
        by later rounds.

        Raises:
            AllocationError: there will be none.
            NoAnswerError: nobody can tell. Those that a round had before it was taken up are left as they are.
            NotGivenBackError: on leaving.
        """
        ...

    def revisit(self, names: Sequence[str]) -> AbstractAsyncContextManager[Sequence[Host]]:
        """Hosts that were taken away, for as long as the context lasts: to fetch what lies there and to clean up.

        Those of `names` that can be had soon; entering takes about a minute at most, and raises nothing of a host.
        """
        ...

    def avoid(self, host: str) -> None:
        """Grant this host no more, where there may be others: a round has failed there by its fault."""
        ...

    async def close(self) -> None:
        """Let go of the standing hosts, and of all that is left of what was granted. Idempotent.

        Raises:
            NotGivenBackError: something of it is still there after a while.
        """
        ...
