"""PaddlePaddle: ranks are started by FlagPerf's own launcher; Paddle's reports were recorded with paddle 3.3.

`paddle.distributed.launch` is not used: it finds a host's address by the host's own name (127.0.1.1 on many
distributions), writes the whole environment into the logs, and looks for failures once a second only.
"""

from __future__ import annotations

import re

from run_benchmarks.frameworks.base import Job
from run_benchmarks.frameworks.last_words import only_lost_peers
from run_benchmarks.frameworks.launchers import Launcher

LOST_PEER = re.compile(
    # gloo and the store name their source files; the words alone might come from the user's own code
    r"gloo/transport/.*(closed by peer|reset by peer|Broken pipe|Read error|Socket closed|refused|TIMEOUT)"
    r"|TCP connection reset by peer.*distributed/store/"
    r"|cannot join the \w+ process group|no answer within [\d.]+ s|waited [\d.]+ s for \d+ other ranks"
    r"|ncclRemoteError|remote process exited or there was a network error"
)


class Paddle:
    """utils.node on every node, without restarts: a failure is a result."""

    name = "paddle"
    required_modules: tuple[str, ...] = ("paddle",)

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def launch_argv(self, job: Job, node_rank: int) -> tuple[str, ...]:
        """The launcher's command, with the variables that Paddle reads."""
        return self._launcher.argv(job, node_rank, _variables(job, node_rank))

    def failed_ranks(self, start_log: str) -> tuple[tuple[int, int], ...]:
        """As the launcher saw them."""
        return self._launcher.failed_ranks(start_log)

    def is_secondary_failure(self, log_tail: str) -> bool:
        """Whether every exception in the tail is one of a lost connection to a peer (gloo, NCCL, the store)."""
        return only_lost_peers(log_tail, LOST_PEER)

    def aborted_at_exit(self, log_tail: str) -> bool:
        """Never: Paddle has not been seen to fall over the interpreter's own exit."""
        return False


def _variables(job: Job, node_rank: int) -> dict[str, str]:
    """What Paddle reads, as its own launcher would set it; `{...}` is filled in for each rank."""
    addresses = job.hosts if job.nnodes > 1 and job.hosts else (job.master_addr,)
    endpoints = [f"{host}:{job.master_port + local}" for host in addresses for local in range(job.nproc)]
    own = addresses[node_rank] if node_rank < len(addresses) else job.master_addr
    return {
        "PADDLE_TRAINER_ID": "{rank}",
        "PADDLE_TRAINERS_NUM": "{world_size}",
        "PADDLE_RANK_IN_NODE": "{local_rank}",
        "PADDLE_GLOBAL_RANK": "{rank}",
        "PADDLE_GLOBAL_SIZE": "{world_size}",
        "PADDLE_LOCAL_RANK": "{local_rank}",
        "PADDLE_LOCAL_SIZE": "{local_world_size}",
        "PADDLE_NNODES": str(job.nnodes),
        "PADDLE_MASTER": f"{job.master_addr}:{job.master_port}",
        "PADDLE_CURRENT_ENDPOINT": f"{own}:{{own_port}}",
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "FLAGS_selected_gpus": "{local_rank}",
        "FLAGS_selected_xpus": "{local_rank}",
    }
