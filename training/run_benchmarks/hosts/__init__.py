"""Hosts: where those of a round come from. `open_allocator` is the way in."""

from __future__ import annotations

from run_benchmarks.hosts.base import Allocator
from run_benchmarks.hosts.fixed import FixedHosts, Opener
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports import open_transport


def open_allocator(cluster: ClusterSettings, opener: Opener | None = None) -> Allocator:
    """The allocator that the settings ask for.

    Args:
        opener: makes the transport to a host; by default a real one.
    """
    return FixedHosts(cluster, opener or (lambda host: open_transport(host, cluster)))
