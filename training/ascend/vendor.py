"""Huawei's Ascend NPUs: how they are seen, listed and given to a container, and what they can do.

Peak FLOP/s are those of the cube units (matrices), dense, of what PyTorch calls one device: cores x clock x M x N x K
x 2, as CANN's own platform configuration has them (data/platform_config/Ascend910B2.ini: ai_core_cnt, cube_freq,
[DtypeMKN]). Huawei's figures for whole boards add the vector units to them: 376 for 910B2, 313 for 910B3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from utils.errors import FlagPerfError

DEVICE_TYPE = "npu"
PLUGIN = {"pytorch": "torch_npu"}
# Logic numbers, ascending only. ASCEND_VISIBLE_DEVICES is another variable: the Ascend Docker Runtime's.
VISIBLE_DEVICES_ENV = "ASCEND_RT_VISIBLE_DEVICES"
COLLECTIVE_BACKEND = {"pytorch": "hccl"}

# Unlike -v it makes no folder on a host that lacks the path.
_MOUNT = "--mount=type=bind,source={path},target={path},readonly"
# The set of vllm-ascend's installation guide and of torch_npu's docker/OVERVIEW, without npu-smi, which nothing here
# calls in a container; and what a monitor lacks, whose root has no capabilities.
CONTAINER_OPTIONS = {
    "--device=/dev/davinci{n}": "the chip, by its physical number",
    "--device=/dev/davinci_manager": "the driver's control",
    "--device=/dev/devmm_svm": "its memory manager",
    "--device=/dev/hisi_hdc": "its channel between host and device",
    "--cap-add=DAC_OVERRIDE": "these nodes are open to the user and group HwHiAiUser alone (crw-rw----)",
    _MOUNT.format(path="/usr/local/Ascend/driver/lib64"): "the user's side of the host's driver",
    _MOUNT.format(path="/usr/local/Ascend/driver/version.info"): "the driver's version, for CANN",
    _MOUNT.format(path="/usr/local/dcmi"): "libdcmi.so, by which the monitor samples",
    _MOUNT.format(path="/etc/ascend_install.info"): "where the driver is, for CANN",
}

# Ascend Device Plugin (MindCluster), of the 910 series; it can put the type into the name: `huawei.com/Ascend910B2`.
KUBERNETES_RESOURCE = "huawei.com/Ascend910"

_CONFIGURATION = (
    "CANN 9's platform_config: {} cores x {} GHz x 16 x 16 x 16 x 2 (int8: K = 32), cube units, dense"
)
_MEMORY = "total_memory of torch_npu 2.10 on a board of 65,536 MiB; npu-smi prints those"
_LINKS = "Atlas 800T A2, EDOC1100317202: 7 HCCS links of 56 GB/s"

# `device_names` are parts of what parse_device_list returns. The comma ends a name: the first generation calls itself
# 910B too, 910B4-1 is another board than 910B4.
CHIPS = {
    "910B2": {
        "device_names": ["910B2,", "910B2C,"],
        "memory_gib": 60.9,
        "peak_flops": {"bf16": 353.9e12, "fp16": 353.9e12, "fp32": 88e12, "int8": 707.8e12},
        "memory_bandwidth": 1.6e12,
        "link_bandwidth": {"chip": 392e9},
        "source": {
            "peak_flops": _CONFIGURATION.format(24, 1.8) + "; fp32: Ascend/DrivingSDK, devices_info.csv",
            "memory_gib": _MEMORY,
            "memory_bandwidth": "Ascend/DrivingSDK, performance-predict, 910B",
            "link_bandwidth": _LINKS,
        },
    },
    "910B3": {
        "device_names": ["910B3,"],
        "memory_gib": 60.9,
        "peak_flops": {"bf16": 294.9e12, "fp16": 294.9e12, "int8": 589.8e12},
        "link_bandwidth": {"chip": 392e9},
        "source": {
            "peak_flops": _CONFIGURATION.format(20, 1.8),
            "memory_gib": _MEMORY,
            "link_bandwidth": _LINKS,
        },
    },
    # A module of two dies, each a device of its own. Dies with 20 and with 24 cores have this one name: no peaks.
    "A3": {
        "device_names": ["Ascend910, 65536 MiB"],
        "memory_gib": 60.9,
        "peak_flops": {},
        "source": {"memory_gib": _MEMORY},
    },
}

# `npu-smi info -m` names chips too, but neither their memory nor their health.
LIST_DEVICES_COMMAND = ["npu-smi", "info"]

_BORDER = re.compile(r"\+[-=+]+\+?")
_REMEDY = "run npu-smi info and npu-smi info -t health on the host; a chip that has failed needs a reset or a reboot"


def parse_device_list(stdout: str) -> list[str]:
    """The chips in the output of LIST_DEVICES_COMMAND, e.g. `910B2, 65536 MiB`; the two dies of an A3 are two.

    Raises:
        FlagPerfError: there is no whole table, a chip is not well, or one is missing between two others.
    """
    rows = list(_device_rows([line.strip() for line in stdout.splitlines() if line.strip()]))
    chips = [_chip(*pair) for pair in zip(rows[::2], rows[1::2], strict=False)]
    numbers = {number for number, _ in chips}
    missing = sorted(set(range(min(numbers, default=0), max(numbers, default=0))) - numbers)
    if missing or len(rows) % 2:
        what = f"NPU {', '.join(map(str, missing))}" if missing else "the second line of the last NPU"
        raise FlagPerfError(f"npu-smi does not list {what}", remedy=_REMEDY)
    return [chip for _, chip in chips]


def _chip(first: list[str], second: list[str]) -> tuple[int, str]:
    """The NPU's number, and the chip with its memory, of the two rows of cells that a chip has."""
    words = " ".join(first[:-2]).split()
    pairs = re.findall(r"\d{1,9}\s*/\s*(\d{1,9})", second[-1])
    if len(words) != 2 or not words[0].isdecimal() or not pairs:
        raise FlagPerfError(f"npu-smi reports trouble: {' | '.join(first + second)}", remedy=_REMEDY)
    if first[-2] != "OK":
        raise FlagPerfError(f"npu-smi reports NPU {words[0]} in health {first[-2]}", remedy=_REMEDY)
    return int(words[0]), f"{words[1]}, {pairs[-1]} MiB"  # the last pair is the HBM's; before it stands DDR


def _device_rows(lines: list[str]) -> Iterator[list[str]]:
    """The cells of the rows between the table's two header lines and the table of processes."""
    headers = [place for place, line in enumerate(lines) if line.startswith("|") and "Health" in line]
    if lines and not headers:
        raise FlagPerfError(f"npu-smi reports trouble: {lines[-1]}", remedy=_REMEDY)
    for line in lines[headers[0] + 2 :] if lines else []:
        if "Process id" in line:
            return
        if _BORDER.fullmatch(line):
            continue
        if not (line.startswith("|") and line.endswith("|")):
            raise FlagPerfError(f"npu-smi reports trouble: {line}", remedy=_REMEDY)
        yield [cell.strip() for cell in line.strip("|").split("|")]
