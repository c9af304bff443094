"""The faults of soak.py: how each is made from outside, and which ends of its round are right."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from soak_task import LEAVE_EARLY

from tests.lab.host import INIT, Host
from tests.lab.lab import Lab

WORK_HOST = "/var/lib/flagperf-soak"
DISK_MIB = 128  # of the small file system that WORK_HOST is on
RANK = re.compile(r"^\S*python\S* -u \S*run_pretraining\.py")
UNIT_MARK = "FLAGPERF_UNIT="
PATIENCE_S = 30.0
BALLAST_BYTES = 2**16


class NotMadeError(Exception):
    """What a fault was to be made at was not there."""


@dataclass(frozen=True)
class Site:
    """Where and when a fault is made: host `index` (from 1), in round `round`."""

    lab: Lab
    index: int
    round: int
    runtime: str
    controller: int  # its PID
    random: Random

    @property
    def host(self) -> Host:
        return self.lab.host(self.index)

    def wait_for_training(self) -> None:
        """Return at a moment of the training that the seed says, when the rank on this host has said two words."""
        logs = f"runs/*/*/*/round{self.round}/{self.host.name}_noderank*/rank*.out.log"
        _until(
            lambda: any(b"step 2 " in path.read_bytes() for path in work_of(self.host).glob(logs)), "training"
        )
        time.sleep(self.random.uniform(0.0, 1.0))

    def rank(self) -> int:
        """The PID of the rank on this host."""
        for pid, line in command_lines(self.host):
            if RANK.match(line):
                return pid
        raise NotMadeError("the rank has ended already")

    def some_seconds(self) -> float:
        """How long the fault lasts: shorter and longer than ssh's patience, shorter than HOST_LOST_AFTER."""
        return self.random.uniform(3.0, 12.0)


def root_of(host: Host) -> Path:
    """A host's own root, as its first process has it; reading there needs no ssh and disturbs nothing."""
    return next(Path(f"/proc/{pid}/root") for pid, line in command_lines(host) if INIT.name in line)


def work_of(host: Host) -> Path:
    """FlagPerf's own folder on a host."""
    return root_of(host) / WORK_HOST.lstrip("/") / ".flagperf"


def command_lines(host: Host) -> Iterator[tuple[int, str]]:
    """PID and command line of every process of a host, containers included."""
    for pid in host.cgroup.pids():
        with suppress(OSError):  # it has ended
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            yield pid, words.decode(errors="replace")


def marked(pids: Sequence[int]) -> Iterator[tuple[int, str]]:
    """PID and unit of those processes that bear a unit's mark."""
    for pid in pids:
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0"):
                if entry.startswith(UNIT_MARK):
                    yield pid, entry[len(UNIT_MARK) :]


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(OSError):
            if condition():
                return
        time.sleep(0.02)
    raise NotMadeError(f"no {what} after {PATIENCE_S:g} s")


