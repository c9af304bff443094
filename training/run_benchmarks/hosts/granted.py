"""What a scheduler says of hosts that it has granted: the record in a round's result, and why it takes them away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from utils.records import FailureClass, Verdict

MOST_NODES, LONGEST = 10_000, 2**12
_Text = Annotated[str, Field(max_length=LONGEST)]


@dataclass(frozen=True)
class GrantedJob:
    """The job that a round ran in: `allocation` of `round.json` and `result.json`.

    nodes: all of the job's, in the scheduler's order; a round may have used fewer. pods: Kubernetes' names
    of them; in the place of one that is gone another may come to the same node. tres: what the scheduler counts of the
    nodes, and `per_node` what was asked for on each, as Slurm writes both. submitted, started: as the scheduler's
    clock has them, ISO 8601 without an offset; waited_s: between the two. state: the last while the round had it; its
    end's where that took the hosts away.
    energy_j: by the scheduler's accounting, of all nodes from the job's start to its end; None where it has none.
    suspended_s: so long the job stood still while the round had it, suspended or stopped; suspended_before_s: before.
    """

    scheduler: _Text
    job: _Text
    nodes: Annotated[tuple[str, ...], Field(max_length=MOST_NODES)]
    state: _Text = ""
    partition: _Text = ""
    account: _Text = ""
    qos: _Text = ""
    tres: _Text = ""
    per_node: _Text = ""
    submitted: _Text = ""
    started: _Text = ""
    waited_s: float | None = None
    energy_j: float | None = None
    suspended_s: float = 0.0
    suspended_before_s: float = 0.0
    pods: Annotated[tuple[_Text, ...], Field(max_length=MOST_NODES)] = ()


@dataclass(frozen=True)
class AllocationEnd:
    """Why hosts are taken away.

    host: by whose fault, or empty. is_over: they are out of reach already; else that is about to come.
    """

    verdict: Verdict
    failure_class: FailureClass
    message: str
    evidence: str
    remedy: str
    host: str = ""
    is_over: bool = True


class Tenure(Protocol):
    """How long an allocation lasts."""

    @property
    def is_suspended(self) -> bool:
        """Whether what runs in it stands still, as far as is known now."""
        ...

    async def end(self) -> AllocationEnd:
        """Why the hosts are taken away, as soon as they are, or are about to be."""
        ...

    def at_end(self, script: str) -> None:
        """Let a shell script run on each of the hosts when they are taken away, in the short time that there is then.

        What a task started there may be none of the scheduler's: a container, say, goes on when its job has ended.
        """
        ...

    async def record(self) -> GrantedJob:
        """What the scheduler says of the allocation now, also after its end."""
        ...
