"""Transports: how an argument list and bytes reach a host. `open_transport` is the way in."""

from __future__ import annotations

import os
from collections.abc import Callable

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport

LOCALHOST = "localhost"


def open_transport(host: str, cluster: ClusterSettings) -> Transport:
    """The transport to `host`: srun to a node of the job that run.py is in, local for `localhost`, else ssh."""
    return TRANSPORTS["srun" if cluster.slurm else "local" if host == LOCALHOST else "ssh"](host, cluster)


def _local(host: str, cluster: ClusterSettings) -> Transport:
    return LocalTransport(host)


def _ssh(host: str, cluster: ClusterSettings) -> Transport:
    # imported late: a run on this machine alone needs no asyncssh
    from run_benchmarks.transports.ssh import SshTransport

    return SshTransport(host, cluster)


def _srun(host: str, cluster: ClusterSettings) -> Transport:
    from run_benchmarks.transports.srun import SrunTransport

    return SrunTransport(os.environ.get("SLURM_JOB_ID", ""), host)


TRANSPORTS: dict[str, Callable[[str, ClusterSettings], Transport]] = {
    "local": _local,
    "ssh": _ssh,
    "srun": _srun,
}
