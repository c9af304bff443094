"""What a framework is: the way a job and a node rank become an argument list inside the container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """A distributed job, the same on every node. `script`: the training script and its arguments.

    Paths are as seen inside the unit; `log_dir` takes `rank<global rank>.out.log`.
    """

    nnodes: int
    nproc: int
    master_addr: str
    master_port: int
    log_dir: str
    script: tuple[str, ...]
    python: str = "python3"


class Framework(Protocol):
    """One training framework."""

    name: str
    required_modules: tuple[str, ...]

    def launch_argv(self, job: Job, node_rank: int) -> tuple[str, ...]:
        """The command that starts the node's ranks and ends when they have; it fails if one of them does."""
        ...

    def failed_rank(self, start_log: str) -> tuple[int, int] | None:
        """The global rank that the launcher says failed first on this node, and its exit code."""
        ...

    def is_secondary_failure(self, log_tail: str) -> bool:
        """Whether a rank with these last words died only because its peer did."""
        ...

    def aborted_at_exit(self, log_tail: str) -> bool:
        """Whether a rank that had finished was only aborted while its interpreter shut down."""
        ...
