"""Moore Threads GPUs (MUSA): how they are seen, listed and given to a container, and what they can do.

Peaks are the dense rates of the tensor cores; fp32: of the vector units (int8: OP/s).
"""

from __future__ import annotations

import re

from utils.errors import FlagPerfError

DEVICE_TYPE = "musa"
PLUGIN = {"pytorch": "torch_musa"}
COLLECTIVE_BACKEND = {"pytorch": "mccl"}
VISIBLE_DEVICES_ENV = "MUSA_VISIBLE_DEVICES"

# As FlagOS starts its images (github.com/flagos-ai/build-infra, .github/build-config.yml); no capability is asked for.
CONTAINER_OPTIONS = {
    "--runtime=mthreads": "Moore Threads' container toolkit brings the devices and mthreads-gmi, and the driver's "
    "libraries in place of those of the image, which are empty",
    "--env=MTHREADS_VISIBLE_DEVICES=all": "which devices the toolkit brings; none without it",
}

# Moore Threads' GPU operator, for whole devices.
KUBERNETES_RESOURCE = "mthreads.com/gpu"

_S4000_PEAKS = {
    "fp64": None, "fp32": 25e12, "tf32": 50e12, "bf16": 100e12, "fp16": 100e12, "int8": 200e12,
}  # fmt: skip
_S4000_SHEET = "https://docs.mthreads.com/s4000/s4000-doc-online/product_specifications"

CHIPS = {
    "S4000": {
        "device_names": ["MTT S4000,"],
        "memory_gib": 48.0,
        "peak_flops": _S4000_PEAKS,
        "memory_bandwidth": 768e9,
        "link_bandwidth": {"chip": None, "host": 63e9},
        "power_w": 450,
        "source": {
            "": _S4000_SHEET,
            "memory_gib": "mthreads-gmi: 49152MiB",
            "link_bandwidth": f"{_S4000_SHEET}: PCIe 5.0 x16, 32 GT/s a lane, of which 128 of 130 bits are data",
        },
    },
    "S5000": {
        "device_names": ["MTT S5000,"],
        "memory_gib": 80.0,
        "peak_flops": {},  # the press has three figures for fp8, Moore Threads none for any type (README.md)
        "memory_bandwidth": 1.6e12,
        "power_w": 950,
        "source": {
            "memory_gib": "mthreads-gmi: 81920MiB",
            "memory_bandwidth": "musaInfo of a board: 640 bits at 20 GHz (20 Gbit/s a pin)",
            "power_w": "mthreads-gmi --query --json, driver 3.3.5: Current Power Limit 950.00W",
        },
    },
}

# A table: three lines a GPU (name, bus, memory; kind, lanes, temperature; ECC).
LIST_DEVICES_COMMAND = ["mthreads-gmi"]

_HEADING = re.compile(r"ID +Name *\|.*")
_DEVICE = re.compile(
    r"\d+ +(?P<name>[^|\s]+(?: +[^|\s]+)*) *\|[0-9a-f:.]+ *\|\S+ +(?P<used>\d+)MiB\((?P<total>\d+)MiB\)", re.I
)
_KIND = re.compile(r"(?P<kind>[A-Z][A-Za-z]+( [A-Z][a-z]+)?)( +P\d+)? *\|\d+x\(\d+x\) *\|.*")
_ECC = re.compile(r"\| *\S.*")
_END = re.compile(r"-+")


def parse_device_list(stdout: str) -> list[str]:
    """The GPUs in the output of LIST_DEVICES_COMMAND, as `MTT S4000, 49152 MiB`.

    Raises:
        FlagPerfError: a GPU is a virtual one or shared, or its memory is not seen whole; a line is none of the table's.
    """
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    start = next((number for number, line in enumerate(lines, 1) if _HEADING.fullmatch(line)), None)
    if start is None:
        return _none(lines)
    rows = [line for line in _table(lines[start:]) if not line.startswith("+")]
    return _devices([line for line in rows if not _ECC.fullmatch(line)][1:])


def _none(lines: list[str]) -> list[str]:
    if lines:
        raise _trouble(lines[0])
    return []


def _table(lines: list[str]) -> list[str]:
    end = next((number for number, line in enumerate(lines) if _END.fullmatch(line)), len(lines))
    return lines[:end]


def _devices(rows: list[str]) -> list[str]:
    """Two lines a GPU: what it is and has, and which kind it is."""
    devices = []
    for first, second in zip(rows[::2], [*rows[1::2], ""], strict=False):
        device, kind = _DEVICE.fullmatch(first), _KIND.fullmatch(second)
        if device is None or kind is None:
            raise _trouble(second if device else first)
        if kind["kind"] != "Physical":
            raise _trouble(f"{device['name']} is no physical device but: {kind['kind']}")
        if int(device["used"]) > int(device["total"]):
            raise _trouble(
                f"{device['name']} uses {device['used']} of {device['total']} MiB: is the IOMMU off?"
            )
        devices.append(f"{device['name']}, {device['total']} MiB")
    return devices


def _trouble(words: str) -> FlagPerfError:
    return FlagPerfError(
        f"mthreads-gmi reports trouble: {words}",
        remedy="run mthreads-gmi on the host; a GPU that does not answer needs a reset or a reboot",
    )
