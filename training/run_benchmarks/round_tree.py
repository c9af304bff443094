"""The code of a round on its way to the hosts."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.hosts.base import Host
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Session
from run_benchmarks.stages.deploy import bring_tree
from run_benchmarks.stages.file_systems import shared_file_systems
from run_benchmarks.stages.passing import Site


async def bring_to_hosts(session: Session, state: RoundState, hosts: Sequence[Host]) -> None:
    """Bring the tree to the hosts, once to those that share a file system."""
    settings, work, uid = session.plan.run, session.paths.work, session.run.uid
    state.file_systems = await shared_file_systems(hosts, work, uid)
    python = "python3" if settings.uses_images else settings.process_python
    site = Site(work, uid, python, state.file_systems)
    state.notes += await bring_tree(hosts, session.tree, session.paths, site)
