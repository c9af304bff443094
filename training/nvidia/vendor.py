"""NVIDIA GPUs: how they are seen, listed and given to a container, and what they can do.

Peak FLOP/s are the dense rates of the tensor cores (fp32: of the CUDA cores; int8: OP/s), per chip, at boost clock.
The data sheets of Hopper print the tensor-core rates with 2:4 sparsity, which doubles them; training has
no use of it.
"""

from __future__ import annotations

import re

from utils.errors import FlagPerfError

DEVICE_TYPE = "cuda"
VISIBLE_DEVICES_ENV = "CUDA_VISIBLE_DEVICES"
COLLECTIVE_BACKEND = {"pytorch": "nccl", "paddle": "nccl"}
# PyTorch's nested tensors call the variable-length flash kernels. (Paddle's cases ask Paddle itself.)
RAGGED_ATTENTION = ["pytorch"]

# No capability: the devices are open to every user, and so is what NVML tells of utilisation, power and energy.
CONTAINER_OPTIONS = {
    "--gpus all": "the NVIDIA Container Toolkit brings the devices, the driver's libraries and nvidia-smi by it",
}

# NVIDIA/k8s-device-plugin.
KUBERNETES_RESOURCE = "nvidia.com/gpu"

_AMPERE_PEAKS = {
    "fp64": 19.5e12, "fp32": 19.5e12, "tf32": 156e12, "bf16": 312e12, "fp16": 312e12, "int8": 624e12,
}  # fmt: skip
_HOPPER_PEAKS = {
    "fp64": 66.9e12, "fp32": 66.9e12, "tf32": 494.7e12, "bf16": 989.4e12, "fp16": 989.4e12, "int8": 1978.9e12,
    "fp8": 1978.9e12,
}  # fmt: skip

# `device_names` are parts of the lines that LIST_DEVICES_COMMAND prints. The comma ends the name: without it
# "NVIDIA H200" would also be an "NVIDIA H200 NVL", whose peak is lower.
CHIPS = {
    "A100": {
        "device_names": ["A100-SXM4-40GB,", "A100-SXM4-80GB,", "A100-SXM-80GB,"],
        # 40 or 80: the two boards compute alike, so they share configurations, sized for 40.
        "memory_gib": 40.0,
        "peak_flops": _AMPERE_PEAKS,
        "source": "NVIDIA A100 Tensor Core GPU data sheet, A100 SXM, dense",
    },
    "H100": {
        "device_names": ["NVIDIA H100 80GB HBM3,"],
        "memory_gib": 79.6,
        "peak_flops": _HOPPER_PEAKS,
        "source": "NVIDIA H100 Tensor Core GPU Architecture white paper, H100 SXM5, dense",
    },
    "H200": {
        "device_names": ["NVIDIA H200,"],
        "memory_gib": 140.4,
        "peak_flops": _HOPPER_PEAKS,
        "source": "the GPU of H100 SXM5 (the H200 data sheet prints the same rates); its white paper, dense",
    },
}

# One line a GPU, e.g. `NVIDIA A100-SXM4-40GB, 40960 MiB`.
LIST_DEVICES_COMMAND = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]

_DEVICE = re.compile(r"\S.*, (\d+ MiB|\[[^][]*\])")
_NO_DEVICES = "No devices were found"


def parse_device_list(stdout: str) -> list[str]:
    """The GPUs in the output of LIST_DEVICES_COMMAND, e.g. `NVIDIA H200, 143771 MiB`.

    Raises:
        FlagPerfError: a line is no GPU: the driver prints its troubles there too (a GPU fell off the bus).
    """
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    if lines == [_NO_DEVICES]:
        return []
    for line in lines:
        if not _DEVICE.fullmatch(line):
            raise FlagPerfError(
                f"nvidia-smi reports trouble: {line}",
                remedy="run nvidia-smi on the host; a GPU that does not answer needs a reset or a reboot",
            )
    return lines
