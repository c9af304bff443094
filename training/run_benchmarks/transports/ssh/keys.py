"""The user's keys, read once for all hosts: reading one takes a third as long as logging in with it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from pathlib import Path

import asyncssh

from run_benchmarks.transports.ssh.trust import stamp

BESIDE = ("", ".pub", "-cert.pub")  # a key, and what ssh-keygen puts beside it


def key_pairs(identities: Sequence[str]) -> list[asyncssh.SSHKeyPair]:
    """The keys in these files, or without any those of ssh's usual names, as they are now; encrypted ones are left out.

    Raises:
        OSError, ValueError: one of `identities` cannot be read.
    """
    usual = Path("~/.ssh").expanduser().glob("id_*")
    files = [Path(name + end) for name in identities for end in BESIDE] if identities else sorted(usual)
    pairs = _read(tuple(identities), tuple((path, *stamp(path)) for path in files))
    return [copy.copy(pair) for pair in pairs]  # a login notes in its own by which algorithm it signs


@functools.lru_cache(maxsize=8)
def _read(
    identities: tuple[str, ...], stamps: tuple[tuple[Path, int, int], ...]
) -> tuple[asyncssh.SSHKeyPair, ...]:
    options = asyncssh.SSHClientConnectionOptions(
        config=None, client_keys=list(identities) or (), ignore_encrypted=True, known_hosts=b""
    )
    return tuple(options.client_keys or ())
