"""What disks and networks have moved, by the kernel's own counters in sysfs (Linux).

sysfs shows the host's devices also where /proc shows a container's: those of the network namespace it was mounted in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from utils.monitors.files import kernel_text
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.records import Sample, Scope

SECTOR_BYTES = 512  # of /sys/class/block/*/stat, whatever the disk's own are
INFINIBAND_WORD_BYTES = 4  # port_rcv_data and port_xmit_data count in these
READ_SECTORS, WRITTEN_SECTORS = 2, 6  # columns of a disk's `stat`


class _Counters(Source):
    """Devices below a folder of /sys/class, each with counters of bytes."""

    scope = Scope.HOST
    subsystem: str

    def __init__(self, sys: Path = Path("/sys")) -> None:
        self._root = sys / "class" / self.subsystem

    def open(self) -> None:
        self._devices = {path.name: path for path in sorted(self._root.glob("*")) if self._is_hardware(path)}
        if not self._devices:
            raise SourceUnavailableError(f"no {self.name} of its own below {self._root}")
        self.sample(0)

    def sample(self, time_ms: int) -> Sequence[Sample]:
        return [sample for name in self._devices for sample in self._samples(time_ms, name)]

    def _samples(self, time_ms: int, name: str) -> list[Sample]:
        try:
            return self._read(time_ms, name)
        except (OSError, ValueError, IndexError) as error:  # it was taken away, or is just coming
            return [Sample(time_ms, self.name, name, error=str(error))]

    def _is_hardware(self, path: Path) -> bool:
        """Whether there is a device behind it: loops, bridges and partitions would be counted twice."""
        return (path / "device").exists()

    @abstractmethod
    def _read(self, time_ms: int, name: str) -> list[Sample]:
        """The device's counters now."""


class Disks(_Counters):
    """What each disk has read and written."""

    name, subsystem = "disk", "block"
    never_waits = True
    note = "bytes that each disk has read and written since the machine was started, from /sys/class/block/*/stat"

    def _is_hardware(self, path: Path) -> bool:
        return super()._is_hardware(path) and not (path / "partition").exists()

    def _read(self, time_ms: int, name: str) -> list[Sample]:
        columns = kernel_text(f"{self._devices[name]}/stat").split()
        read, written = (SECTOR_BYTES * int(columns[place]) for place in (READ_SECTORS, WRITTEN_SECTORS))
        return [Sample(time_ms, self.name, name, read_bytes=read, written_bytes=written)]


class Network(_Counters):
    """What each network interface that has a device has received and sent."""

    name, subsystem = "network", "net"
    never_waits = True
    note = "bytes that each interface has received and sent, from /sys/class/net/*/statistics"

    def _read(self, time_ms: int, name: str) -> list[Sample]:
        folder = f"{self._devices[name]}/statistics"
        received, sent = (int(kernel_text(f"{folder}/{way}_bytes")) for way in ("rx", "tx"))
        return [Sample(time_ms, self.name, name, received_bytes=received, sent_bytes=sent)]


class InfiniBand(_Counters):
    """What each port of an InfiniBand or RoCE device has received and sent, also by RDMA, which no interface counts."""

    name, subsystem = "infiniband", "infiniband"
    note = (
        "bytes that each port has received and sent, from port_rcv_data and port_xmit_data (units of 4 bytes) of "
        "/sys/class/infiniband"
    )

    def _read(self, time_ms: int, name: str) -> list[Sample]:
        samples = []
        for port in sorted((self._devices[name] / "ports").glob("*"), key=lambda path: path.name):
            received, sent = (
                INFINIBAND_WORD_BYTES * int(kernel_text(f"{port}/counters/port_{way}_data"))
                for way in ("rcv", "xmit")
            )
            device = f"{name}/{port.name}"
            samples.append(Sample(time_ms, self.name, device, received_bytes=received, sent_bytes=sent))
        return samples
