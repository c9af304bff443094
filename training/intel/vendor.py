"""Intel Data Center GPUs Max (XPU): how they are seen, listed and given to a container.

A device is a stack, as PyTorch sees it in the driver's hierarchy FLAT: a Max 1550 has two, a Max 1100 is one.

No chip has a peak. For a Max 1550's bf16 there are 832 TFLOP/s a card at 1600 MHz, and 681.6 or 596.4 at 1300 MHz; for
a Max 1100 there are measurements alone. See the questions in README.md.
"""

from __future__ import annotations

import re

from utils.errors import FlagPerfError

# PyTorch's own build, since 2.5, without a plug-in: https://docs.pytorch.org/docs/2.15/notes/get_start_xpu.html
DEVICE_TYPE = "xpu"
VISIBLE_DEVICES_ENV = "ZE_AFFINITY_MASK"  # of Level Zero; stacks, in the hierarchy FLAT
COLLECTIVE_BACKEND = {"pytorch": "xccl"}  # PyTorch's own since 2.8: intel/torch-xpu-ops, README.md

# docker/README.md of intel/intel-extension-for-pytorch@v2.8.10+xpu, and uxlfoundation/oneCCL issue 217.
CONTAINER_OPTIONS = {
    "--device=/dev/dri": "a render node for each card",
    "--volume=/dev/dri/by-path:/dev/dri/by-path": "oneCCL opens the cards by it",
    "--cap-add=SYS_PTRACE": "oneCCL exchanges memory handles between ranks (pidfd)",
}

_IDS = "Intel's Kubernetes resource drivers: PCI device ids of the Max series"

CHIPS = {
    "Max1550": {
        "device_names": ["PCI 8086:0bd5, stack ", "PCI 8086:0bd6, stack "],
        "memory_gib": 64.0,
        "peak_flops": {},
        "memory_bandwidth": 1.6384e12,
        "source": {
            "": "Intel ARK 232873, half a card (glennklockwood.com/garden/processors/pvc)",
            "device_names": _IDS,
        },
    },
    "Max1100": {
        "device_names": ["PCI 8086:0bd9, stack ", "PCI 8086:0bda, stack ", "PCI 8086:0bdb, stack "],
        "memory_gib": 48.0,
        "peak_flops": {},
        "power_w": 300,
        "source": {"": "Intel's announcement of the Max series: 48 GB, 300 W", "device_names": _IDS},
    },
}
_STACKS = {"0bd0": 2, "0bd5": 2, "0bd6": 2}  # of a card; one where nothing is said

# PCI devices of Intel's that are display controllers without a screen: a host needs no tool of Intel's for it. One line
# a card, e.g. `0000:29:00.0 Display controller [0380]: Intel Corporation Ponte Vecchio 1T [8086:0bd5] (rev 2f)`.
LIST_DEVICES_COMMAND = ["lspci", "-D", "-nn", "-d", "8086::0380"]

_CARD = re.compile(
    r"[0-9a-f:]+\.(?P<function>\d) Display controller \[0380\]: (?:Intel Corporation )?(?P<name>.*?) "
    r"\[8086:(?P<id>[0-9a-f]{4})\](?: \(rev (?P<revision>[0-9a-f]{2})\))?.*",
    re.DOTALL,
)
_ALL_ONES = "ff"  # what a bus reads of a card that is not there any more


def parse_device_list(stdout: str) -> list[str]:
    """The stacks in the output of LIST_DEVICES_COMMAND, e.g. `Ponte Vecchio 1T, PCI 8086:0bd5, stack 0`.

    Raises:
        FlagPerfError: a line is no card, or a card does not answer.
    """
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    return [stack for line in lines for stack in _stacks(line)]


def _stacks(line: str) -> list[str]:
    card = _CARD.fullmatch(line)
    if card is None or card["revision"] == _ALL_ONES:
        raise FlagPerfError(
            f"lspci reports trouble: {line}",
            remedy="see dmesg on the host; a card that does not answer needs a reset or a reboot",
        )
    named = f"{card['name']}, PCI 8086:{card['id']}"
    if card["function"] != "0":
        return [f"{named}, virtual function"]
    return [f"{named}, stack {number}" for number in range(_STACKS.get(card["id"], 1))]
