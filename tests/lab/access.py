"""Who may enter the hosts: the lab's own keys, and a home folder whose ssh settings know the hosts.

Nothing of the user's is changed: the key pair is made for one lab and goes with it, and every host key is in
`known_hosts` before the first connection, so that verification stays on everywhere.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.lab.commands import run
from tests.lab.disk import Disk

# MaxStartups: a controller opens many connections at once. KexAlgorithms: what OpenSSH prefers costs a client
# 54 ms of CPU. UsePAM: this machine's rules for its users do not apply.
SSHD_CONFIG = """\
HostKey /etc/ssh/lab_host_key
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
MaxStartups 500
MaxSessions 100
KexAlgorithms curve25519-sha256
AllowTcpForwarding yes
Subsystem sftp internal-sftp
"""
SSH_CONFIG = """\
Host {names} {addresses}
  User root
  IdentityFile {folder}/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 5
  KexAlgorithms curve25519-sha256
"""


@dataclass(frozen=True)
class Access:
    """The home folder `home` of a user who may enter the hosts as root."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / ".ssh"

    @property
    def config(self) -> Path:
        return self.folder / "config"

    def create(self) -> None:
        self.folder.mkdir(parents=True, mode=0o700)
        make_key(self.folder / "id_ed25519", "flagperf-lab")
        (self.folder / "known_hosts").touch()
        # The child process that gets this home builds images too, and must find the user's package index.
        pip_settings = Path.home() / ".config/pip/pip.conf"
        if pip_settings.exists():
            (self.home / ".config/pip").mkdir(parents=True)
            shutil.copy(pip_settings, self.home / ".config/pip/pip.conf")

    def write_config(self, hosts: Iterable[tuple[str, str]]) -> None:
        """Writes the ssh settings for `hosts`, pairs of name and address."""
        hosts = list(hosts)
        general = SSH_CONFIG.format(
            names=" ".join(name for name, _ in hosts),
            addresses=" ".join(address for _, address in hosts),
            folder=self.folder,
        )
        addresses = [f"Host {name}\n  HostName {address}\n" for name, address in hosts]
        self.config.write_text(general + "".join(addresses))

    def admit_to(self, disk: Disk, name: str, address: str) -> None:
        """Gives the host its key and sshd settings, lets our key in, and notes the host's key."""
        key = disk.folder / "host_key"
        make_key(key, name)
        public = key.with_suffix(".pub").read_text()
        disk.write("/etc/ssh/lab_host_key", key.read_text(), 0o600)
        disk.write("/etc/ssh/lab_sshd_config", SSHD_CONFIG)
        disk.empty("/root")
        disk.empty("/root/.ssh")
        disk.write("/root/.ssh/authorized_keys", (self.folder / "id_ed25519.pub").read_text(), 0o600)
        disk.write("/etc/shadow", unlocked(Path("/etc/shadow").read_text()), 0o640)
        with (self.folder / "known_hosts").open("a") as file:
            file.write(f"{name},{address} {public}")


def unlocked(shadow: str) -> str:
    """The text of a shadow file with root's account unlocked; sshd admits a locked one by no means.

    It stays without a password: `*` matches none.
    """
    return re.sub(r"^root:!+[^:]*:", "root:*:", shadow, flags=re.MULTILINE)


def make_key(path: Path, comment: str) -> None:
    """Makes the key pair `path`, `path`.pub without a passphrase."""
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])
