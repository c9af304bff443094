"""One host of the lab: a disk, a network namespace, a control group, and the processes that make it run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab.cgroup import Cgroup
from tests.lab.commands import LabError, wait_until
from tests.lab.disk import Disk
from tests.lab.place import Place

INIT = Path(__file__).with_name("host_init.sh")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
READY_SECONDS = 60.0


@dataclass(frozen=True)
class Host:
    """Host `index` (from 1) of the lab at `place`."""

    index: int
    place: Place

    @property
    def name(self) -> str:
        return f"h{self.index}"

    @property
    def address(self) -> str:
        return self.place.address(self.index)

    @property
    def folder(self) -> Path:
        return self.place.folder / self.name

    @property
    def namespace(self) -> Path:
        return self.place.folder / "net" / self.name

    @property
    def cgroup(self) -> Cgroup:
        return Cgroup(self.place.group(self.name))

    @property
    def disk(self) -> Disk:
        return Disk(self.folder)

    @property
    def running(self) -> bool:
        return bool(self.cgroup.pids())

    def configure(
        self,
        shares: Iterable[tuple[Path, str]],
        common: Iterable[tuple[Path, str]],
        dockerd_options: Iterable[str],
    ) -> None:
        """Notes what every start of the host needs.

        `shares`: pairs of a folder of this machine and the path at which the host sees it, read-only; `common`: pairs
        of a folder that it also writes to.
        """
        settings = {
            "SHARES": "\n".join(f"{source}\t{target}" for source, target in shares),
            "COMMON": "\n".join(f"{source}\t{target}" for source, target in common),
            "DOCKERD_OPTIONS": " ".join(dockerd_options),
        }
        (self.folder / "settings.json").write_text(json.dumps(settings))

    def start(self) -> Booting:
        """Starts the host's processes; `Booting.wait` says when it can be used."""
        if self.running:
            raise LabError(f"{self.name} is running already", f"kill({self.index}) first")
        environment = {
            "PATH": PATH,
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "CGROUP": self.cgroup.name,
            "CGROUP_FILES": " ".join(map(str, self.cgroup.create())),
            **json.loads((self.folder / "settings.json").read_text()),
        }
        with (self.folder / "init.log").open("w") as log:
            process = subprocess.Popen(
                ["bash", str(INIT), self.name, str(self.folder), str(self.namespace)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # a Ctrl-C at the terminal is for the tests, not for the hosts
            )
        return Booting(self, process)

    def kill_sshd(self) -> None:
        """Kills sshd and its sessions; there is none until `start_sshd`."""
        pids = self.cgroup.pids()
        self._no_sshd(pids).touch()
        for pid in pids:
            # a session may end while we look
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().startswith("sshd"):
                    os.kill(pid, signal.SIGKILL)

    def start_sshd(self) -> None:
        """Lets the host start its sshd again."""
        self._no_sshd(self.cgroup.pids()).unlink(missing_ok=True)

    def _no_sshd(self, pids: Sequence[int]) -> Path:
        """The mark that keeps the host's first process from starting sshd; any of its own processes has its root."""
        inits = [pid for pid in pids if INIT.name in Path(f"/proc/{pid}/cmdline").read_text()]
        return Path(f"/proc/{max(inits)}/root/run/no_sshd")

    def kill(self) -> None:
        """Takes the power away: every process dies at once; the disk and the address stay."""
        self.cgroup.kill()


@dataclass(frozen=True)
class Booting:
    """A host whose processes have been started."""

    host: Host
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        """Waits until the host's sshd and its engine answer.

        Raises:
            LabError: its first process ended, or they do not answer within READY_SECONDS.
        """
        wait_until(lambda: self.process.poll() is not None or self._ready(), READY_SECONDS)
        if self.process.poll() is not None or not self._ready():
            raise LabError(f"host {self.host.name} does not come up:\n{self._logs()}", "tests/lab/README.md")

    def _ready(self) -> bool:
        return self._engine_answers() and self._sshd_answers()

    def _engine_answers(self) -> bool:
        root = Path(f"/proc/{self.process.pid}/root")
        try:
            # Until the host has left this machine's tree, that path leads to this machine's own engine.
            if (root / "etc/hostname").read_text().strip() != self.host.name:
                return False
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(str(root / "run/docker.sock"))
                connection.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b" 200 " in connection.recv(64)
        except OSError:
            return False

    def _sshd_answers(self) -> bool:
        try:
            with socket.create_connection((self.host.address, 22), timeout=5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def _logs(self) -> str:
        files = [self.host.folder / "init.log", self.host.disk.upper / "var/log/dockerd.log"]
        texts = [f"{file}:\n{file.read_text()[-2000:]}" for file in files if file.exists()]
        return "\n".join(texts)
