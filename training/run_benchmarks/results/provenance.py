"""Where a result comes from: the harness, the hosts, their software, the data, the seeds, the clocks, the monitors.

What the controller saw of it stands in `round.json` (`Origin`), what the nodes saw in their `inventory.json` and in
rank 0's log; `provenance` of `result.json` is made of these alone, so that it can be made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from run_benchmarks.names import home_of
from run_benchmarks.reading import parsed, read_object
from utils.errors import FlagPerfError
from utils.events import Event, EventName
from utils.inventory import INVENTORY_FILE, HostInventory, Inventory, MonitorCost, Software
from utils.text_files import shortened_to_words

LARGEST_INVENTORY = 2**18  # bytes: one of a thousand packages has some 60,000
LONGEST_REASON = 400  # characters
MOST_VERSIONS = 100  # that a rank reports
SEED = "seed"


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
    seeds: the parameters among it that seed random generators. missing: host -> why it has no inventory.
    """

    hosts: tuple[HostInventory | None, ...] = ()
    software: tuple[NodeSoftware, ...] = ()
    monitors: tuple[MonitorCost | None, ...] = ()
    versions: Mapping[str, str | None] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def provenance_of(
    origin: Origin | None,
    hosts: Sequence[str],
    folders: Sequence[Path],
    events: Sequence[Event],
    parameters: Mapping[str, Any],
) -> Provenance | None:
    """Where a round comes from; None where nothing tells of it, as before schema 3.

    Args:
        origin: what the controller saw. hosts, folders: of the nodes, by rank.
        events: rank 0's; parameters: the plan's, for a case that does not report its own.
    """
    missing: dict[str, str] = {}
    inventories = [_inventory(folder, host, missing) for host, folder in zip(hosts, folders, strict=False)]
    if origin is None and not any(inventories):
        return None
    began = next((event.value for event in events if event.name == EventName.INIT_START), {})
    reported = began.get("config")
    configuration = reported if isinstance(reported, Mapping) else parameters
    return Provenance(
        **_fields(origin or Origin()),
        hosts=tuple(each.host if each else None for each in inventories),
        software=tuple(_distinct(inventories)),
        monitors=tuple(each.monitor if each else None for each in inventories),
        versions=_versions(began.get("versions")),
        configuration=configuration,
        seeds={name: value for name, value in configuration.items() if _is_seed(name, value)},
        missing=missing,
    )


def _inventory(folder: Path, host: str, missing: dict[str, str]) -> Inventory | None:
    """A node's inventory; None, with the reason in `missing`, where it has none that can be read."""
    path = folder / INVENTORY_FILE
    try:
        content = read_object(path, LARGEST_INVENTORY, home_of(path))
        if content is not None:
            return parsed(Inventory, content, str(path))
        missing[host] = f"{path.name} is not in its folder"
    except FlagPerfError as error:
        missing[host] = shortened_to_words(f"{path.name}: {error.message}", LONGEST_REASON)
    return None


def _distinct(inventories: Sequence[Inventory | None]) -> Iterator[NodeSoftware]:
    """Each software that is there, with the ranks of the nodes on which it is the same."""
    nodes: dict[str, list[int]] = {}
    kinds: dict[str, Software] = {}
    for rank, each in enumerate(inventories):
        if each:
            key = repr(each.software)
            kinds[key] = each.software
            nodes.setdefault(key, []).append(rank)
    for key, software in kinds.items():
        yield NodeSoftware(**_fields(software), nodes=tuple(nodes[key]))


def _fields(record: Any) -> dict[str, Any]:
    """A record's fields, for one that has more of them."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _versions(reported: object) -> dict[str, str | None]:
    pairs = reported.items() if isinstance(reported, Mapping) else ()
    short = partial(shortened_to_words, longest=LONGEST_REASON)
    first = islice(pairs, MOST_VERSIONS)
    return {short(str(name)): None if value is None else short(str(value)) for name, value in first}


def _is_seed(name: str, value: object) -> bool:
    return name.lower().split("_")[-1] == SEED and type(value) is int
