"""The port by which the ranks find each other is free, or it is said who has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from run_benchmarks.commands import run_command
from run_benchmarks.names import LABEL_RUN, run_of
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import QUICK_S, DoubtError, HostUse, named, runs_of
from run_benchmarks.transports.base import WHOLE_BYTES, CommandTimeoutError, Transport
from utils.errors import FlagPerfError
from utils.process_unit import RUN_MARK

LISTENING = "0A"
# `users:(("python3",pid=4711,fd=3))`; of other users' processes only root is told. A name is whatever its owner likes.
_OWNER = re.compile(r'\("([^"\n]{1,32})",pid=(\d{1,10}),')
MOST_OWNERS = 5
# What a unit's processes have in their environment; a container's have none, and are not told to a user either.
_MARKS = (
    'for pid in "$0" "$@"; do tr "\\0" "\\n" < "/proc/$pid/environ"; done 2>/dev/null | '
    f'sed -n "s/^{RUN_MARK}=//p"'
)


async def master_port(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """Nothing listens on MASTER_PORT of a host that is node 0 of a case, or, without cases, may become it."""
    port, host = plan.cluster.master_port, use.transport.host
    if plan.cases and not any(place.rank == 0 for place in use.places):
        return None
    argv = ["cat", "/proc/net/tcp", "/proc/net/tcp6"]
    done = await use.transport.run(argv, timeout=QUICK_S, held=WHOLE_BYTES)
    if any(_listens_on(line, port) for line in done.whole_stdout().splitlines()):
        owners = await _owners(use.transport, port)
        names = [f"{name} (pid {pid})" for name, pid in owners]
        by = f" by {', '.join(names)}" if names else ", by whom is not told to FlagPerf's user there"
        ask = "" if owners else f"; who it is: `sudo ss -ltnp 'sport = :{port}'` on {host}"
        runs, kind = await _runs(runtime, use.transport, owners), FlagPerfError if plan.cases else DoubtError
        ends = "; ".join(run_command("stop", uid, *plan.options) for uid in runs)
        end = f"end that on {host}, or set another MASTER_PORT in cluster_conf.py{ask}"
        raise kind(
            f"{port} is in use{by}" + (f": {named(runs)} runs there" if runs else ""),
            remedy=f"wait until that run is over, or end it (one of another checkout: by the run.py there): {ends}"
            if runs
            else end,
        )
    return str(port)


def _listens_on(line: str, port: int) -> bool:
    fields = line.split()
    return len(fields) > 3 and fields[1].endswith(f":{port:04X}") and fields[3] == LISTENING


async def _owners(transport: Transport, port: int) -> list[tuple[str, str]]:
    """The processes that listen there, name and PID; none where there is no `ss`, or it does not tell."""
    try:
        done = await transport.run(["ss", "-Hltnp", f"sport = :{port}"], timeout=QUICK_S)
    except CommandTimeoutError:
        return []
    return list(dict.fromkeys(_OWNER.findall(done.stdout)))[:MOST_OWNERS]


async def _runs(runtime: Runtime, transport: Transport, owners: Sequence[tuple[str, str]]) -> list[str]:
    """The runs that the port is theirs: by the owners' marks; where no owner is told, all that have units running."""
    with suppress(FlagPerfError):  # what cannot be seen of it is none of this check's
        if not owners:
            return runs_of(unit for unit in await runtime.list_units(transport) if unit.running)
        argv = ["sh", "-c", _MARKS, *(pid for _, pid in owners)]
        done = await transport.run(argv, timeout=QUICK_S)
        return sorted({run_of({LABEL_RUN: mark}) for mark in done.stdout.splitlines()} - {""})
    return []
