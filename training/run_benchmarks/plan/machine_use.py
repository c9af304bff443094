"""What `machine_conf.py` changes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class MachineUse:
    """What `machine_conf.py` says in the place of what `test_conf.py` leaves open; no secrets are in it.

    path: of the file; empty where there is none. settings: those in force, as Python writes them -> value.
    """

    path: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """One for each setting: `RUNTIME = 'process'`."""
        return [f"{name} = {value!r}" for name, value in self.settings.items()]

    def sentence(self) -> str:
        """For a log: the file and what it sets; empty where it sets nothing that counts."""
        return (
            f"settings of this machine, from {self.path}: {', '.join(self.lines())}" if self.settings else ""
        )
