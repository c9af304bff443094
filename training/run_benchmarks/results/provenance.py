"""Where a result comes from: the harness, the hosts, their software, the data, the seeds, the clocks, the monitors.

What the controller saw of it stands in `round.json` (`Origin`), what the nodes saw in their `inventory.json` and in
rank 0's log; `provenance` of `result.json` is made of these alone, so that it can be made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from utils.inventory import HostInventory, MonitorCost, Software


@dataclass(frozen=True, kw_only=True)
class Harness:
    """The FlagPerf that ran.

    commit: of the git checkout; None where its folder is none, or git does not say, and `unmeasured` says why.
    dirty: whether what is tracked there differs from the commit, or other code lies beside it.
    tree: SHA-256 of the code that the hosts got. python: the controller's.
    """

    commit: str | None = None
    dirty: bool | None = None
    tree: str = ""
    python: str = ""
    unmeasured: str = ""


@dataclass(frozen=True)
class ClockOffset:
    """How far a host's clock was ahead of the controller's before the run, in seconds, +- `uncertainty_s`."""

    offset_s: float
    uncertainty_s: float


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What the controller saw of where a round comes from.

    clock_offsets: host -> its clock. data: host -> SHA-256 of the data's manifest; a host whose data has none is
    missing. image_digests: host -> the digests by which registries have its image, none where it was only built.
    """

    harness: Harness = field(default_factory=Harness)
    clock_offsets: Mapping[str, ClockOffset] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    image_digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class NodeSoftware(Software):
    """Software that is the same on the nodes of the ranks `nodes`."""

    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Provenance(Origin):
    """Where a round comes from; the tuples are by node rank, None for a node whose monitor left no inventory.

    software: what ran, each with the nodes on which it was the same: one entry where all nodes are alike.
    versions: of the framework, its accelerator libraries and collectives, as global rank 0 reports them.
    configuration: every parameter with the value that it ran with; `rules` says which of them make a result open.
    seeds: the parameters among it that seed random generators. missing: node rank -> why it has no inventory.
    """

    hosts: tuple[HostInventory | None, ...] = ()
    software: tuple[NodeSoftware, ...] = ()
    monitors: tuple[MonitorCost | None, ...] = ()
    versions: Mapping[str, str | None] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
