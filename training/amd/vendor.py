"""AMD Instinct GPUs: how they are seen, listed and given to a container, and what they can do.

Peaks are dense. Data sheets of the MI300 and MI350 series print rates with 2:4 sparsity too, twice as high.

A device is what PyTorch sees: a whole package in the mode SPX, one of two dies of an MI250 or MI250X, a part of a
package in another partition mode. A chip here is a package in SPX, or a die: a part of a package matches none.
"""

from __future__ import annotations

import re

from utils.errors import FlagPerfError

# PyTorch's own build for ROCm calls its devices as CUDA's (https://docs.pytorch.org/docs/2.15/notes/hip.html).
DEVICE_TYPE = "cuda"
VISIBLE_DEVICES_ENV = "HIP_VISIBLE_DEVICES"
COLLECTIVE_BACKEND = {"pytorch": "nccl"}  # RCCL, under NCCL's name

# https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html (2026-01-20). No capability and no
# --privileged. Its seccomp=unconfined is "optional", and its groups are for users other than root.
CONTAINER_OPTIONS = {
    "--device=/dev/kfd": "the compute interface of all AMD GPUs",
    "--device=/dev/dri": "a render node for each GPU",
}

# ROCm/k8s-device-plugin.
KUBERNETES_RESOURCE = "amd.com/gpu"

_MI250_GUIDE = "AMD, Instinct MI250 microarchitecture (ROCm/ROCm docs/conceptual/gpu-arch/mi250.md)"
_MI300_GUIDE = "AMD, Instinct MI300 microarchitecture (ROCm/ROCm docs/conceptual/gpu-arch/mi300.md)"
_TABLE = "stas00/ml-engineering, compute/accelerator, from AMD's product pages, dense"

# A die of CDNA 2 is half a package: 362.1 TFLOP/s of an MI250. Rates of matrix cores, fp32 and fp64 included.
_MI250_PEAKS = {"fp64": 45.25e12, "fp32": 45.25e12, "bf16": 181.05e12, "fp16": 181.05e12, "int8": 181.05e12}
_MI300_PEAKS = {
    "fp64": 163.4e12, "fp32": 163.4e12, "tf32": 653.7e12, "bf16": 1307.4e12, "fp16": 1307.4e12, "int8": 2614.9e12,
    "fp8": 2614.9e12,
}  # fmt: skip
# AMD prints 2.5 and 5 PFLOP/s, and no tf32.
_MI355_PEAKS = {
    "fp64": 78.6e12, "fp32": 157.3e12, "bf16": 2.5e15, "fp16": 2.5e15, "int8": 5e15, "fp8": 5e15,
}  # fmt: skip

# `device_names` are parts of what parse_device_list makes of the driver's topology. The count of compute units (CUs)
# tells a whole package from a part of one.
CHIPS = {
    "MI250": {
        "device_names": ["gfx90a, 104 CUs, PCI 0x740c"],
        "memory_gib": None,
        "peak_flops": _MI250_PEAKS,
        "memory_bandwidth": 1.6e12,
        "source": {
            "": f"{_MI250_GUIDE}: half a package",
            "device_names": "rocminfo in ROCm/rocm_smi_lib issue 160",
        },
    },
    "MI250X": {
        "device_names": ["gfx90a, 110 CUs,"],
        "memory_gib": None,
        "peak_flops": {"bf16": 191.5e12, "fp16": 191.5e12, "int8": 191.5e12},
        "source": f"{_TABLE}: half a package",
    },
    "MI300X": {
        "device_names": ["gfx942, 304 CUs, PCI 0x74a1", "gfx942, 304 CUs, PCI 0x74b5"],
        "memory_gib": 191.98,
        "peak_flops": _MI300_PEAKS,
        "memory_bandwidth": 5.3e12,
        "link_bandwidth": {"chip": 448e9, "host": 63e9},
        "power_w": 750,
        "source": {
            "": _MI300_GUIDE,
            "memory_gib": "196592 MB in amd-smi, AMD's ROCm installation page",
            "power_w": "amd-smi, AMD's ROCm installation page; MLPerf's name of the system",
            "link_bandwidth": f"{_MI300_GUIDE}: 7 links and PCIe 5.0 x16; 32 GT/s x 16 a link (Linux, amdgpu_xgmi.h)",
        },
    },
    "MI325X": {
        "device_names": ["gfx942, 304 CUs, PCI 0x74a5"],
        "memory_gib": None,
        "peak_flops": {"tf32": 653.7e12, "fp32": 163.4e12, "bf16": 1307e12, "fp16": 1307e12},
        "source": _TABLE,
    },
    "MI355X": {
        "device_names": ["gfx950, 256 CUs, PCI 0x75a3"],
        "memory_gib": 287.98,
        "peak_flops": _MI355_PEAKS,
        "memory_bandwidth": 8e12,
        "power_w": 1400,
        "source": {
            "": f"{_TABLE}, as AMD prints them",
            "memory_gib": "294896 MB in amd-smi 26.2.1, AMD's ROCm documentation",
            "power_w": "amd-smi 26.2.1, AMD's ROCm documentation",
        },
    },
}

# The driver's own topology: a host needs nothing of ROCm but the driver. A GPU whose properties may not be read is an
# error of grep. One line a property, e.g. `/sys/class/kfd/kfd/topology/nodes/2/properties:simd_count 1216`.
_PROPERTIES = ("gfx_target_version", "simd_count", "simd_per_cu", "vendor_id", "device_id")
LIST_DEVICES_COMMAND = [
    "grep",
    "--recursive",
    "--include=properties",
    "--extended-regexp",
    f"^({'|'.join(_PROPERTIES)}) ",
    "/sys/class/kfd/kfd/topology/nodes",
]

_LINE = re.compile(r"\S*/nodes/(\d+)/properties:(\w+) (\d+)")
_AMD = 0x1002


def parse_device_list(stdout: str) -> list[str]:
    """The GPUs in the output of LIST_DEVICES_COMMAND, in the driver's order, e.g. `gfx942, 304 CUs, PCI 0x74a1`.

    Raises:
        FlagPerfError: a line is no property, or a GPU lacks one.
    """
    nodes: dict[int, dict[str, int]] = {}
    for line in filter(None, map(str.strip, stdout.splitlines())):
        match = _LINE.fullmatch(line)
        if match is None:
            raise FlagPerfError(
                f"the driver's topology is not understood: {line}",
                remedy="run amd-smi or dmesg on the host; a GPU that does not answer needs a reset or a reboot",
            )
        nodes.setdefault(int(match[1]), {})[match[2]] = int(match[3])
    return [_name(number, nodes[number]) for number in sorted(nodes) if nodes[number].get("simd_count")]


def _name(number: int, node: dict[str, int]) -> str:
    missing = [name for name in _PROPERTIES if not node.get(name)]
    if missing:
        raise FlagPerfError(
            f"GPU of topology node {number} has no {', '.join(missing)}",
            remedy="run amd-smi on the host: the GPU or its driver is not well",
        )
    vendor = "" if node["vendor_id"] == _AMD else f", vendor 0x{node['vendor_id']:x}"
    cus = node["simd_count"] // node["simd_per_cu"]
    return f"{_architecture(node['gfx_target_version'])}, {cus} CUs, PCI 0x{node['device_id']:04x}{vendor}"


def _architecture(version: int) -> str:
    """90402 -> gfx942, 90010 -> gfx90a: two decimal digits each of minor and stepping, which are named in hex."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
