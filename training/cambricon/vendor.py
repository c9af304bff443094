"""Cambricon's MLU590: how it is seen, listed and given to a container, and what it is known to do."""

from __future__ import annotations

from cnmon_table import cards

from utils.errors import FlagPerfError

DEVICE_TYPE = "mlu"
PLUGIN = {"pytorch": "torch_mlu"}
VISIBLE_DEVICES_ENV = "MLU_VISIBLE_DEVICES"
COLLECTIVE_BACKEND = {"pytorch": "cncl"}

# What Cambricon's device plugin for Kubernetes gives a container; for one card FlagOS does without the third.
CONTAINER_OPTIONS = {
    "--device=/dev/cambricon_dev{n}": "the chip",
    "--device=/dev/cambricon_ctl": "the driver's control, which cnmon reads too",
    "--device=/dev/cambricon_ipcm{n}": "memory that the processes of several chips share",
}

# Cambricon/cambricon-k8s-device-plugin; with `--enable-device-type` it puts the type into the name.
KUBERNETES_RESOURCE = "cambricon.com/mlu"

# No peaks: the vendor publishes none, and the figures of others (314 and 345 TFLOP/s in fp16) contradict each other.
# The comma ends a name: MLU590-M9 is also the beginning of MLU590-M9D and MLU590-M9U, which are other boards.
CHIPS = {
    "MLU590M9": {
        "device_names": ["MLU590-M9,"],
        "memory_gib": 96.0,
        "peak_flops": {},
        "source": {"memory_gib": "98,304 MiB a card: users' reports of machines with driver 6.2.29"},
    },
    "MLU590M9DG": {
        "device_names": ["MLU590-M9DG,"],
        "memory_gib": 80.0,
        "peak_flops": {},
        "source": {"memory_gib": "81,920 MiB in cnmon: a user's report of a machine with driver 6.5.26"},
    },
}

LIST_DEVICES_COMMAND = ["cnmon"]


def parse_device_list(stdout: str) -> list[str]:
    """The cards in the output of LIST_DEVICES_COMMAND, e.g. `MLU590-M9, 98304 MiB`.

    Raises:
        FlagPerfError: there is no whole table, or a card is missing before another.
    """
    listed: list[str] = []
    for card in cards(stdout) if stdout.strip() else ():
        if int(card["Card"]) != len(listed):
            raise FlagPerfError(
                f"cnmon does not list card {len(listed)}",
                remedy="run cnmon on the host; a card that has fallen off the bus needs a reset or a reboot",
            )
        listed.append(f"{card['Name']}, {card['Memory-Usage'].rpartition('/')[2].strip()}")
    return listed
