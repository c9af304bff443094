"""PaddlePaddle: how its ranks are started, and what their last words mean (recorded with paddle 3.3).

`paddle.distributed.launch` is not used: it finds a host's address by the host's own name (127.0.1.1 on many
distributions), writes the whole environment into the logs, and looks for failures once a second only.
"""

from __future__ import annotations

from collections.abc import Mapping

from run_benchmarks.frameworks.base import Framework, LaunchJob


class Paddle(Framework):
    """PaddlePaddle: a rank knows the addresses of all others from its environment."""

    name = "paddle"
    required_modules = ("paddle",)
    device_types = ("cpu", "cuda", "xpu")
    backends: Mapping[str, tuple[str, ...]] = {
        "gloo": ("cpu",),
        "nccl": ("cuda",),
        "bkcl": ("xpu",),
        "xccl": (),
        "flagcx": (),
        "heter": (),
    }
    lost_peer = (
        # gloo and the store name their source files; the words alone might come from the user's own code
        (
            ("gloo/transport/",),
            (
                "closed by peer",
                "reset by peer",
                "Broken pipe",
                "Read error",
                "Socket closed",
                "refused",
                "TIMEOUT",
            ),
        ),
        (("TCP connection reset by peer",), ("distributed/store/",)),
        (("cannot join the ",), (" process group",)),
        (("no answer within ",), (" s",)),
        (("waited ",), (" s for ",), (" other ranks",)),
        (("ncclRemoteError", "remote process exited or there was a network error"),),
    )

    def rank_variables(self, job: LaunchJob, node_rank: int) -> Mapping[str, str]:
        """What Paddle reads, as its own launcher would set it."""
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
