"""A real sshd on a loopback port, with keys and a home folder of its own. Nothing of the user's is touched."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.ports import free_port

SSHD = shutil.which("sshd", path=f"/usr/sbin:/usr/local/sbin:{os.environ.get('PATH', '')}")


def make_key(path: Path, *options: str) -> Path:
    """An ed25519 key pair; returns the private key's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", str(path), *options], check=True)
    return path


@dataclass
class Sshd:
    """The server. `home` becomes the client's HOME, with a key that may log in and the host key known.

    variables: more of the environment of commands, as `NAME=value`.
    """

    folder: Path
    settings: tuple[str, ...] = ()
    variables: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """The client's home folder."""
        return self.folder / "home"

    @property
    def known_hosts(self) -> Path:
        """The client's known_hosts."""
        return self.home / ".ssh" / "known_hosts"

    @property
    def name(self) -> str:
        """The server as known_hosts writes it."""
        return f"[127.0.0.1]:{self.port}"

    def start(self) -> None:
        """Make keys and configuration where there are none yet, and start the server."""
        if not (self.folder / "host_key").exists():
            key = make_key(self.home / ".ssh" / "id_ed25519")
            shutil.copy(f"{key}.pub", self.folder / "authorized_keys")
            make_key(self.folder / "host_key")
            self.trust()
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where a root sshd separates its privileges
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.folder}/host_key",
            f"AuthorizedKeysFile {self.folder}/authorized_keys",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            "PasswordAuthentication yes",
            "KbdInteractiveAuthentication no",
            # not the user's own .bashrc, which may take its time or print something
            f"SetEnv HOME={self.folder} {self.variables}",
            *self.settings,
        ]
        config = self.folder / "sshd_config"
        config.write_text("\n".join(lines) + "\n")
        log = (self.folder / "sshd.log").open("ab")
        self.process = subprocess.Popen([str(SSHD), "-D", "-e", "-f", str(config)], stderr=log)
        self._wait_until_listening()

    def trust(self, key: Path | None = None) -> None:
        """Put the server's key, or another, into known_hosts."""
        public = Path(f"{key or self.folder / 'host_key'}.pub").read_text().split()
        self.known_hosts.write_text(f"{self.name} {public[0]} {public[1]}\n")

    def fingerprint(self) -> str:
        """The host key's fingerprint, as ssh-keygen prints it."""
        shown = subprocess.run(
            ["ssh-keygen", "-lf", f"{self.folder}/host_key.pub"], check=True, capture_output=True, text=True
        )
        return shown.stdout.split()[1]

    def connections(self) -> list[int]:
        """The PIDs of the server's processes that hold a connection each."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def drop_connections(self) -> None:
        """Kill what serves the connections; the server goes on listening."""
        for pid in self.connections():
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server and its connections."""
        if self.process is None:
            return
        self.drop_connections()
        self.process.kill()
        self.process.wait()
        self.process = None

    def configure(self, text: str) -> None:
        """Write the client's ~/.ssh/config."""
        (self.home / ".ssh" / "config").write_text(text)

    def _wait_until_listening(self) -> None:
        for _ in range(200):
            if self.process is None or self.process.poll() is not None:
                break  # who answers at its port now is somebody else
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError(f"sshd does not listen: {(self.folder / 'sshd.log').read_text()}")
