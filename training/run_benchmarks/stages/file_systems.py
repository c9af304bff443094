"""Which hosts have their work folder on one file system, with each other or with this machine: by tokens, not by types.

Each host puts a token into a folder whose name nobody can guess, and then says which is the first that it sees there.
What the host sees that put it there, it sees too: so that one keeps for both what is copied to hosts.

A token says no more than that a copy need not be made. What lies there is compared on each host before it is used, as
is what was copied. So a host that lies, a token that a task has put there, and a file system that is slow to show what
is new on it cost a copy each, and nothing else. This machine writes nothing to a file system of hosts, for who can put
a link there could lead it anywhere: it only reads.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import copy_folder
from run_benchmarks.plan.host_ranges import fold
from run_benchmarks.run_log import LOGGER
from run_benchmarks.stages.fan_out import on_all, values_of
from run_benchmarks.stages.work_folder import SEE, in_work_folder
from run_benchmarks.transports import LOCALHOST
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport
from utils.errors import FlagPerfError

QUICK_S = 30.0
# $2: the folder of tokens, $3: the host's own.
PUT = 'mkdir -p -m 700 "$0/$2" && umask 077 && set -C && : >"$0/$2/$3"'
# A token that is alone there is seen by nobody else.
SEE_FIRST = (
    'all=$(LC_ALL=C ls "$0/$2"); printf "%s\\n" "$all" | head -n 1; [ "$all" != "$3" ] || rm -rf "$0/$2"'
)
SEE_ALL = '[ ! -d "$0/$2" ] || LC_ALL=C ls "$0/$2"'
REMOVE = 'rm -rf "$0/$2"'


@dataclass(frozen=True)
class FileSystems:
    """Which hosts see the same work folder. By default each has its own.

    keepers: host -> the host whose files it sees there, where that is another one. seen_here: the hosts whose files
    this machine sees, at the same path.
    """

    keepers: Mapping[str, str] = field(default_factory=dict)
    seen_here: frozenset[str] = frozenset()

    def groups(self, hosts: Iterable[Host]) -> list[tuple[Host, ...]]:
        """Those of `hosts` that share a file system; the first of each keeps what is copied there."""
        groups: dict[str, list[Host]] = {}
        for host in hosts:
            groups.setdefault(self.keepers.get(host.name, host.name), []).append(host)
        return [tuple(group) for group in groups.values()]

    def reader(self, host: str) -> Transport | None:
        """What reads a host's files without the host; None where this machine does not see them."""
        return LocalTransport() if host in self.seen_here else None


async def shared_file_systems(hosts: Sequence[Host], work: str, run_uid: str) -> FileSystems:
    """Find out which of `hosts` (by node rank) have the work folder `work` on one file system.

    Nothing is raised: a host that does not answer, or whose work folder is not to be trusted, shares it with nobody.
    """
    if all(host.name == LOCALHOST for host in hosts):
        return FileSystems()
    folder = copy_folder(run_uid)  # of a name that every clean-up of the run knows
    tokens = {host: f"{rank:06d}-{secrets.token_hex(16)}" for rank, host in enumerate(hosts)}
    owners = {token: host.name for host, token in tokens.items()}

    async def ask(host: Host, script: str) -> str:
        words = (folder, tokens[host])
        done = await in_work_folder(host.transport, work, script, *words, timeout=QUICK_S)
        return done.stdout.strip()

    have_put = values_of(await on_all(hosts, lambda host: ask(host, PUT)))
    seen_here = await _seen_here(work, folder)
    first = values_of(await on_all(list(have_put), lambda host: ask(host, SEE_FIRST)))
    keepers = {host.name: owners[token] for host, token in first.items() if token in owners}
    keepers = {name: keeper for name, keeper in keepers.items() if keeper != name}
    await on_all([host for host in hosts if host.name in keepers.values()], lambda host: ask(host, REMOVE))
    seen = FileSystems(keepers, frozenset(owners[token] for token in seen_here if token in owners))
    _tell(seen, hosts, work)
    return seen


async def _seen_here(work: str, folder: str) -> list[str]:
    """The tokens that this machine sees in its own work folder, if it has one that is its user's alone."""
    try:
        seen = await in_work_folder(LocalTransport(), work, SEE_ALL, folder, timeout=QUICK_S, enter=SEE)
        return seen.whole_stdout().split()
    except FlagPerfError:
        return []


def _tell(seen: FileSystems, hosts: Sequence[Host], work: str) -> None:
    for group in seen.groups(hosts):
        names = [host.name for host in group]
        with_this = " and this machine" if seen.seen_here.issuperset(names) else ""
        if len(group) > 1 or with_this:
            LOGGER.info(f"{fold(names)}{with_this} share {work}: what is copied there is copied once")
