"""The port by which the ranks find each other is free, or it is said who has it."""

from __future__ import annotations

import re

from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import QUICK_S, DoubtError, HostUse
from run_benchmarks.transports.base import WHOLE_BYTES, CommandTimeoutError, Transport
from utils.errors import FlagPerfError

LISTENING = "0A"
# `users:(("python3",pid=4711,fd=3))`; of other users' processes only root is told. A name is whatever its owner likes.
_OWNER = re.compile(r'\("([^"\n]{1,32})",pid=(\d{1,10}),')
MOST_OWNERS = 5


async def master_port(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """Nothing listens on MASTER_PORT of a host that is node 0 of a case, or, without cases, may become it."""
    port, host = plan.cluster.master_port, use.transport.host
    if plan.cases and not any(place.rank == 0 for place in use.places):
        return None
    argv = ["cat", "/proc/net/tcp", "/proc/net/tcp6"]
    done = await use.transport.run(argv, timeout=QUICK_S, held=WHOLE_BYTES)
    if any(_listens_on(line, port) for line in done.whole_stdout().splitlines()):
        owners = await _owners(use.transport, port)
        by = f" by {', '.join(owners)}" if owners else ", by whom the ssh user is not told"
        ask = "" if owners else f"; who it is: `sudo ss -ltnp 'sport = :{port}'` on {host}"
        kind = FlagPerfError if plan.cases else DoubtError
        raise kind(
            f"{port} is in use{by}",
            remedy=f"end that on {host}, or set another MASTER_PORT in cluster_conf.py{ask}",
        )
    return str(port)


def _listens_on(line: str, port: int) -> bool:
    fields = line.split()
    return len(fields) > 3 and fields[1].endswith(f":{port:04X}") and fields[3] == LISTENING


async def _owners(transport: Transport, port: int) -> list[str]:
    """The processes that listen there, `python3 (pid 4711)`; none where there is no `ss`, or it does not tell."""
    try:
        done = await transport.run(["ss", "-Hltnp", f"sport = :{port}"], timeout=QUICK_S)
    except CommandTimeoutError:
        return []
    owners = dict.fromkeys(_OWNER.findall(done.stdout))
    return [f"{name} (pid {pid})" for name, pid in owners][:MOST_OWNERS]
