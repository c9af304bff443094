"""What a node is made of: the records of `inventory.json`, which its monitor writes and the controller reads.

Values are those of the tools and files that they come from. There are no environment variables and no command
lines among them, which may hold secrets, and no serial numbers or hardware addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

INVENTORY_FILE = "inventory.json"
LONGEST_TEXT = 8_000  # characters: the flags of a processor are some 3,000


@dataclass(frozen=True)
class HostInventory:
    """A host. What was not measured is None or missing, and `unmeasured` says why: name of the field -> reason.

    kernel: its release and version. cpu: the fields of `lscpu --json`: model, topology, caches, NUMA nodes.
    memory_bytes: what the kernel has. machine: maker, model, board and BIOS. settings: single values of /sys and
    /proc that change how fast a host is, by their names there. nics: name of an interface -> its facts.
    limits: of the monitor's unit, which are the task's: resource -> soft limit, `unlimited` for none.
    accelerators: by device number, as the vendor's own monitor describes them: firmware, driver, memory.
    """

    kernel: str = ""
    cpu: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    machine: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    nics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    accelerators: tuple[Mapping[str, bool | int | float | str | None], ...] = ()
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    __pydantic_config__: ClassVar = {"allow_inf_nan": False, "str_max_length": LONGEST_TEXT}


@dataclass(frozen=True)
class Software:
    """What a node's unit runs on: the image's, or the host's without images.

    system: the distribution. python: its version. packages: distribution -> version, by importlib.metadata.
    system_packages: package -> version, by `dpkg-query`.
    """

    system: str = ""
    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    system_packages: Mapping[str, str] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    __pydantic_config__: ClassVar = {"allow_inf_nan": False, "str_max_length": LONGEST_TEXT}


@dataclass(frozen=True)
class MonitorCost:
    """What the monitor of a node took, from its start to its end, inventory included.

    cpu_s: CPU seconds of it and of what it started, user and system; wall_s: how long it ran.
    of_a_core: cpu_s / wall_s. sources: source -> what became of its samples: sampled, failed, late, missed.
    """

    cpu_s: float
    wall_s: float
    of_a_core: float
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    __pydantic_config__: ClassVar = {"allow_inf_nan": False, "str_max_length": LONGEST_TEXT}


@dataclass(frozen=True)
class Inventory:
    """`inventory.json`. monitor: None until the monitor has ended in order."""

    host: HostInventory
    software: Software
    monitor: MonitorCost | None = None
