"""A lab: several real hosts on this machine.

    with Lab(hosts=2, images=["flagperf-cpu:abc"]) as lab:
        lab.ssh(1, "docker", "run", "--rm", "--net=host", "flagperf-cpu:abc", "hostname")
        lab.cut(2)
        subprocess.run([...], env={**os.environ, **lab.env})    # this child reaches h1, h2 by ssh

Hosts are numbered from 1 and named h1, h2, ...
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.lab import cgroup, images, network, podman
from tests.lab.access import Access
from tests.lab.commands import LabError
from tests.lab.host import Booting, Host
from tests.lab.lock import MachineLock, Record
from tests.lab.place import here, others
from tests.lab.sweeping import sweep, sweep_abandoned

CHECKOUT = Path(__file__).resolve().parents[2]


class Common(NamedTuple):
    """A folder of this machine that these hosts see at the path `target` and write to, as a network file system is."""

    source: Path
    target: str
    hosts: Sequence[int]


class Lab:
    """Hosts h1 to h`hosts`, up between `__enter__` and `__exit__` (or `up` and `down`).

    Args:
        hosts: how many.
        images: names of images of this machine's engine that the hosts have from the start.
        share: folders of this machine that the hosts see at the same path, read-only.
        common: folders that some of them share.
        hide: paths of this machine that the hosts do not see: by default the checkout, so that a host has
            only what was deployed to it.
        dockerd_options: further options of the hosts' engines.
        wait_seconds: how long to wait while another process has the lab of this number (place.py).
    """

    def __init__(
        self,
        hosts: int = 2,
        *,
        images: Sequence[str] = (),
        share: Sequence[Path | str] = (),
        common: Sequence[Common] = (),
        hide: Sequence[Path | str] = (CHECKOUT,),
        dockerd_options: Sequence[str] = (),
        wait_seconds: float = 900.0,
    ) -> None:
        self.size = hosts
        self.place = here()
        self.hosts: list[Host] = []
        self._images = tuple(images)
        self._share = tuple(Path(path) for path in share)
        self._common = tuple(common)
        self._hide = tuple(str(path) for path in hide)
        self._dockerd_options = tuple(dockerd_options)
        self._wait_seconds = wait_seconds
        self._lock = MachineLock(self.place.lock)
        self._booted: dict[int, Booting] = {}

    @classmethod
    def attach(cls) -> Lab:
        """The lab of this number that is up, whoever made it."""
        record = MachineLock(here().lock).read()
        if record is None:
            raise LabError(f"there is no lab {here().number}", "python3 -m tests.lab up 2")
        lab = cls(record.hosts)
        lab.place = replace(lab.place, folder=Path(record.folder))
        lab.hosts = [Host(index + 1, lab.place) for index in range(record.hosts)]
        return lab

    def __enter__(self) -> Lab:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.down()

    def up(self, *, keep: bool = False) -> None:
        """Makes the hosts and waits until they can be used; `keep`: they outlive this process.

        Labs that killed processes left behind are removed first, those of other numbers too.
        """
        sweep_abandoned(others(self.place))
        self._lock.acquire(self._wait_seconds)
        try:
            before = self._lock.read()
            if before and before.kept and cgroup.existing(self.place.prefix):
                raise LabError(
                    f"a lab made by hand is up, number {self.place.number}", "python3 -m tests.lab down"
                )
        except BaseException:
            self._lock.release()
            raise
        try:
            sweep(self.place, before)
            self._make(keep)
        except BaseException:
            self.down()
            raise

    def _make(self, keep: bool) -> None:
        self.place.folder.mkdir(parents=True, mode=0o755)
        self._note(keep, forwarded=True)
        self._note(keep, forwarded=network.create_bridge(self.place))
        self._access.create()
        found = images.find(self._images)
        store = images.store() if found else None
        self.hosts = [self._prepare(index + 1, found, store) for index in range(self.size)]
        self._access.write_config((host.name, host.address) for host in self.hosts)
        self._booted = {host.index: host.start() for host in self.hosts}
        for booting in self._booted.values():
            booting.wait()
        if found and store is None:
            for host in self.hosts:
                images.stream(self._images, self.ssh_argv(host.index, ["docker", "load"]))

    def _note(self, keep: bool, *, forwarded: bool) -> None:
        self._lock.write(Record(os.getpid(), str(self.place.folder), self.size, keep, forwarded))

    def _prepare(self, index: int, found: list[images.Image], store: Path | None) -> Host:
        """Makes the disk and the network of host `index`."""
        host = Host(index, self.place)
        disk, docker = host.disk, host.folder / "docker"
        disk.create()
        docker.mkdir()
        (host.folder / "containers").mkdir()
        layers = images.share(found, store, docker) if found and store else []
        disk.write("/etc/hostname", f"{host.name}\n")
        disk.write("/etc/hosts", self._hosts_file())
        disk.write("/etc/resolv.conf", network.resolver_settings())
        disk.write("/etc/docker/daemon.json", "{}\n")
        if Path("/etc/containers").is_dir():
            disk.write("/etc/containers/containers.conf", podman.containers_conf())
        for path in (*self._hide, str(self.place.folder.parent)):
            disk.hide(path)
        self._access.admit_to(disk, host.name, host.address)
        network.plug_in(self.place, index, host.namespace)
        common = [(each.source, each.target) for each in self._common if index in each.hosts]
        host.configure([*layers, *((path, str(path)) for path in self._share)], common, self._dockerd_options)
        return host

    def _hosts_file(self) -> str:
        # A host's own name must lead to its own address: with 127.0.0.1 there, gloo offers that to its peers.
        lines = [f"{self.place.address(i)} h{i}\n" for i in range(1, self.size + 1)]
        return "127.0.0.1 localhost\n" + "".join(lines)

    def down(self) -> None:
        """Removes the hosts and everything that was made for them; does nothing where there is no lab.

        Raises:
            LabError: the lab belongs to another process, which still runs.
        """
        if not self._lock.held:
            self._lock.acquire(0)
        try:
            sweep(self.place, self._lock.read())
            self._lock.write(None)
            for booting in self._booted.values():
                booting.process.wait(timeout=20)
        finally:
            self.hosts = []
            self._booted = {}
            self._lock.release()

    # What can happen to a host.

    def kill(self, index: int) -> None:
        """Power off: ssh is refused; containers die."""
        self.host(index).kill()
        if booting := self._booted.pop(index, None):
            booting.process.wait(timeout=20)  # or it stays a zombie of this process

    def start(self, index: int) -> None:
        """Power on after `kill`: the disk is as it was."""
        self._booted[index] = self.host(index).start()
        self._booted[index].wait()

    def cut(self, index: int) -> None:
        """Pulls the network cable: packets are lost both ways, the host goes on."""
        network.set_link(self.place, self.host(index).index, up=False)

    def heal(self, index: int) -> None:
        """Puts the cable back after `cut`."""
        network.set_link(self.place, self.host(index).index, up=True)

    def kill_sshd(self, index: int) -> None:
        """Kills sshd and its sessions: ssh is refused, all else goes on."""
        self.host(index).kill_sshd()

    def start_sshd(self, index: int) -> None:
        """Starts it again."""
        self.host(index).start_sshd()

    def slow(self, index: int, rate: str) -> None:
        """Limits the host's network to `rate` both ways, in tc's notation: `1mbit`, `100kbit`."""
        network.set_rate(self.place, index, self.host(index).namespace, rate)

    def unslow(self, index: int) -> None:
        """Takes the limit of `slow` away."""
        network.set_rate(self.place, index, self.host(index).namespace, None)

    def freeze(self, index: int) -> None:
        """Stops every process of the host: TCP connections are accepted, nobody answers on them."""
        self.host(index).cgroup.freeze()

    def thaw(self, index: int) -> None:
        """Lets the processes go on after `freeze`."""
        self.host(index).cgroup.thaw()

    def cpu(self, index: int, percent: int | None) -> None:
        """Grants the host `percent` of one CPU; None: no limit."""
        self.host(index).cgroup.limit_cpu(percent)

    def reset(self) -> None:
        """Undoes the above on every host and removes its containers; what is on the disks stays."""
        for index, host in enumerate(self.hosts, start=1):
            self.thaw(index)
            self.heal(index)
            self.unslow(index)
            if host.running:
                self.cpu(index, None)
            else:
                self.start(index)
            self.ssh(index, "sh", "-c", "docker ps -aq | xargs -r docker rm -f")

    # The way in.

    @property
    def home(self) -> Path:
        """A home folder whose .ssh/ (config, key, known_hosts) leads to the hosts."""
        return self.place.folder / "home"

    @property
    def env(self) -> Mapping[str, str]:
        """What to add to the environment of a process that shall reach the hosts by ssh.

        `ssh` itself takes the home folder from the user database and not from HOME: give it `-F` with
        `ssh_config`.
        """
        return {"HOME": str(self.home)}

    @property
    def ssh_config(self) -> Path:
        """The ssh settings that know the hosts, for `ssh -F`."""
        return self._access.config

    def ssh(
        self, index: int, *argv: str, stdin: str = "", check: bool = True, timeout: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Runs `argv` on the host as root.

        Raises:
            LabError: it ends with another code than 0 (255: ssh itself failed), unless `check` is False.
            subprocess.TimeoutExpired: it takes longer than `timeout` seconds.
        """
        done = subprocess.run(
            self.ssh_argv(index, argv), input=stdin, capture_output=True, text=True, timeout=timeout
        )
        if check and done.returncode != 0:
            what = f"h{index}: {shlex.join(argv)} ended with {done.returncode}"
            raise LabError(f"{what}: {done.stderr.strip()}")
        return done

    def ssh_argv(self, index: int, argv: Sequence[str]) -> list[str]:
        """What `ssh` runs on this machine; an empty `argv` gives a shell."""
        command = [shlex.join(argv)] if argv else []
        return ["ssh", "-F", str(self.ssh_config), self.host(index).name, *command]

    def host(self, index: int) -> Host:
        """Host `index`, from 1."""
        if not 1 <= index <= len(self.hosts):
            raise LabError(f"there is no host {index}", f"the lab has hosts 1 to {len(self.hosts)}")
        return self.hosts[index - 1]

    @property
    def _access(self) -> Access:
        return Access(self.home)
