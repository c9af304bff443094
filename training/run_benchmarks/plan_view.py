"""`run.py plan`: what a run would do, with every command that a host would get, ready for a shell."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby

from run_benchmarks.hosts.slurm.holder import job_name, sbatch_argv
from run_benchmarks.images.build import MERGED
from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.plan.host_ranges import alike, fold
from run_benchmarks.plan.monitors import meter_interval
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.plan.redact import redact_argv
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.plan_notes import hooks_of, notes_of, stamp_of
from run_benchmarks.rehearsal import Note, RehearsedRound, rehearse
from run_benchmarks.transports.base import WITH_VARIABLES
from utils.code_files import digest_of
from utils.numbers import counted
from utils.records import Stage
from utils.text_files import one_line

WHAT = {
    Stage.DEPLOY: "the training/ tree, as a tar file, if it is not there yet; the round's folder",
    Stage.IMAGE: "the image, if it is not there yet",
    Stage.IDLE: "start the monitor that samples, and let it see the host while nothing runs",
    Stage.LAUNCH: "start the task that trains, and the monitor, if it does not run yet",
    Stage.TRAIN: "follow rank 0's log, and wait for the end",
    Stage.COLLECT: "stop what still runs, and bring the logs home",
    Stage.CLEAN_UP: "remove what this lists, and the run's folder",
}


def plan_lines(plan: Plan) -> Iterator[str]:
    """The whole text, line by line. Lines that are not commands are comments of the shell. Nothing is touched."""
    # a comment that went on in a further line would be pasted as a command
    return (one_line(line) if line.startswith("#") else line for line in map(plan.secrets.hide, _lines(plan)))


def _lines(plan: Plan) -> Iterator[str]:
    rehearsed = asyncio.run(rehearse(plan))
    cluster = plan.cluster
    spares = f", spares {fold(cluster.spares)}" if cluster.spares else ""
    listed = fold([host for host in cluster.hosts if host not in cluster.spares])
    yield f"# runtime {plan.run.runtime}, hosts {listed or f'that {cluster.scheduler} grants'}{spares}"
    yield f"# results go to {plan.run.log_path}/{rehearsed.run.name}"
    if plan.run.machine.settings:
        yield f"# {plan.run.machine.sentence()}"
    yield from (f"# note: {note}" for note in notes_of(plan))
    yield from _meters(plan)
    if plan.continue_from:
        yield f"# the rounds go on from the checkpoints of {plan.continue_from} in {plan.run.checkpoint_path}"
    yield ""
    yield "# ===== preflight"
    alike: dict[tuple[str, ...], list[str]] = {}
    for host, notes in _by_host(rehearsed.preflight).items():
        alike.setdefault(tuple(_commands(notes, plan.secrets)), []).append(host)
    for commands, hosts in alike.items():
        yield f"# ----- {'hosts' if len(hosts) > 1 else 'host'} {fold(hosts)}"
        yield from commands
    for case in plan.cases:
        yield from _case(plan, case, rehearsed.rounds.get(case.settings.name))


def _meters(plan: Plan) -> Iterator[str]:
    """Whom this machine will ask for power, hosts whose meter is called like them in one line."""
    asked = {}
    for host, meter in plan.cluster.meters.items():
        interval_s = meter_interval(plan.run.monitors, meter.kind)
        shared = f"; one with {fold(meter.shared_with)}" if meter.shared_with else ""
        asked[host] = f"{meter.where}, every {interval_s:g} s{shared}" if interval_s else ""
    for hosts, text in alike({host: text for host, text in asked.items() if text}):
        yield f"# power of {hosts}: this machine asks {text}"


def _case(plan: Plan, case: CasePlan, rehearsed: RehearsedRound | None) -> Iterator[str]:
    settings = case.settings
    yield ""
    yield f"# ===== case {settings.name}: {settings.model} on {settings.framework}, vendor {settings.vendor}"
    size = f"{counted(settings.nnodes, 'node')} x {counted(settings.nproc, 'process', 'processes')}"
    yield f"# {size}, {counted(settings.repeat, 'round')}, deadline {case.deadline_s:g} s"
    if plan.cluster.slurm and not plan.cluster.slurm.inside:
        asked = sbatch_argv(plan.cluster.slurm, job_name("RUN"), settings.nnodes, is_search=bool(case.roles))
        yield f"# asked of Slurm: {shlex.join(asked)}"
    if plan.cluster.kubernetes:
        yield "# asked of Kubernetes: what `run.py kubernetes` prints"
    yield f"# parameters: {case.files.config_dir}/{case.files.config_file}"
    for path, digest in case.environment.items():
        yield f"# sourced before the ranks: {path}, SHA-256 {digest}"
    if case.extern:
        yield f"# extern: {case.files.extern_dir} ({', '.join(sorted(case.extern))}), SHA-256 {digest_of(case.extern)}"
    if case.extern and case.files.script == DRIVER_SCRIPT:
        yield f"# hooks: {hooks_of(plan.training_dir, case)}"
    yield f"# rules: {stamp_of(case)}"
    if rehearsed is None:
        yield "# every round of it had succeeded: it is not run again"
        return
    result = rehearsed.result
    if result.image:
        yield f"# image: {result.image}"
    notes = _by_host(rehearsed.notes)
    for rank, host in enumerate(result.hosts):
        yield ""
        yield f"# ----- host {host}, node rank {rank}, round {result.round}"
        for stage, of_stage in groupby(notes[host], lambda note: Stage(note.stage)):
            yield f"# {stage.value}: {WHAT[stage]}" if stage in WHAT else f"# {stage.value}"
            yield from _commands(of_stage, plan.secrets)
    yield from _failure(rehearsed)


def _failure(rehearsed: RehearsedRound) -> Iterator[str]:
    """What would end the round before its end; a rehearsal has no logs, so judging says nothing."""
    failure = rehearsed.result.failure
    if failure and failure.stage is not Stage.JUDGE:
        yield f"# it would fail at the stage {failure.stage.value}: {failure.message}"
        if failure.remedy:
            yield f"#     -> {failure.remedy}"


def _by_host(notes: Sequence[Note]) -> dict[str, list[Note]]:
    by_host: dict[str, list[Note]] = {}
    for note in notes:
        by_host.setdefault(note.host, []).append(note)
    return by_host


def _commands(notes: Iterator[Note] | Sequence[Note], secrets: Secrets) -> Iterator[str]:
    for note in notes:
        argv = note.argv
        if argv[: len(WITH_VARIABLES)] == WITH_VARIABLES:
            argv = argv[len(WITH_VARIABLES) :]
            yield from _variables(note.stdin or b"", secrets)
        elif note.stdin is not None:
            yield f"# from its standard input it reads {len(note.stdin) or 'a stream of'} bytes:"
        if argv[: len(MERGED)] == MERGED:
            argv = argv[len(MERGED) :]
        # ready to be pasted, but for the credentials that the user's options may hold
        yield shlex.join(redact_argv(argv))


def _variables(exports: bytes, secrets: Secrets) -> Iterator[str]:
    """The variables of a command; who pastes them fills in those that are secret."""
    yield "# its variables, which it reads from its standard input, so that they stand in no list of processes:"
    words = [word.split("=", 1) for word in shlex.split(os.fsdecode(exports))[1::2]]
    for name, value in words:
        yield shlex.join(["export", f"{name}={secrets.shown(name, value)}"])
