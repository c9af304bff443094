"""PyTorch: how its ranks are started, and what their last words mean (recorded with torch 2.13)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from run_benchmarks.frameworks.base import TRACEBACK, Framework
from utils.events import EventName, parse_line
from utils.stacks import RECORD, RECORD_PLACE

# What plug-ins are known to bring, module -> names of devices and of backends of collectives.
PLUGINS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "torch_npu": (("npu",), ("hccl",)),
    "torch_mlu": (("mlu",), ("cncl",)),
    "torch_musa": (("musa",), ("mccl",)),
}
RECORD_PLACE_BEFORE = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"  # as PyTorch called it until 2.8
ABORTED_AT_EXIT = "terminate called without an active exception"


class PyTorch(Framework):
    """PyTorch: rank 0 keeps the store that the ranks meet at (`init_method="env://"`)."""

    name = "pytorch"
    required_modules = ("torch",)
    device_types = ("cpu", "cuda", "xpu", "mtia")
    # torch.distributed's own table of backends (Backend.backend_capability); gloo takes cuda's tensors too, but by the
    # host's memory, so that the chips' links would not be measured.
    backends: Mapping[str, tuple[str, ...]] = {
        "gloo": ("cpu",),
        "nccl": ("cuda",),
        "ucc": ("cpu", "cuda"),
        "mpi": ("cpu", "cuda"),
        "xccl": ("xpu",),
    }
    lost_peer = (
        # gloo names its source file; the words alone might come from a download in the user's own code
        (
            ("gloo/transport/",),
            ("closed by peer", "reset by peer", "Broken pipe", "Socket closed", "refused", "Timed out"),
        ),
        (("gloo",), ("connectFullMesh failed",)),
        (("DistNetworkError", "DistStoreError"),),
        (("c10d",), ("recvValue", "sendBytes", "recvVector", "recvBytes"), ("failed",)),
        (("ncclRemoteError", "remote process exited or there was a network error"),),
        (("Connection closed by remote peer",),),
        (("Watchdog caught collective operation timeout",),),
        (("NCCL communicator was aborted",),),
    )

    # Some fifty lines below "Could not run 'aten::...' with arguments from the '...' backend": what others have.
    appendix = re.compile(r"(\[\w+\]:? *)?\w+: (fallthrough )?registered at \S+ \[[a-z ]+\]\s*")

    def unit_variables(self, log_dir: str) -> Mapping[str, str]:
        """Where PyTorch puts what its flight recorder has recorded; whether it records is left to it."""
        return dict.fromkeys((RECORD_PLACE, RECORD_PLACE_BEFORE), f"{log_dir}/{RECORD}")

    def aborted_at_exit(self, log_tail: str) -> bool:
        """torch with gloo may abort while the interpreter exits (exit code 134 or 139): threads still run.

        It says so as its last words. A rank 0 that wrote events must have written FINISHED last.
        """
        lines = log_tail.strip().splitlines()
        if not lines or lines[-1].strip() != ABORTED_AT_EXIT or TRACEBACK in log_tail:
            return False
        events = [event for line in lines if (event := parse_line(line)) and event.rank == 0]
        return not events or events[-1].name == EventName.FINISHED.value
