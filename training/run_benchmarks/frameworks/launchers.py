"""What starts the ranks of a node: FlagPerf's own launcher, or PyTorch's torchrun.

FlagPerf's own starts in 30 ms, where torchrun imports torch first (0.9 s of CPU time on every node), it knows
which rank failed first, where torchrun looks ten times a second and may blame a rank that only lost its peer,
and it serves every framework and every version of one. torchrun is there for scripts that expect it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Protocol

from run_benchmarks.frameworks.base import Job
from utils.errors import FlagPerfError
from utils.node import read_rank_ends

ENDED_BY_LAUNCHER = (0, -signal.SIGTERM, -signal.SIGKILL)
# A failure in torchrun's summary (torch 2.13). It puts the root cause at the end, after the other failures.
FAILURE = re.compile(
    r"^ *rank +: (?P<rank>\d+) \(local_rank: \d+\)\n *exitcode +: (?P<code>-?\d+)", re.MULTILINE
)
ROOT_CAUSE = "Root Cause (first observed failure):"


class Launcher(Protocol):
    """Starts the ranks of a node through utils.rank and ends with them, without restarts."""

    def argv(self, job: Job, node_rank: int, variables: Mapping[str, str]) -> tuple[str, ...]:
        """The command; `variables` are added to each rank's environment (see utils.node for their `{rank}`)."""
        ...

    def failed_ranks(self, start_log: str) -> tuple[tuple[int, int], ...]:
        """As Framework.failed_ranks gives them."""
        ...


class NodeLauncher:
    """utils.node."""

    def argv(self, job: Job, node_rank: int, variables: Mapping[str, str]) -> tuple[str, ...]:
        """utils.node, which starts utils.rank once a process, which becomes the training script."""
        where = {
            "--nnodes": job.nnodes,
            "--node-rank": node_rank,
            "--nproc": job.nproc,
            "--master-addr": job.master_addr,
            "--master-port": job.master_port,
            "--log-dir": job.log_dir,
        }
        added = [word for item in variables.items() for word in ("--set", "=".join(item))]
        return (job.python, "-m", "utils.node", *_options(where), *added, "--", job.python, "-u", *job.script)

    def failed_ranks(self, start_log: str) -> tuple[tuple[int, int], ...]:
        """Those that failed before the launcher stopped any, then those that it stopped but that ended otherwise."""
        ends = read_rank_ends(start_log)
        first = [end for end in ends if not end.stopped and end.exit_code]
        then = [end for end in ends if end.stopped and end.exit_code not in ENDED_BY_LAUNCHER]
        return tuple((end.rank, end.exit_code) for end in (*first, *then))


class Torchrun:
    """torchrun (`python -m torch.distributed.run`), without its waste of time."""

    def argv(self, job: Job, node_rank: int, variables: Mapping[str, str]) -> tuple[str, ...]:
        """torchrun, which starts utils.rank once a process, which becomes the training script."""
        where = {
            "--nnodes": job.nnodes,
            "--node_rank": node_rank,
            "--master_addr": job.master_addr,
            "--master_port": job.master_port,
            "--nproc_per_node": job.nproc,
            "--max-restarts": 0,
        }
        if variables:
            raise FlagPerfError("torchrun adds no variables of its own to a rank", where="RANK_LAUNCHER")
        torchrun = (job.python, "-m", "benchmarks.driver.pytorch.torchrun", *_options(where), "--no-python")
        rank = (job.python, "-m", "utils.rank", "--log-dir", job.log_dir, "--")
        return (*torchrun, *rank, job.python, "-u", *job.script)

    def failed_ranks(self, start_log: str) -> tuple[tuple[int, int], ...]:
        """The failures in torchrun's summary, its root cause first; not those that it ended itself.

        torchrun polls its ranks ten times a second and tells apart the times of their ends by the second:
        of two that fail together it blames the lower rank.
        """
        others, _, root = start_log.rpartition(ROOT_CAUSE)
        if not others:
            return ()
        ended_by_launcher = -signal.SIGTERM
        return (*_failures(root), *(failed for failed in _failures(others) if failed[1] != ended_by_launcher))


LAUNCHERS: Mapping[str, Launcher] = {"flagperf": NodeLauncher(), "torchrun": Torchrun()}


def _options(values: Mapping[str, object]) -> list[str]:
    return [word for name, value in values.items() for word in (name, str(value))]


def _failures(report: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(found["rank"]), int(found["code"])) for found in FAILURE.finditer(report))
