"""Hygon DCUs (HCUs in the newest tools): how they are seen, listed and given to a container.

Hygon publishes no data sheet: no chip here has a peak, so MFU is null. What is passed around contradicts itself; see
the questions in README.md.
"""

from __future__ import annotations

import json
from typing import Any

from utils.errors import FlagPerfError

# PyTorch is built for DTK, Hygon's HIP, and calls its devices as CUDA's: FlagOpen/FlagPerf training/dcu.
DEVICE_TYPE = "cuda"
VISIBLE_DEVICES_ENV = "HIP_VISIBLE_DEVICES"  # FlagOpen/FlagPerf, base/configs/host.yaml
COLLECTIVE_BACKEND = {"pytorch": "nccl"}  # RCCL, under NCCL's name

# HYGON-AI/Megatron-LM-das@0685d1f5 docs/getting-started.md. Its --privileged is left out: users run with these alone.
CONTAINER_OPTIONS = {
    "--device=/dev/kfd": "the compute interface of all DCUs",
    "--device=/dev/mkfd": "the second compute interface of newer drivers",
    "--device=/dev/dri": "a render node for each DCU",
    "--volume=/opt/hyhal:/opt/hyhal:ro": "the driver's user space, which must be the host's own, and hy-smi",
    "--group-add=video": "the group that the device nodes belong to",
    "--security-opt=seccomp=unconfined": "hy-smi and memory mappings; else `failed to check docker container`",
    "--cap-add=SYS_PTRACE": "memory mappings between processes",
}

# Hygon's DCU device plug-in, for whole devices.
KUBERNETES_RESOURCE = "hygon.com/dcu"

_IDS = "HYGON-AI/hcu-dcgm@b223b72e, pkg/dcgm/structs.go: PCI device ids"

# A card is told by its PCI device id: `Card Series` is empty on some hosts.
CHIPS = {
    "K100": {
        "device_names": ["PCI 0x62b7"],
        "memory_gib": 64.0,
        "peak_flops": {},
        "power_w": 300,
        "source": {
            "": "FlagOpen/FlagPerf training/dcu/README.md and glm-pytorch/README.md",
            "device_names": _IDS,
        },
    },
    "K100_AI": {
        "device_names": ["PCI 0x6210"],
        "memory_gib": 63.98,
        "peak_flops": {},
        "source": {"": "65520 MiB in hy-smi, gpustack issues 2032 and 3257", "device_names": _IDS},
    },
    "BW1000": {
        "device_names": ["PCI 0x631a"],
        "memory_gib": 63.98,
        "peak_flops": {},
        "source": {"": "65520 MiB in hy-smi of a BW (gfx936)", "device_names": _IDS},
    },
}

LIST_DEVICES_COMMAND = ["/opt/hyhal/bin/hy-smi", "--showid", "--showproductname", "--json"]


def parse_device_list(stdout: str) -> list[str]:
    """The cards in the output of LIST_DEVICES_COMMAND, e.g. `K100_AI, PCI 0x6210`.

    Raises:
        FlagPerfError: it is no list of cards, or a card does not say what it is.
    """
    begin = stdout.find("{")
    if begin < 0:
        if not stdout.strip():
            return []
        raise _trouble(f"no JSON, but: {stdout.strip()[:200]}")
    try:
        cards: dict[str, Any] = json.JSONDecoder().raw_decode(stdout, begin)[0]
    except ValueError as error:
        raise _trouble(str(error)) from error
    return [_name(card, cards[card]) for card in sorted(cards, key=_number) if card.startswith("card")]


def _name(card: str, about: dict[str, str]) -> str:
    device = about.get("Device ID", "").strip().lower()
    if not device.startswith("0x"):
        raise _trouble(f"{card} has no Device ID")
    return f"{about.get('Card Series', '').strip() or 'without a name'}, PCI {device}"


def _number(card: str) -> tuple[int, str]:
    digits = card.removeprefix("card")
    return int(digits) if digits.isdigit() else 0, card


def _trouble(line: str) -> FlagPerfError:
    return FlagPerfError(
        f"hy-smi reports trouble: {line}",
        remedy="run hy-smi on the host; a card that does not answer needs a reset or a reboot",
    )
