"""The check of a host's meter: it is read once, so that who looks for its power in the results will find it there."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from run_benchmarks.meters import open_meter
from run_benchmarks.meters.base import MeterSource
from run_benchmarks.plan.monitors import meter_interval
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import DoubtError, HostUse
from run_benchmarks.threads import in_thread
from run_benchmarks.transports.time_limit import within
from run_benchmarks.unforeseen import contained
from utils.errors import FlagPerfError

LIMIT_S = 90.0


async def power_meter(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """The host's meter, if it has one, tells a power to this machine."""
    meter = plan.cluster.meters.get(use.transport.host)
    if meter is None or meter_interval(plan.run.monitors, meter.kind) is None:
        return None
    source = open_meter(meter)
    try:
        watts = await within(in_thread(lambda: _read(source), "power meter"), LIMIT_S)
    except asyncio.TimeoutError as error:
        message = f"its BMC did not answer within {LIMIT_S:g} s"
        raise DoubtError(message, remedy="see whether it is overloaded, or remove the meter") from error
    except Exception as raised:  # no answer of a BMC, however odd, keeps a round from its host
        why = contained(raised)
        # without its address: what is said of many hosts alike stands in one line
        raise DoubtError(why.message.replace(meter.where, "its BMC"), remedy=why.remedy) from raised
    use.facts.update(watts=watts)
    return f"{watts:g} W: {source.note}"


def _read(source: MeterSource) -> float:
    try:
        return source.read()
    finally:
        with suppress(FlagPerfError):  # its session ends by itself too
            source.close()
