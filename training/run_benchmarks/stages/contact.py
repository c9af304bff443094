"""Whether a host answers, how it is out of reach where it does not, and when it is waited for no longer."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta

from run_benchmarks.transports.base import CommandTimeoutError, Transport, TransportError
from run_benchmarks.transports.time_limit import within

PING_TIMEOUT_S = 5.0
REACH_TIMEOUT_S = 30.0  # with hundreds of hosts out of reach, connections wait for each other
# No peer waits for a task that has its node to itself, so a long outage of the connection costs nothing.
ALONE_PATIENCE_S = 600.0
RUNS_NOTHING = (
    "see at its console, or by its BMC, whether a disk or a network file system hangs: that of the ssh user's home, "
    "of its login shell"
)


async def silence_of(transport: Transport, limit_s: float = PING_TIMEOUT_S) -> TransportError | None:
    """How a host does not answer; None where it runs a command within `limit_s`."""
    try:
        await transport.run(["true"], timeout=limit_s)
    except TransportError as error:
        return error
    except CommandTimeoutError:
        return await out_of_reach(transport) or TransportError(
            f"it lets us in, and runs no command: `true` was not done within {limit_s:g} s",
            where=transport.host,
            remedy=RUNS_NOTHING,
        )
    return None


async def out_of_reach(transport: Transport) -> TransportError | None:
    """How a host is out of reach that did not answer in time, as a fresh connection tells; None where that is made."""
    try:
        await within(transport.reach(), REACH_TIMEOUT_S)
    except TransportError as error:
        return error
    except asyncio.TimeoutError:
        return TransportError(f"no connection within {REACH_TIMEOUT_S:g} s", where=transport.host)
    return None


def given_up(last_contact: float, progressed: float | None, host_lost_after_s: float, *, alone: bool) -> str:
    """Why a host is waited for no longer; empty where it is.

    Args:
        last_contact: when it last answered; progressed: when its peers last showed progress (both monotonic).
        alone: whether its task has no peers.
    """
    last_sign = max(last_contact, progressed or last_contact)
    longer = alone and host_lost_after_s < ALONE_PATIENCE_S
    patience = ALONE_PATIENCE_S if longer else host_lost_after_s
    if time.monotonic() - last_sign <= patience:
        return ""
    limit = (
        f"{patience:g} s, for which a task without peers is waited for"
        if longer
        else f"HOST_LOST_AFTER = {patience:g} s in cluster_conf.py"
    )
    no_progress = f", no progress of its peers since {_clock(last_sign)}" * (last_sign > last_contact)
    return f"no answer since {_clock(last_contact)}{no_progress}: longer than {limit}"


def _clock(at: float) -> str:
    """A moment of the monotonic clock as the log has it."""
    moment = datetime.now() - timedelta(seconds=time.monotonic() - at)
    return f"{moment:%Y-%m-%d %H:%M:%S}"
