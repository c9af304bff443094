"""`<vendor>/vendor.py`, checked: a vendor and its chips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass as model

from run_benchmarks.plan import values
from run_benchmarks.plan.command_words import NUMBER
from run_benchmarks.plan.kubernetes import ResourceName


@model(frozen=True)
class Chip:
    """A chip as its vendor describes it; None, or no entry, where nobody knows.

    device_names: parts of the lines that parse_device_list returns for this chip, and for no other.
    memory_gib: of one device, as its driver tells it. memory_bandwidth: bytes/s.
    peak_flops: dtype -> dense FLOP/s (int8: OP/s). power_w: what the device may draw.
    link_bandwidth: `chip` (to all other chips of its host) or `host` -> bytes/s in one direction, all links together.
    source: where these come from: a field's name -> its source; under an empty name that of all others.
    """

    name: values.PathName
    device_names: values.DeviceNames
    memory_gib: values.Positive | None
    peak_flops: values.Peaks
    source: values.Sources
    memory_bandwidth: values.Positive | None = None
    link_bandwidth: values.Links = Field(default_factory=dict)
    power_w: values.Positive | None = None


@model(frozen=True, config=values.IN_CAPITALS)
class Vendor:
    """`<vendor>/vendor.py`, checked; `described` is False for an existing vendor's folder that has none.

    plugin: framework -> the Python module that makes the devices known to it; none where the framework knows them.
    ragged_attention: the frameworks that have attention for rows as they lie, without padding, on these devices.
    kubernetes_resource: of which its device plug-in for Kubernetes gives a pod one for each device; empty for none.
    container_options: as an argv; a word with `{n}` stands for as many as a node has ranks, with their numbers from 0.
    """

    name: str
    folder: Path
    device_type: Annotated[values.Text, Field(examples=['"cuda"'])]
    visible_devices_env: values.EnvironmentName
    collective_backend: Annotated[values.TextDict, Field(examples=['{"pytorch": "nccl"}'])]
    list_devices_command: values.Command
    parse_devices: Callable[[str], list[str]] = field(repr=False)
    plugin: values.Plugins = Field(default_factory=dict)
    ragged_attention: values.Texts = ()
    container_options: values.Options = ()
    kubernetes_resource: ResourceName = ""
    chips: dict[str, Chip] = Field(default_factory=dict)
    described: bool = True

    def options_for(self, nproc: int) -> tuple[str, ...]:
        """The container options of a node with so many ranks."""
        numbered = [
            [word.replace(NUMBER, str(number)) for number in range(nproc)] if NUMBER in word else [word]
            for word in self.container_options
        ]
        return tuple(word for words in numbered for word in words)