def _kill(pids: Sequence[int], number: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _sessions(host: Host) -> list[int]:
    lines = [(pid, line) for pid, line in command_lines(host) if line.startswith("sshd: ")]
    return [pid for pid, line in lines if "[listener]" not in line]


def _kill_sessions(site: Site) -> None:
    _kill(_sessions(site.host))


def _restart_sshd(site: Site) -> None:
    _kill([pid for pid, line in command_lines(site.host) if "[listener]" in line], signal.SIGHUP)
    _kill_sessions(site)


def _cut(site: Site) -> None:
    site.lab.cut(site.index)
    time.sleep(site.some_seconds())
    site.lab.heal(site.index)


def _freeze(site: Site) -> None:
    site.lab.freeze(site.index)
    time.sleep(site.some_seconds())
    site.lab.thaw(site.index)


def _kill_rank(site: Site) -> None:
    os.kill(site.rank(), signal.SIGKILL)


def _leave_early(site: Site) -> None:
    os.kill(site.rank(), LEAVE_EARLY)


def _kill_controller(site: Site) -> None:
    os.kill(site.controller, signal.SIGKILL)


def _remove_unit(site: Site) -> None:
    """As somebody does who tidies up: the folder, then what still runs; or the container."""
    ending = f"-round{site.round}-node{site.index - 1}-task"
    if site.runtime != "process":
        names = site.lab.ssh(site.index, "docker", "ps", "--format", "{{.Names}}").stdout.split()
        (name,) = [name for name in names if name.endswith(ending)]
        site.lab.ssh(site.index, "docker", "rm", "--force", name)
        return
    (folder,) = (work_of(site.host) / "units").glob(f"*{ending}")
    shutil.rmtree(folder)
    _kill([pid for pid, unit in marked(site.host.cgroup.pids()) if unit.endswith(ending)])


def _fill_disk(site: Site) -> None:
    """For some seconds, or until the rank has ended by it: the next round has its disk."""
    ballast, rank = work_of(site.host).parent / "ballast", site.rank()
    with ballast.open("wb", buffering=0) as file:
        end = time.monotonic() + site.random.uniform(1.0, 3.0)
        while time.monotonic() < end and Path(f"/proc/{rank}/fd/1").exists():
            try:
                file.write(bytes(BALLAST_BYTES))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                time.sleep(0.01)  # and what is freed meanwhile is taken too
    ballast.unlink()


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Args:
        make: makes it, and unmakes what lasts; returns when that is done.
        right: how its round may end: the verdict, and behind it the failure's class, whose host is then the fault's.
        why: the reason for that.
        stages: at one of them it is made, as the journal names them; at `train` when the ranks talk.
    """

    kind: str
    make: Callable[[Site], None]
    right: frozenset[str]
    why: str
    stages: tuple[str, ...] = ("train",)


GOES_ON = frozenset({"CONVERGED"})
FAULTS = (
    Fault(
        "sessions", _kill_sessions, GOES_ON, "tasks need no ssh session, and the controller connects again"
    ),
    Fault("sshd", _restart_sshd, GOES_ON, "the same, with an sshd that is started anew"),
    Fault(
        "cut", _cut, GOES_ON, "shorter than HOST_LOST_AFTER: the ranks' connection lasts, contact comes back"
    ),
    Fault("frozen", _freeze, GOES_ON, "the same: nobody answers, and then everybody does"),
    Fault(
        "rank_killed",
        _kill_rank,
        frozenset({"FAILED rank_killed"}),
        "SIGKILL, and the kernel had no part in it",
    ),
    Fault(
        "rank_left", _leave_early, frozenset({"FAILED rank_failed"}), "exit code 0 before the peer was done"
    ),
    Fault("removed", _remove_unit, frozenset({"FAILED task_removed"}), "the unit went, and not by this run"),
    Fault(
        "disk",
        _fill_disk,
        GOES_ON | {"FAILED disk_full"},
        "a rank whose log has no room fails by the host's fault, and its round runs again; one that needs none goes on",
    ),
    Fault(
        "controller",
        _kill_controller,
        GOES_ON,
        "`resume` takes up what runs, and begins anew what does not",
        ("deploy", "launch", "train", "collect", "clean_up"),
    ),
)
OF_KIND = {fault.kind: fault for fault in FAULTS}


@dataclass(frozen=True)
class Planned:
    """A fault of the soak: of which kind, at which host (from 1), and at which stage."""

    fault: Fault
    host: int
    stage: str


def planned(seed: int, rounds: int, every: int, kinds: Sequence[str]) -> dict[int, Planned]:
    """Round -> its fault: one in every `every` rounds, all kinds equally often, by the seed alone."""
    random = Random(seed)
    blocks = range(rounds // every)
    order: list[str] = []
    while len(order) < len(blocks):
        order += random.sample(kinds, len(kinds))
    plan = {}
    for block, kind in zip(blocks, order, strict=False):
        fault = OF_KIND[kind]
        place = block * every + random.randint(1, every)
        plan[place] = Planned(fault, random.choice((1, 2)), random.choice(fault.stages))
    return plan


def make(plan: Planned, site: Site) -> None:
    """Make a fault, its round having come to its stage."""
    if plan.stage == "train":
        site.wait_for_training()
    plan.fault.make(site)
