"""What the doctor judges of one host by one look at it: each check a small function, as those of the preflight.

What none of them forbids is left to the list of what differs between hosts: two hosts that should be alike and are
not slow each other down, whatever each is worth by itself.
"""

from __future__ import annotations

from run_benchmarks.doctor.look import Patient
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import DoubtError

KIB_PER_GIB = 2**20
FREE_MEMORY = 0.5  # of it; a host that has less available is at work for somebody
BUSY = 0.25  # load average a processor
RESERVED_MEMORY = 0.25  # of it, in huge pages that nobody uses
FEWEST_FILES = 1024
UNLIMITED = "unlimited"


async def host_key(plan: Plan, runtime: Runtime, patient: Patient) -> str | None:
    """The key by which the host has proven that it is itself, which known_hosts has."""
    key = await patient.transport.host_key()
    if key is None:
        return None
    patient.facts.update(kind=key[0], fingerprint=key[1])
    return f"{key[0]} {key[1]}"


async def system(plan: Plan, runtime: Runtime, patient: Patient) -> str:
    """The distribution and its kernel."""
    look = patient.look
    patient.facts.update({name: look.text(name) for name in ("kernel", "machine", "system")})
    return f"{look.text('system') or 'a Linux without a name'}, {look.text('machine')}"


async def processors(plan: Plan, runtime: Runtime, patient: Patient) -> str:
    """The host's processors are there for us."""
    look, count = patient.look, patient.look.number("processors") or 0
    name = look.text("processor") or look.text("machine")
    patient.facts.update(processor=name, processors=count)
    detail = f"{count} x {name}, load {look.text('load')}"
    if count and (look.decimal("load") or 0) > BUSY * count:
        raise DoubtError(
            f"{detail}: others are at work",
            remedy="see what runs there (`top`); it takes time from every step",
        )
    return detail


async def cpu_governor(plan: Plan, runtime: Runtime, patient: Patient) -> str | None:
    """The kernel does not save power at the price of speed; skipped where it sets no frequencies."""
    governor = patient.look.text("governor")
    if not governor:
        return None
    patient.facts["governor"] = governor
    if governor != "performance":
        remedy = "`sudo cpupower frequency-set -g performance`, or the profile of your tuned or BIOS for it"
        raise DoubtError(governor, remedy=remedy)
    return governor


async def memory(plan: Plan, runtime: Runtime, patient: Patient) -> str:
    """Most of the memory is free."""
    whole, free = (patient.look.number(name) for name in ("MemTotal", "MemAvailable"))
    if not whole or free is None:
        raise DoubtError("/proc/meminfo does not say it", remedy="look into it yourself")
    patient.facts.update(total_gib=round(whole / KIB_PER_GIB, 1), available_gib=round(free / KIB_PER_GIB, 1))
    detail = f"{free / KIB_PER_GIB:.1f} of {whole / KIB_PER_GIB:.1f} GiB available"
    if free < FREE_MEMORY * whole:
        raise DoubtError(
            detail, remedy="see what uses it (`ps aux --sort -rss | head`), and end what should not run"
        )
    return detail


async def huge_pages(plan: Plan, runtime: Runtime, patient: Patient) -> str:
    """Little memory is set aside in huge pages that nobody uses; and how the kernel gives out transparent ones."""
    look = patient.look
    count, free, size = (
        look.number(name) or 0 for name in ("HugePages_Total", "HugePages_Free", "Hugepagesize")
    )
    transparent = look.text("transparent_huge_pages") or "not told"
    patient.facts.update(reserved=count, transparent=transparent)
    idle = free * size / max(1, look.number("MemTotal") or 1)
    detail = f"{count} reserved, transparent: {transparent}"
    if idle > RESERVED_MEMORY:
        message = f"{detail}; those that nobody uses hold {idle:.0%} of the memory"
        raise DoubtError(message, remedy="lower vm.nr_hugepages: no other program gets this memory")
    return detail


async def limits(plan: Plan, runtime: Runtime, patient: Patient) -> str:
    """A process of the ssh user's may open many files, and lock memory where RDMA needs it.

    Containers have limits of their own: FlagPerf asks the engine to lift that of locked memory.
    """
    look = patient.look
    locked, files = look.text("memlock"), look.text("nofile")
    patient.facts.update(memlock=locked, nofile=files)
    detail = f"memlock {locked}, nofile {files}"
    if plan.run.uses_images:
        return detail
    if look.text("rdma") and locked != UNLIMITED:
        remedy = (
            "set memlock to unlimited in /etc/security/limits.conf, and log in again: RDMA locks its buffers"
        )
        raise DoubtError(detail, remedy=remedy)
    if files != UNLIMITED and (look.number("nofile") or 0) < FEWEST_FILES:
        remedy = "raise nofile in /etc/security/limits.conf: a rank has one for each connection and batch"
        raise DoubtError(detail, remedy=remedy)
    return detail


async def mtu(plan: Plan, runtime: Runtime, patient: Patient) -> str | None:
    """How large packets may be, of each interface that leads out of the host."""
    sizes = patient.look.below("mtu.")
    patient.facts.update(sizes)
    return ", ".join(f"{name} {size}" for name, size in sorted(sizes.items())) or None
