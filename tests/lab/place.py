"""Where a lab is on this machine. Labs have numbers, and nothing that two of them make has the same name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.lab.commands import LabError

NUMBER_VARIABLE = "FLAGPERF_LAB"
FOLDER_VARIABLE = "FLAGPERF_LAB_DIR"
# Not /tmp, which may be in memory; and not an overlay file system, which cannot carry the hosts' disks.
DEFAULT_FOLDER = "/var/tmp"
LOCKS = Path("/run")
HIGHEST = 99  # a link's name has 15 characters at most, a subnet's number three digits


@dataclass(frozen=True)
class Place:
    """Lab `number` (from 1 to HIGHEST), whose files are in `folder`."""

    number: int
    folder: Path

    @property
    def lock(self) -> Path:
        return LOCKS / f"flagperf-lab{self.number}.json"

    @property
    def subnet(self) -> str:
        """The network's first three numbers; its prefix has 24 bits."""
        return f"10.77.{self.number}"

    @property
    def gateway(self) -> str:
        return f"{self.subnet}.1"

    def address(self, index: int) -> str:
        """The address of host `index` (from 1)."""
        return f"{self.subnet}.{10 + index}"

    @property
    def bridge(self) -> str:
        return f"flaglab{self.number}"

    @property
    def prefix(self) -> str:
        """How the names of cables and control groups begin."""
        return f"{self.bridge}-"

    def cable(self, index: int) -> str:
        """This machine's end of the cable of host `index`."""
        return f"{self.prefix}{index}"

    def group(self, host: str) -> str:
        """The name of a host's control group."""
        return f"{self.prefix}{host}"


def labs_folder() -> Path:
    """The folder of all labs' files, in that which FLAGPERF_LAB_DIR names, whatever else is there."""
    return Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER).resolve() / "flagperf-labs"


def here() -> Place:
    """The place of this process's lab: FLAGPERF_LAB says its number.

    Raises:
        LabError: it says no number.
    """
    text = os.environ.get(NUMBER_VARIABLE) or "1"
    if not (text.isdecimal() and 1 <= int(text) <= HIGHEST):
        raise LabError(f"{NUMBER_VARIABLE}={text} is no lab's number", f"give one from 1 to {HIGHEST}")
    return Place(int(text), labs_folder() / text)


def others(place: Place) -> list[Place]:
    """The places of which there is a lock file, but for `place`: a lab is there, or was."""
    stems = (path.stem.removeprefix("flagperf-lab") for path in LOCKS.glob("flagperf-lab*.json"))
    numbers = sorted(int(stem) for stem in stems if stem.isdecimal())
    return [Place(number, labs_folder() / str(number)) for number in numbers if number != place.number]
