"""Chips whose power was read far beyond the limit that they are set to: one of the two is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from run_benchmarks.results.telemetry_result import NodeTelemetry
from utils.inventory import HostInventory
from utils.numbers import number_in
from utils.telemetry.records import Scope

LIMIT = "power_limit_w"  # as vendors' monitors describe it
# A board holds its limit within milliseconds, readings are means of more, and vendors give +-5 % for one.
FAR_BEYOND = 2.0


def limit_notes(
    nodes: Sequence[NodeTelemetry], inventories: Sequence[HostInventory | None], hosts: Sequence[str]
) -> list[str]:
    """A note of the first such chip, with how many there are, or none. All are by node rank."""
    beyond = [
        f"{host}: {text}"
        for node, inventory, host in zip(nodes, inventories, hosts, strict=False)
        for text in _beyond(node, inventory)
    ]
    more = f" (of the first of {len(beyond)} chips)" if len(beyond) > 1 else ""
    return [f"{text}{more}" for text in beyond[:1]]


def _beyond(node: NodeTelemetry, inventory: HostInventory | None) -> Iterator[str]:
    described = enumerate(inventory.accelerators if inventory else ())
    limits = {str(number): number_in(each, LIMIT) or 0.0 for number, each in described}
    for name, source in node.sources.items():
        largest = source.of_devices.get("max_power") if source.scope is Scope.ACCELERATOR else None
        for device, watts in zip(source.devices, largest.values if largest else (), strict=False):
            limit = limits.get(device, 0.0)
            if watts is not None and watts > FAR_BEYOND * limit > 0:
                yield f"{name} {device} was read at {watts:.4g} W, its power limit is {limit:.4g} W"
