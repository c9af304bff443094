"""PyTorch: torchrun starts the ranks of a node and ends them together."""

from __future__ import annotations

import re

from run_benchmarks.frameworks.base import Job

# torchrun's report of the first failure; the exit code is negative where a signal ended the rank.
ROOT_CAUSE = re.compile(
    r"Root Cause \(first observed failure\):.*?rank\s*:\s*(\d+).*?exitcode\s*:\s*(-?\d+)", re.DOTALL
)
PEER_GONE = (
    "connection closed by peer",
    "connection reset by peer",
    "connection refused",
    "broken pipe",
    "distnetworkerror",
    "socket timeout",
    "timed out waiting",
    "remote process exited",
    "ncclremoteerror",
)
ABORT_AT_EXIT = "terminate called without an active exception"


class PyTorch:
    """Ranks by `torch.distributed.run` with a static rendezvous: the nodes are known, none may come or go."""

    name = "pytorch"
    required_modules = ("torch",)

    def launch_argv(self, job: Job, node_rank: int) -> tuple[str, ...]:
        """torchrun, which starts each rank through `utils.rank`."""
        launcher = (job.python, "-m", "torch.distributed.run")
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
        return (*launcher, *options, "--no-python", *rank, job.python, "-u", *job.script)

    def failed_rank(self, start_log: str) -> tuple[int, int] | None:
        """The rank in torchrun's block `Root Cause (first observed failure)`."""
        found = ROOT_CAUSE.search(start_log)
        return (int(found[1]), int(found[2])) if found else None

    def is_secondary_failure(self, log_tail: str) -> bool:
        """Whether the rank's last words are of a peer that had gone."""
        lowered = log_tail.lower()
        return any(text in lowered for text in PEER_GONE)

    def aborted_at_exit(self, log_tail: str) -> bool:
        """The abort of gloo's threads at interpreter exit: its message is the last line, and no traceback stands."""
        lines = log_tail.strip().splitlines()
        return bool(lines) and ABORT_AT_EXIT in lines[-1] and "Traceback" not in log_tail
