"""All hosts at once: the preflight's checks and the doctor's own, then the links between the hosts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from run_benchmarks.doctor import host_checks
from run_benchmarks.doctor.accelerators import accelerators
from run_benchmarks.doctor.differences import Difference, differences
from run_benchmarks.doctor.engine_checks import container, image_space
from run_benchmarks.doctor.links import links
from run_benchmarks.doctor.look import Patient, look_at
from run_benchmarks.hosts.base import Allocator, Host
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import Check, Checker, Place, Status, outcome
from run_benchmarks.stages.preflight import castings, outcomes, places_of, reachable, usual
from run_benchmarks.stages.readings import Readings
from run_benchmarks.stages.same_machine import same_machines
from run_benchmarks.unforeseen import contained

OWN_CHECKS: tuple[Checker[Patient], ...] = (
    host_checks.host_key,
    host_checks.system,
    host_checks.processors,
    host_checks.cpu_governor,
    host_checks.memory,
    host_checks.huge_pages,
    host_checks.limits,
    host_checks.mtu,
    accelerators,
    image_space,
    container,
)
ALL_HOSTS = "all hosts"


@dataclass(frozen=True)
class Findings:
    """What was found: host -> its checks, what differs between hosts of a vendor, and how long it took, in s."""

    checks: Mapping[str, Sequence[Check]]
    differences: Sequence[Difference]
    seconds: float

    @property
    def is_healthy(self) -> bool:
        """Whether no check of any host forbids a run."""
        return all(check.status is not Status.ERROR for of_host in self.checks.values() for check in of_host)


async def examine(plan: Plan, vendors: Mapping[str, Vendor], allocator: Allocator) -> Findings:
    """Examine the hosts that are there; nothing is left on them.

    Args:
        vendors: those that hosts are listed under, or that all hosts have, beside those of the plan's cases.
    """
    begin, runtime, hosts = time.monotonic(), open_runtime(plan.run), allocator.standing
    planned, spares = castings(plan, allocator)
    places = places_of(planned.hosts, planned.casts) | places_of(spares.hosts, spares.casts)
    readings = Readings()
    met = await asyncio.gather(
        *(_meet(plan, runtime, _patient(plan, vendors, host, places[host.name], readings)) for host in hosts)
    )
    patients = {host.name: patient for host, (patient, _) in zip(hosts, met, strict=True) if patient}
    checks = {host.name: [check] for host, (_, check) in zip(hosts, met, strict=True)}
    of_hosts = await asyncio.gather(*(_checks(plan, runtime, each) for each in patients.values()))
    for name, of_host in zip(patients, of_hosts, strict=True):
        checks[name] += of_host
    for name, link in (await links(plan, runtime, patients)).items():  # alone: it measures
        checks[name].append(link)
    for name, error in same_machines(plan.cluster, checks).items():
        checks[name].append(error)
    groups = plan.cluster.all_groups() or {ALL_HOSTS: plan.cluster.hosts}
    return Findings(checks, differences(checks, groups), time.monotonic() - begin)


def _patient(
    plan: Plan, vendors: Mapping[str, Vendor], host: Host, places: tuple[Place, ...], readings: Readings
) -> Patient:
    own = {place.case.vendor.name: place.case.vendor for place in places}
    own |= {name: vendor for name, vendor in vendors.items() if host.name in plan.cluster.hosts_of(name)}
    return Patient(
        host.transport,
        places,
        is_only_seen=True,
        readings=readings,
        vendors=tuple(own.values()),
        address=host.address,
    )


async def _meet(plan: Plan, runtime: Runtime, patient: Patient) -> tuple[Patient | None, Check]:
    """Reach the host, which takes a log-in, and look at it; None where it cannot be examined further."""
    begin = time.monotonic()
    check = await outcome(reachable, plan, runtime, patient)
    seconds = time.monotonic() - begin
    if check.status is not Status.OK:
        return None, check
    try:
        look = await look_at(patient.transport)
    except Exception as error:
        lost = contained(error)
        return None, replace(check, status=Status.ERROR, detail=lost.message, remedy=lost.remedy)
    detail, facts = f"{check.detail}, in {seconds:.2f} s", {**check.facts, "seconds": round(seconds, 3)}
    return replace(patient, look=look), replace(check, detail=detail, facts=facts)


async def _checks(plan: Plan, runtime: Runtime, patient: Patient) -> list[Check]:
    of_both = await asyncio.gather(
        outcomes(OWN_CHECKS, plan, runtime, patient), usual(plan, runtime, patient)
    )
    return [check for checks in of_both for check in checks]
