"""Which machine a host is: two names of one would be two nodes that share its chips, in figures of two machines.

Nothing of the names tells: one may be an address, an alias of DNS, or a HostName in an ssh configuration.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.stages.checks import Check, Status

MACHINE = "machine"  # the name of the fact, and of the check that is there where it fails
_MARK = "machine:"
# None of the three is enough by itself: containers of one machine have its boot in common, and copies of a virtual
# machine its boot and the namespace's inode. Addresses are those that devices were made with: those of a container's
# end come and go.
ASK = (
    f"uname -sr; echo {_MARK}; cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net; "
    'for at in /sys/class/net/*; do read -r kind <"$at/addr_assign_type" && [ "$kind" = 0 ] && cat "$at/address"; '
    "done; exit 0"
)
_IDENTITY = re.compile(r"(?P<boot>[0-9a-f-]{36})\n(?P<namespace>net:\[\d+\])\n(?P<addresses>.*)", re.DOTALL)
_WHICH = "the same boot, network namespace and MAC addresses"
_REMEDY = (
    "each node needs a machine of its own: correct what leads there (HostName in ~/.ssh/config, DNS, /etc/hosts), or "
    "remove one of the two from cluster_conf.py"
)


def machine_in(answer: str) -> tuple[str, str]:
    """What a host that was asked says of its system, and a digest of which machine it is; empty where it tells not."""
    system, _, rest = answer.partition(_MARK)
    identity = _IDENTITY.fullmatch(rest.lstrip())
    if not identity:
        return system.strip(), ""
    parts = (identity["boot"], identity["namespace"], *sorted(identity["addresses"].split()))
    return system.strip(), hashlib.sha256("\n".join(parts).encode()).hexdigest()


def same_machines(cluster: ClusterSettings, checks: Mapping[str, Sequence[Check]]) -> dict[str, Check]:
    """The error of each host that is the machine of one before it in the same list.

    None of hosts that a scheduler has granted: it knows what it counts as a node.
    """
    if cluster.scheduler:
        return {}
    errors: dict[str, Check] = {}
    for hosts in (cluster.all_groups() or {"": cluster.hosts}).values():
        first: dict[str, str] = {}  # machine -> its first host
        for host in hosts:
            machine = _machine_of(checks.get(host, ()))
            if machine and (other := first.setdefault(machine, host)) != host:
                errors[host] = Check(
                    MACHINE, Status.ERROR, f"{other} and {host} are one machine: {_WHICH}", _REMEDY
                )
    return errors


def _machine_of(checks: Sequence[Check]) -> str:
    return next((str(check.facts[MACHINE]) for check in checks if MACHINE in check.facts), "")
