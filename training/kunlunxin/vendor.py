"""Kunlunxin's P800: how it is seen, listed and given to a container, and what it is known to do.

PyTorch's build for it is one for CUDA whose calls lead to Kunlunxin's libraries: the device is called `cuda`, the
collectives `nccl` (baidu/vLLM-Kunlun, vllm_kunlun/platforms/kunlun.py). `import torch` alone makes it known.
"""

from __future__ import annotations

import re

from utils.errors import FlagPerfError

DEVICE_TYPE = "cuda"
VISIBLE_DEVICES_ENV = "XPU_VISIBLE_DEVICES"
COLLECTIVE_BACKEND = {"pytorch": "nccl"}

# FlagOS's set, which served a card in a container without privileges and network; the nodes are open to every user.
CONTAINER_OPTIONS = {
    "--device=/dev/xpu{n}": "the chip, by the minor number of its node",
    "--device=/dev/xpuctrl": "the driver's control",
}

# HAMi's page on Kunlunxin's plug-in, for whole devices.
KUBERNETES_RESOURCE = "kunlunxin.com/xpu"

# No peaks: the vendor publishes none, and the figures of others name no source.
CHIPS = {
    "P800": {
        "device_names": ["P800 OAM"],
        "memory_gib": 95.9,
        "peak_flops": {},
        "power_w": 400,
        "source": {
            "memory_gib": "torch.cuda.mem_get_info; xpu-smi prints 98,304 MiB",
            "power_w": "the limit that xpu-smi prints, driver 5.0.21.26",
        },
    },
}

# One line a card, e.g. `XPU 0: P800 OAM  GPU-ed733bb8-c4a8-5bb5-9431-14512597fc12`.
LIST_DEVICES_COMMAND = ["xpu-smi", "-L"]

_CARD = re.compile(r"XPU (\d+): (\S+(?:\s+\S+)*?)\s+(?:GPU|XPU)-\S+")
_REMEDY = (
    "run xpu-smi on the host and look for Xid in its kernel log; a failed card needs a reset or a reboot"
)


def parse_device_list(stdout: str) -> list[str]:
    """The cards in the output of LIST_DEVICES_COMMAND, e.g. `XPU 0: P800 OAM`: without the identifier of each.

    Raises:
        FlagPerfError: a line is no card, or one is missing before another.
    """
    cards: list[str] = []
    for line in filter(None, map(str.strip, stdout.splitlines())):
        card = _CARD.fullmatch(line)
        if not card:
            raise FlagPerfError(f"xpu-smi reports trouble: {line}", remedy=_REMEDY)
        if int(card[1]) != len(cards):
            raise FlagPerfError(f"xpu-smi does not list XPU {len(cards)}", remedy=_REMEDY)
        cards.append(f"XPU {card[1]}: {card[2]}")
    return cards
