"""MetaX GPUs (MACA): how they are seen, listed and given to a container, and what they can do.

MetaX builds PyTorch itself: its devices are called `cuda` there, and its collectives (MCCL) `nccl`.
"""

from __future__ import annotations

import re

from utils.errors import FlagPerfError

DEVICE_TYPE = "cuda"
COLLECTIVE_BACKEND = {"pytorch": "nccl"}
# FlagPerf's operation/configs/host.yaml. CUDA_VISIBLE_DEVICES is read too (FlagPerf's training sets it); which of both
# wins is not known.
VISIBLE_DEVICES_ENV = "MACA_VISIBLE_DEVICES"

# As mcPytorch's README has them. /dev/dri is one folder for all cards: a run sees those that the variable above names.
CONTAINER_OPTIONS = {
    "--device=/dev/mxcd": "the driver's node for computing, one for all cards",
    "--device=/dev/dri": "the cards and their render nodes; mx-smi reads its sensors through them",
    "--group-add=video": "the group to which the nodes in /dev/dri belong",
}

# MetaX's GPU operator (gpu-device), for whole devices.
KUBERNETES_RESOURCE = "metax-tech.com/gpu"

_MEMORY = "mx-smi: 65536 MiB"
_BANDWIDTH_C500 = (
    "https://ai.gitee.com/docs/compute/domestic-gpu; MACA's runtime names a 4096-bit bus at 1800 MHz: 1.84e12"
)
_BANDWIDTH_C550 = "FlagPerf, base/benchmarks/main_memory-bandwidth/metax/C550/README.md"

# No peaks: MetaX publishes none, and of the figures of others nobody says for which board they are (README.md).
CHIPS = {
    "C500": {
        "device_names": ["MXC500,", "MetaX C500,"],
        "memory_gib": 64.0,
        "peak_flops": {},
        "memory_bandwidth": 1.8e12,
        "link_bandwidth": {"chip": None, "host": 63e9},
        "power_w": 350,
        "source": {
            "memory_gib": _MEMORY,
            "memory_bandwidth": _BANDWIDTH_C500,
            "link_bandwidth": "mx-smi --show-pcie: 32 GT/s, x16; 128 of 130 bits are data",
            "power_w": "mx-smi --show-board-power: Limit 350 W",
        },
    },
    "C550": {
        "device_names": ["MXC550,", "MetaX C550,"],
        "memory_gib": 64.0,
        "peak_flops": {},
        "memory_bandwidth": 1.8e12,
        "source": {"memory_gib": _MEMORY, "memory_bandwidth": _BANDWIDTH_C550},
    },
}

# One line a GPU: `GPU#0    MXC500      0000:08:00.0   Available (UUID: GPU-...)`.
LIST_DEVICES_COMMAND = ["mx-smi", "-L"]

_HEADER = re.compile(r"\S+ +version: .*")
_DEVICE = re.compile(
    r"GPU#\d+ +(?P<name>\S+(?: +\S+)*?) +[^\s:]+:[^\s:]+:\S+ +(?P<state>Available|Not Available)\b"
)


def parse_device_list(stdout: str) -> list[str]:
    """The GPUs in the output of LIST_DEVICES_COMMAND, as `MXC500, Available`.

    Raises:
        FlagPerfError: a GPU is not available, or is cut into slices; a line is none of mx-smi's.
    """
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    return [_device(line) for line in lines if not _HEADER.fullmatch(line)]


def _device(line: str) -> str:
    device = _DEVICE.match(line)
    if device is None or device["state"] != "Available":
        raise FlagPerfError(
            f"mx-smi reports trouble: {line}",
            remedy="run mx-smi -L on the host; a GPU that is not available needs a reset or a reboot, and one that is "
            "cut into slices (SGPU) is no whole device",
        )
    return f"{device['name']}, {device['state']}"
