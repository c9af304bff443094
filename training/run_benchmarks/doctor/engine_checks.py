"""Whether a host's container engine has room, and starts a container that has the vendor's devices."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from run_benchmarks.doctor.look import Patient
from run_benchmarks.images.layers import plan_image
from run_benchmarks.images.store import ImageStore
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime, Unit
from run_benchmarks.runtimes.engine import Engine, engine_of
from run_benchmarks.stages.checks import QUICK_S, DoubtError, SkippedError, free_gib
from run_benchmarks.transports.base import Completed, Transport
from utils.errors import FlagPerfError

LITTLE_GIB = 20.0  # an image with a vendor's framework has 5 to 20, and for a while twice that
STARTING_S = 60.0
MOST_TRIED = 3
NO_PROGRAM = (126, 127)  # what an engine exits with where an image has no such program
# $0: the engine, $1: what its store is called in what it says of itself.
STORE = 'at=$("$0" info --format "$1") && exec df -Pk "$at"'


async def image_space(plan: Plan, runtime: Runtime, patient: Patient) -> str | None:
    """There is room where the engine keeps its images."""
    if not plan.run.uses_engine:
        return None
    engine = engine_of(plan.run.container_engine)
    done = await patient.transport.run(
        ["sh", "-c", STORE, engine.command, engine.STORE_FORMAT], timeout=QUICK_S
    )
    free = free_gib(done)
    patient.facts["free_gib"] = round(free, 1)
    if free < LITTLE_GIB:
        remedy = (
            "remove images that nobody needs (`run.py cleanup` lists FlagPerf's), or move the engine's store"
        )
        raise DoubtError(f"{free:.1f} GiB", remedy=remedy)
    return f"{free:.0f} GiB"


async def container(plan: Plan, runtime: Runtime, patient: Patient) -> str | None:
    """The engine starts a container of an image that is there, and ends it: with what the vendor's devices need if
    the image is FlagPerf's. Anybody else's gets nothing of this: its `true` may be any program."""
    if not plan.run.uses_engine:
        return None
    engine = engine_of(plan.run.container_engine)
    store = ImageStore(engine)
    own = await _own_tags(plan, store, patient)
    for tag in own[:MOST_TRIED]:
        details = [await _started(engine, patient.transport, tag, *each) for each in _options(plan, patient)]
        if all(details):
            return f"{tag} ran{''.join(details)}"
    others = [tag for tag in await store.any_tags(patient.transport) if tag not in own]
    for tag in others[:MOST_TRIED]:
        if await _started(engine, patient.transport, tag):
            return f"{tag} ran, without any vendor's options, as it is no image of FlagPerf's"
    reason = (
        "no image that is there has the program `true`" if own or others else "there is no image here yet"
    )
    raise SkippedError(f"{reason}: the first run brings one")


def _options(plan: Plan, patient: Patient) -> Iterator[tuple[str, Sequence[str]]]:
    """For each vendor its name and its container options, without the variables among them that are secret."""
    of_cases = {case.vendor.name: case.container_options for case in patient.cases}
    of_vendors = {vendor.name: vendor.options_for(1) for vendor in patient.vendors}
    for name, options in {**of_vendors, **of_cases}.items():
        yield name, plan.secrets.split_options(options)[0]


async def _own_tags(plan: Plan, store: ImageStore, patient: Patient) -> list[str]:
    """Tags of FlagPerf's images that are there, what the cases run in first."""
    wanted = {plan_image(plan, case).tag for case in patient.cases}
    own = [image.tag for image in await store.own_images(patient.transport)]
    return sorted(own, key=lambda tag: tag not in wanted)


async def _started(
    engine: Engine, transport: Transport, tag: str, vendor: str = "", options: Sequence[str] = ()
) -> str:
    """What to say of a container that ran; empty where the image has no `true`.

    Raises:
        FlagPerfError: it did not start; whether the engine or what the vendor needs is to blame.
    """
    done = await _run(engine, transport, tag, options)
    if done.ok:
        return f" with {vendor}'s options" if options else f" for {vendor}"
    if done.returncode in NO_PROGRAM and "true" in done.stderr:
        return ""
    plain = await _run(engine, transport, tag, ()) if options else done
    if plain.ok:
        remedy = f"install what gives {vendor}'s devices to containers (its container toolkit), or mend its options"
        raise FlagPerfError(
            f"{tag} does not start with {vendor}'s options: {done.last_lines(1)}", remedy=remedy
        )
    raise FlagPerfError(
        f"{tag} does not start: {plain.last_lines(1)}", remedy=engine.remedy(plain) or RESTART
    )


RESTART = "try a container by hand there, and read the engine's log"


async def _run(engine: Engine, transport: Transport, tag: str, options: Sequence[str]) -> Completed:
    """A container without network that runs `true` and goes; the engine removes it as soon as it ends."""
    name = f"flagperf-doctor-{secrets.token_hex(6)}"
    unit = Unit(name, {}, tag, ("true",), options=("--rm", *options))
    return await transport.run(engine.run_to_end(unit), timeout=STARTING_S)
