"""Builds of Dockerfiles that go on on a host although their controller is gone: no engine says whose a build is."""

from __future__ import annotations

import asyncio

from run_benchmarks.images.build import BuildSite
from run_benchmarks.names import LABEL_ROLE, LABEL_RUN, RUN_UID
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

BUILD_MARK = "FLAGPERF_BUILD_OF"
BUILD = "a build of an image"
LOOK_S, GRACE_S, PAUSE_S = 60.0, 10.0, 0.5
# $0: the work folder; $1: a run, or nothing for any; $2: a signal, or nothing. Prints the runs of the builds. Anybody
# can start a program with the mark, also one of root's: only those are meant that this user has started, and in no
# container. SIGTERM is for what they started last: Podman's container ends with it, and Podman itself leaves it behind.
SEE = f"""own=$(readlink /proc/self/ns/pid) pids= parents=' '
for at in $(grep -lsze "^{BUILD_MARK}=" /proc/[0-9]*/environ); do at=${{at%/environ}}
grep -qs "^Uid:[[:space:]]*$(id -u)[[:space:]]" "$at/status" && [ "$(readlink "$at/ns/pid")" = "$own" ] || continue
mark=$(tr '\\0' '\\n' <"$at/environ" | sed -n 's/^{BUILD_MARK}=//p') run=${{mark%%:*}}
[ "$mark" = "$run:$0" ] && [ "$run" = "${{1:-$run}}" ] || continue
echo "$run"
pids="$pids ${{at#/proc/}}" parents="$parents$(sed -n 's/^PPid:[[:space:]]*//p' "$at/status") "; done 2>/dev/null
[ "$2" ] || exit 0
for pid in $pids; do case $2$parents in TERM*" $pid "*) ;; *) kill -s "$2" "$pid" ;; esac; done 2>/dev/null; :"""


def build_mark(site: BuildSite) -> dict[str, str]:
    """What the environment of an engine's command has that builds a Dockerfile."""
    return {BUILD_MARK: f"{site.run_uid}:{site.work}"}


async def unfinished_builds(transport: Transport, work: str) -> tuple[UnitState, ...]:
    """A unit for each run of which the user's engine builds an image on the host, for a work folder there."""
    return tuple(
        UnitState(BUILD, {LABEL_RUN: run, LABEL_ROLE: "build"}, running=True)
        for run in await _see(transport, work)
    )


async def end_builds(transport: Transport, work: str, uid: str) -> tuple[str, ...]:
    """End the builds of a run, with their containers, which the engine's command takes with it; what was ended.

    Raises:
        FlagPerfError: one does not end.
    """
    ended: tuple[str, ...] = ()
    for first, then in (("TERM", ""), ("KILL", "KILL")):
        runs = await _see(transport, work, uid, first)
        for _ in range(int(GRACE_S / PAUSE_S)):
            if not runs:
                return ended
            ended = (BUILD,)
            await asyncio.sleep(PAUSE_S)
            runs = await _see(transport, work, uid, then)
    remedy = f"find it on {transport.host}: grep -lz {BUILD_MARK} /proc/[0-9]*/environ"
    raise FlagPerfError(f"{BUILD} cannot be ended", where=transport.host, remedy=remedy)


async def _see(transport: Transport, work: str, *words: str) -> list[str]:
    seen = await checked(transport, ("sh", "-c", SEE, work, *words), timeout=LOOK_S)
    return sorted({run for run in seen.stdout.split() if RUN_UID.fullmatch(run)})
