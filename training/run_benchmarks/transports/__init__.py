"""Transports: how an argument list and bytes reach a host. `open_transport` is the way in."""

from __future__ import annotations

from collections.abc import Callable

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport

LOCALHOST = "localhost"


def open_transport(host: str, cluster: ClusterSettings) -> Transport:
    """The transport to `host`: local for `localhost`, ssh for any other name. Connects when first used."""
    return TRANSPORTS["local" if host == LOCALHOST else "ssh"](host, cluster)


def _local(host: str, cluster: ClusterSettings) -> Transport:
    return LocalTransport(host)


def _ssh(host: str, cluster: ClusterSettings) -> Transport:
    # imported late: a run on this machine alone needs no asyncssh
    from run_benchmarks.transports.ssh import SshTransport

    return SshTransport(host, cluster)


TRANSPORTS: dict[str, Callable[[str, ClusterSettings], Transport]] = {"local": _local, "ssh": _ssh}
