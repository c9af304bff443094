"""A host's control group: its handle on all its processes, containers included.

The group is how a host is killed, frozen and limited, and how a lab that a killed process left behind is
found: a pid may be another process by now, a group holds the host's own and all their children. Works with
version 1 (one tree a controller) and version 2 (one tree).
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.lab.commands import LabError, wait_until

ROOT = Path("/sys/fs/cgroup")
# Version 1: the trees the host itself enters. Its engine adds its containers to all the others too.
V1_TREES = ("cpu", "memory", "freezer", "pids")
CPU_PERIOD_US = 100_000


@dataclass(frozen=True)
class Cgroup:
    """The group `name` below `root`, in whichever version is mounted there."""

    name: str
    root: Path = ROOT

    @property
    def _v2(self) -> bool:
        return (self.root / "cgroup.controllers").exists()

    @property
    def _trees(self) -> list[Path]:
        return [self.root] if self._v2 else [self.root / tree for tree in V1_TREES]

    @property
    def _freezer(self) -> Path:
        return (self.root if self._v2 else self.root / "freezer") / self.name

    def create(self) -> list[Path]:
        """Makes the group and returns the files into which a process writes "0" to enter it.

        Processes enter a leaf, not the group itself: version 2 wants none beside the containers' groups.
        """
        leaves = [tree / self.name / "host" for tree in self._trees]
        for leaf in leaves:
            leaf.mkdir(parents=True, exist_ok=True)
        return [leaf / "cgroup.procs" for leaf in leaves]

    def pids(self) -> list[int]:
        """The processes of the host and of its containers, as this machine numbers them."""
        found: list[int] = []
        for folder, _, _ in os.walk(self._freezer):
            # A container's group may go while we look.
            with suppress(FileNotFoundError):
                found += map(int, (Path(folder) / "cgroup.procs").read_text().split())
        return found

    def kill(self) -> None:
        """Kills every process at once, as a power cut does, and waits until they are gone."""
        self.thaw()  # version 1 delivers SIGKILL to a frozen process only when it thaws

        def gone() -> bool:
            pids = self.pids()
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not pids

        if not wait_until(gone, 20):
            raise LabError(f"processes {self.pids()} of {self.name} survive SIGKILL", "ps shows their state")

    def freeze(self) -> None:
        """Stops every process where it is; the kernel still accepts TCP connections for them."""
        self._set_frozen(True)

    def thaw(self) -> None:
        """Lets the processes go on; does nothing where none is frozen."""
        if self._freezer.exists():
            self._set_frozen(False)

    def _set_frozen(self, frozen: bool) -> None:
        if self._v2:
            switch, state, word, report = (
                "cgroup.freeze",
                "cgroup.events",
                f"{frozen:d}",
                f"frozen {frozen:d}",
            )
        else:
            switch = state = "freezer.state"
            word = report = "FROZEN" if frozen else "THAWED"
        (self._freezer / switch).write_text(word)
        if not wait_until(lambda: report in (self._freezer / state).read_text(), 20):
            raise LabError(f"{self.name} does not become {report!r}: see {self._freezer / state}")

    def limit_cpu(self, percent: int | None) -> None:
        """Grants the host `percent` of one CPU (200: two CPUs); None: no limit."""
        quota = None if percent is None else percent * CPU_PERIOD_US // 100
        if self._v2:
            file, text = self.root / self.name / "cpu.max", f"{quota or 'max'} {CPU_PERIOD_US}"
        else:
            file, text = self.root / "cpu" / self.name / "cpu.cfs_quota_us", str(quota or -1)
        if not file.exists():
            raise LabError(f"there is no {file}", f"echo +cpu > {self.root}/cgroup.subtree_control")
        file.write_text(text)

    def remove(self) -> None:
        """Removes the empty group from every tree, those too that the engine has put it in."""
        for tree in (self.root, *(path for path in self.root.iterdir() if path.is_dir())):
            for folder, _, _ in os.walk(tree / self.name, topdown=False):
                # The kernel counts a process out a moment after it is reaped: EBUSY until then.
                if not wait_until(partial(_rmdir, Path(folder)), 10):
                    raise LabError(f"cannot remove the group {folder}", f"look into {folder}/cgroup.procs")


def _rmdir(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def existing(prefix: str, root: Path = ROOT) -> list[Cgroup]:
    """The groups whose names begin with `prefix`: those of a lab's hosts, of one that was left behind too."""
    names = {path.name for pattern in (f"{prefix}*", f"*/{prefix}*") for path in root.glob(pattern)}
    return [Cgroup(name, root) for name in sorted(names)]
