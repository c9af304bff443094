"""What a framework is: how a node's ranks are started, and how their last words are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """One training job over `nnodes` nodes with `nproc` ranks each.

    master_addr, master_port: node 0, as every node reaches it. log_dir: where a node's rank logs go.
    script: the training script and its arguments. python: the interpreter's command. Paths are as the
    unit sees them. hosts: the nodes' hosts in the order of their ranks, as the nodes know each other.
    """

    nnodes: int
    nproc: int
    master_addr: str
    master_port: int
    log_dir: str
    script: tuple[str, ...]
    python: str = "python3"
    hosts: tuple[str, ...] = ()


class Framework(Protocol):
    """A training framework.

    name: without a version (`pytorch`). required_modules: the Python modules it cannot do without.
    """

    @property
    def name(self) -> str:
        """As in a case's key."""
        ...

    @property
    def required_modules(self) -> tuple[str, ...]:
        """What its ranks import: looked for where there is no image."""
        ...

    def launch_argv(self, job: Job, node_rank: int) -> tuple[str, ...]:
        """The command that starts the ranks of a node and ends when they have ended, with 0 only if all did."""
        ...

    def failed_ranks(self, start_log: str) -> tuple[tuple[int, int], ...]:
        """All ranks that failed by themselves: (global rank, exit code; negative for a signal), the blamed one first.

        A launcher sees two ranks that fail at nearly the same time in any order: where the blamed one is
        only a secondary failure, look at the others.
        """
        ...

    def is_secondary_failure(self, log_tail: str) -> bool:
        """Whether a rank, by the end of its log, failed only because a peer had failed or was cut off."""
        ...

    def aborted_at_exit(self, log_tail: str) -> bool:
        """Whether a rank, by the end of its log, was done and fell only over the interpreter's own exit.

        Rank 0's FINISHED event must be known besides: other ranks do not write one.
        """
        ...
