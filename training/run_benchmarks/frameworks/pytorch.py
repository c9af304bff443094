"""PyTorch: ranks are started by torchrun; its reports were recorded with torch 2.13."""

from __future__ import annotations

import re
import signal

from run_benchmarks.frameworks.base import Job
from run_benchmarks.frameworks.last_words import TRACEBACK, only_lost_peers
from utils.events import EventName, parse_line

# A failure in torchrun's summary. It puts the root cause at the end, after the other failures.
FAILURE = re.compile(
    r"^ *rank +: (?P<rank>\d+) \(local_rank: \d+\)\n *exitcode +: (?P<code>-?\d+)", re.MULTILINE
)
ROOT_CAUSE = "Root Cause (first observed failure):"
LOST_PEER = re.compile(
    # gloo names its source file; the words alone might come from a download in the user's own code
    r"gloo/transport/.*(closed by peer|reset by peer|Broken pipe|Socket closed|refused|Timed out)"
    r"|gloo.*connectFullMesh failed"
    r"|Dist(Network|Store)Error"
    r"|c10d.*(recvValue|sendBytes|recvVector|recvBytes).*failed"
    r"|ncclRemoteError|remote process exited or there was a network error"
    r"|Connection closed by remote peer"
    r"|Watchdog caught collective operation timeout"
    r"|NCCL communicator was aborted"
)
ABORTED_AT_EXIT = "terminate called without an active exception"


class PyTorch:
    """torchrun (`python -m torch.distributed.run`) on every node, without restarts: a failure is a result."""

    name = "pytorch"
    required_modules: tuple[str, ...] = ("torch",)

    def launch_argv(self, job: Job, node_rank: int) -> tuple[str, ...]:
        """torchrun, which starts utils.rank once a process, which becomes the training script."""
        where = {
            "--nnodes": job.nnodes,
            "--node_rank": node_rank,
            "--master_addr": job.master_addr,
            "--master_port": job.master_port,
            "--nproc_per_node": job.nproc,
            "--max-restarts": 0,
        }
        options = [word for name, value in where.items() for word in (name, str(value))]
        rank = (job.python, "-m", "utils.rank", "--log-dir", job.log_dir, "--")
        script = (job.python, "-u", *job.script)
        return (
            job.python,
            "-m",
            "benchmarks.driver.pytorch.torchrun",
            *options,
            "--no-python",
            *rank,
            *script,
        )

    def failed_rank(self, start_log: str) -> tuple[int, int] | None:
        """The root cause in torchrun's summary."""
        failed = self.failed_ranks(start_log)
        return failed[0] if failed else None

    def failed_ranks(self, start_log: str) -> tuple[tuple[int, int], ...]:
        """The failures in torchrun's summary, its root cause first; not those that it ended itself.

        torchrun polls its ranks ten times a second and tells apart the times of their ends by the second:
        of two that fail together it blames the lower rank.
        """
        others, _, root = start_log.rpartition(ROOT_CAUSE)
        if not others:
            return ()
        blamed = _failures(root)
        ended_by_launcher = -signal.SIGTERM
        return (*blamed, *(failure for failure in _failures(others) if failure[1] != ended_by_launcher))

    def is_secondary_failure(self, log_tail: str) -> bool:
        """Whether every exception in the tail is one of a lost connection to a peer (gloo, NCCL, the store)."""
        return only_lost_peers(log_tail, LOST_PEER)

    def aborted_at_exit(self, log_tail: str) -> bool:
        """torch with gloo may abort while the interpreter exits (exit code 134 or 139): threads still run.

        It says so as its last words. A rank 0 that wrote events must have written FINISHED last.
        """
        lines = log_tail.strip().splitlines()
        if not lines or lines[-1].strip() != ABORTED_AT_EXIT or TRACEBACK in log_tail:
            return False
        events = [event for line in lines if (event := parse_line(line)) and event.rank == 0]
        return not events or events[-1].name == EventName.FINISHED.value


def _failures(report: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(found["rank"]), int(found["code"])) for found in FAILURE.finditer(report))
