"""Which host keys are trusted: known_hosts, as OpenSSH reads it."""

from __future__ import annotations

import fcntl
import functools
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from run_benchmarks.transports.base import HostKeyError

DEFAULT_PORT = 22
GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
# In OpenSSH's order, so that the fingerprint of an unknown host is the one that ssh shows. No certificates: without
# an authority one says nothing, while a plain key can be accepted.
PLAIN = (
    "ssh-ed25519",
    *("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    *("rsa-sha2-512", "rsa-sha2-256"),
)
# Of a line the marker, if there is one, and the hosts, whose case says nothing; a hash was made of lower case.
_NAMES = re.compile(r"^(\s*(?:@\S+\s+)?)([^|@\s]\S*)")
_WITH_PORT = re.compile(r"\[(.+)\]:\d+")
USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")


@dataclass(frozen=True)
class Refusal:
    """A host key that was refused. `name` is the host as known_hosts writes it; changed: with another key."""

    changed: bool
    name: str
    algorithm: str
    fingerprint: str


@dataclass(frozen=True)
class KnownHosts:
    """The user's known_hosts files, then the machine's; new keys go into the first."""

    files: tuple[Path, ...]

    def match(self, host: str, addr: str, port: int | None) -> tuple[Sequence[Any], ...]:
        """What asyncssh asks for: keys, CA keys, revoked keys and the same for X.509, trusted for the host.

        The address is left out: the name that the user wrote is what must be known, as in OpenSSH
        (CheckHostIP has been off since 8.5).
        """
        return self._load().match(host.lower(), "", port)

    def revokes(self, name: str, key: asyncssh.SSHKey) -> bool:
        """Whether the key is revoked for the host that known_hosts calls `name`, or for that host without its port.

        As OpenSSH, which looks for the host without its port where it does not know it with it.
        """
        whole = _WITH_PORT.fullmatch(name)
        return any(key in self.match(each, "", None)[2] for each in (name, whole[1] if whole else name))

    def has_key_of(self, name: str) -> bool:
        """Whether any key stands there for the host that known_hosts calls `name`."""
        return bool(self.match(name, "", None)[0])

    def algorithms(self, host: str, port: int) -> list[str]:
        """The kinds of host key to ask for: those that are known for the host, then, as OpenSSH does, the rest.

        Were only the known kinds asked for, a host with a new key would look like one that speaks no ssh.
        """
        for file in filter(_is_closed, self.files):
            message, remedy = (
                f"{file} cannot be read: whether its key is known cannot be told",
                "mend that file",
            )
            raise HostKeyError(message, where=host, remedy=remedy)
        keys, authorities, *_ = self.match(host, "", None if port == DEFAULT_PORT else port)
        certified = [f"{name}-cert-v01@openssh.com" for name in PLAIN] if authorities else []
        plain = [name for key in keys for name in _signatures(key.get_algorithm())]
        return list(dict.fromkeys([*certified, *plain, *PLAIN]))

    def add(self, name: str, key: asyncssh.SSHKey) -> None:
        """Write a key that was accepted on first use to the user's file."""
        path = self.files[0]
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        public = key.export_public_key("openssh").decode().split()
        line = f"{name} {public[0]} {public[1]}\n"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several runs may meet here; a line must not break another
            file.seek(0)
            content = file.read()
            broken = bool(content) and not content.endswith(b"\n")
            file.write((b"\n" if broken else b"") + line.encode())

    def _load(self) -> asyncssh.SSHKnownHosts:
        return _parsed(tuple((path, *stamp(path)) for path in self.files))


def _is_closed(file: Path) -> bool:
    """Whether a file is there and cannot be read; `/dev/null` can, and knows no host, as its user wants it."""
    return file.exists() and (file.is_fifo() or file.is_dir() or not os.access(file, os.R_OK))


def known_name(host: str, port: int) -> str:
    """The host as known_hosts writes it, in lower case: a server on another port is another host."""
    return host.lower() if port == DEFAULT_PORT else f"[{host.lower()}]:{port}"


def _signatures(algorithm: str) -> tuple[str, ...]:
    """The signatures that a known key of this kind can be asked for: none that is broken, as DSA and SHA-1 are."""
    if algorithm == "ssh-rsa":
        return ("rsa-sha2-512", "rsa-sha2-256")
    return () if algorithm == "ssh-dss" else (algorithm,)


def stamp(path: Path) -> tuple[int, int]:
    """Changes when the file does; (0, 0) where there is none."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8)
def _parsed(stamps: tuple[tuple[Path, int, int], ...]) -> asyncssh.SSHKnownHosts:
    """The files, parsed once for all hosts: thousands of lines times thousands of hosts add up."""
    known_hosts = asyncssh.SSHKnownHosts()
    for path, _, _ in stamps:
        with suppress(OSError):  # that a file is missing is normal
            for line in path.read_text(errors="replace").splitlines():
                with suppress(ValueError):  # OpenSSH too passes over a line that it cannot read
                    known_hosts.load(_NAMES.sub(lambda match: match[1] + match[2].lower(), line))
    return known_hosts
