"""A Slurm whose nodes are the hosts of a lab: each has an address, a disk and a container engine of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.lab import Common, Lab
from tests.slurm.slurm import Slurm

# Whatever the session that starts it had open would keep that session open.
START = 'exec setsid slurmd -D -N "$1" -f "$2" </dev/null >"$3" 2>&1 &'


@dataclass
class LabSlurm(Slurm):
    """The Slurm; its folder is one that the hosts share with this machine at the same path."""

    lab: Lab = field(default_factory=Lab)

    @property
    def address(self) -> str:
        return self.lab.place.gateway

    def address_of(self, node: str) -> str:
        return self.lab.place.address(self.names.index(node) + 1)

    def start_node(self, name: str, *, wait: bool = True) -> None:
        argv = ("sh", "-c", START, "start", name, str(self.configuration), str(self.folder / f"{name}.out"))
        self.lab.ssh(self.names.index(name) + 1, *argv)
        if wait:
            self.wait_for({name: "idle"})

    def kill_node(self, name: str) -> None:
        self.lab.kill(self.names.index(name) + 1)


@contextmanager
def slurm_of_lab(folder: Path, hosts: int = 2, images: Sequence[str] = ()) -> Iterator[LabSlurm]:
    """A lab of its own and the Slurm on it, both gone at the end.

    Args:
        folder: on a disk (not in /tmp, which a host has of its own), shared with the hosts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    common = [Common(folder, str(folder), range(1, hosts + 1))]
    with Lab(hosts, images=images, common=common) as lab:
        slurm = LabSlurm(folder, nodes=hosts, prefix="h", lab=lab)
        try:
            slurm.up()
            yield slurm
        finally:
            slurm.down()
