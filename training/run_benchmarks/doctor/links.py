"""How fast nodes reach each other: from each host to the next of its vendor, by a program that is fed to both.

A node needs `python3` for it, or an image of FlagPerf's, which has one; what has neither is not measured. One TCP
stream of one process says whether the network is as it should be, not what RDMA or many streams would carry.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from run_benchmarks.doctor.look import Patient
from run_benchmarks.images.store import ImageStore
from run_benchmarks.plan.cluster import is_loopback
from run_benchmarks.plan.records import Plan
from run_benchmarks.reading import object_in, parsed
from run_benchmarks.runtimes.base import Runtime, Unit
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages.checks import Check, DoubtError, SkippedError, outcome
from run_benchmarks.stages.served_port import NotServedError, served_port
from utils import link_probe
from utils.errors import FlagPerfError

MOST_AT_ONCE = 16
LIMIT_S = 2 * link_probe.LIMIT_S + 15.0  # of a container's start, too
SLOW_S = 0.005  # there and back: between hosts of one room it is a tenth of it
SLOW_BYTES_PER_S = 110e6  # what Gigabit Ethernet carries
MBIT = 125_000
NEEDED = "nodes of a case connect at ports of the kernel's own range (net.ipv4.ip_local_port_range)"


@dataclass(frozen=True)
class Link:
    """What `link_probe.ask` prints."""

    latency_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    bytes_per_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]


async def links(plan: Plan, runtime: Runtime, patients: Mapping[str, Patient]) -> dict[str, Check]:
    """Of each host the link to the next one that has a vendor's devices too; a host that is alone has none."""
    places = asyncio.Semaphore(MOST_AT_ONCE)
    next_of = ring(plan, list(patients))

    async def of(host: str) -> Check:
        async def link(plan: Plan, runtime: Runtime, patient: Patient) -> str:
            async with places:
                return await _measured(plan, patient, next_of[host], patients[next_of[host]])

        return await outcome(link, plan, runtime, patients[host])

    checks = await asyncio.gather(*map(of, next_of))
    return dict(zip(next_of, checks, strict=True))


def ring(plan: Plan, hosts: Sequence[str]) -> dict[str, str]:
    """Host -> the next one of its group: each sends to one and receives from one. No other machine is on this one."""
    groups = plan.cluster.all_groups().values() or [plan.cluster.hosts]
    next_of: dict[str, str] = {}
    for group in groups:
        there = [host for host in group if host in hosts and not is_loopback(host)]
        if len(there) > 1:
            next_of |= dict(zip(there, [*there[1:], there[0]], strict=True))
    return next_of


async def _measured(plan: Plan, patient: Patient, peer: str, other: Patient) -> str:
    measured = await _link(plan, patient, peer, other)
    speed, latency = measured.bytes_per_s / MBIT, 1000 * measured.latency_s
    patient.facts.update(latency_s=measured.latency_s, bytes_per_s=measured.bytes_per_s)
    detail = f"to {peer}: {latency:.2f} ms there and back, {speed:,.0f} Mbit/s in one TCP stream"
    if measured.latency_s > SLOW_S or measured.bytes_per_s < SLOW_BYTES_PER_S:
        raise DoubtError(
            detail, remedy="see cable, switch and route between the two (`ip route get`, `ethtool`)"
        )
    return detail


async def _link(plan: Plan, patient: Patient, peer: str, other: Patient) -> Link:
    """Let `other` serve, and ask it from here.

    Raises:
        SkippedError: one of both has nothing that could run the program.
        FlagPerfError: they did not reach each other; where no case needs it, DoubtError.
    """
    token = secrets.token_hex(16)
    serving, asking = await _python(plan, other), await _python(plan, patient)
    program = _program(f"serve({token!r})")
    try:
        async with served_port(other.transport, serving, program, LIMIT_S, LIMIT_S) as port:
            call = f"ask({other.address!r}, {port}, {token!r})"
            done = await patient.transport.run(asking, stdin=_program(call), timeout=LIMIT_S)
            if not done.ok:
                raise _not_reached(f"{peer} is not reached at TCP port {port}: {done.last_lines(1)}", patient)
    except NotServedError as error:
        raise SkippedError(f"{peer} did not serve: {error.message}") from error
    return parsed(Link, object_in(done.stdout, patient.transport.host), patient.transport.host)


def _not_reached(message: str, patient: Patient) -> FlagPerfError:
    kind = FlagPerfError if any(len(place.addresses) > 1 for place in patient.places) else DoubtError
    return kind(message, remedy=f"open the firewall between the nodes: {NEEDED}")


def _program(call: str) -> bytes:
    """The token goes with the program by standard input: no list of processes shows it."""
    return Path(link_probe.__file__).read_bytes() + f"\n{call}\n".encode()


async def _python(plan: Plan, patient: Patient) -> tuple[str, ...]:
    """The command that runs a Python program from standard input: the host's own, else a container's."""
    words = ("-I", "-")
    if not plan.run.uses_images:
        return (plan.run.process_python, *words)
    if patient.look.text("python3") or not plan.run.uses_engine:
        return ("python3", *words)
    engine = engine_of(plan.run.container_engine)
    images = await ImageStore(engine).own_images(patient.transport)
    if not images:
        raise SkippedError(f"{patient.transport.host} has no python3, and no image of FlagPerf's yet")
    name = f"flagperf-doctor-{secrets.token_hex(6)}"
    unit = Unit(name, {}, images[0].tag, ("python3", *words), options=("--rm",), host_network=True)
    return engine.run_to_end(unit)
