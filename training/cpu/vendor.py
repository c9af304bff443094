"""The host's own processors as a vendor: the harness runs end to end on any Linux machine.

A device is a logical processor that this machine may use, so that `nproc` is bounded by what there is.
There is no `cpu_monitor.py`: CPU use is sampled for every vendor by the monitors themselves.
"""

from __future__ import annotations

DEVICE_TYPE = "cpu"

# A CPU task sees every processor: there is nothing to make visible.
VISIBLE_DEVICES_ENV = ""

COLLECTIVE_BACKEND = {"pytorch": "gloo", "paddle": "gloo"}

# Nothing but what every container gets.
CONTAINER_OPTIONS: dict[str, str] = {}

CHIPS = {
    "cpu": {
        # `cpu` stands for whatever processor the host has; every device of the list below is one.
        "device_names": ["cpu"],
        "memory_gib": None,
        # A processor's peak depends on its model, its clock under vector load and its cores in use;
        # without one number for `cpu` there is no MFU (null).
        "peak_flops": {"bf16": None, "fp16": None, "tf32": None, "fp32": None},
        "source": "no peak: `cpu` names no processor model",
    },
}

# One line a logical processor that is online, e.g. `0,0,0`; lines with `#` are a heading.
LIST_DEVICES_COMMAND = ["lscpu", "--parse=CPU,CORE,SOCKET"]


def parse_device_list(stdout: str) -> list[str]:
    """The names of the devices in the output of LIST_DEVICES_COMMAND, e.g. `cpu 0`."""
    lines = (line for line in stdout.splitlines() if line.strip() and not line.startswith("#"))
    return [f"cpu {line.split(',')[0]}" for line in lines]
