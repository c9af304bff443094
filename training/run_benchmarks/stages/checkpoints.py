"""Checkpoints on the hosts: can they be written, and is there one to go on from where that is wanted?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from run_benchmarks.names import Node, RunId, checkpoint_folder
from run_benchmarks.plan.continuation import OPTION, can_save, saves_checkpoints
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import QUICK_S, DoubtError, HostUse
from run_benchmarks.stages.run_folder import MAKE_OPEN_FOLDER, OWN_FOLDERS, REMOVE_FROM_SHARED
from run_benchmarks.stages.work_folder import MAKE, SEE_FOLDER, guard_argv
from run_benchmarks.transports.base import Transport, checked
from utils.checkpoints import CHECKPOINT_PATTERN
from utils.errors import FlagPerfError
from utils.numbers import counted
from utils.search.events import STATE_FILE

REMOVE_TIMEOUT_S = 300.0
# $0: CHECKPOINT_PATTERN. Of each round of a case the newest alone, which sorts last: a case may fill its own round's
# folder with any number of names, and they must not push out those of others. A link is no checkpoint: a chain of links
# takes its time, and so must not be followed.
_FILES = f'\\( -name "$0" -o -name {STATE_FILE} \\)'
_NEWEST = f'find -H "$round" -maxdepth 1 -type f {_FILES} | LC_ALL=C sort | tail -n 1; done; done'
# The folders of cases follow; or the run's: what one of its cases has filled must not hold up the others.
LIST_NEWEST = f'for case do for round in "$case"/*/; do {_NEWEST}'
LIST_ALL = f'for case in "$1"/*; do for round in "$case"/*/; do timeout 2 {_NEWEST}'
# $0: CHECKPOINT_PATH; $1, $2: below it this round's folder and the earlier round's, or nothing. Both are mounted, so
# both must be there. A run's folder is closed to others: a container's root may leave a program that makes them root.
# Where others have folders too it must be this run's own, or what is mounted is theirs to choose.
# $3: `may_be_there` where an earlier attempt at this round may have made its folder.
MAKE_FOLDERS = (
    f'{OWN_FOLDERS}umask 077; mkdir -p "$0" && cd -P -- "$0" || exit; '
    '[ -z "$2" ] || (own "${2%/*}"; part=${2##*/}; [ -e "./$part" ] || make -m 0755; enter) || exit; '
    '[ "$1" ] || exit 0; (own "${1%%/*}"; chmod 700 .) || exit; '
    '[ -z "$3" ] || ! [ -d "./$1" ] || { own "${1%/*}"; part=${1##*/}; enter; exit; }; '
    f"{MAKE_OPEN_FOLDER}"
)
# $0: CHECKPOINT_PATH; then folders below it that are mounted later: what is there must be the ssh user's own already.
SEE_FOLDERS = (
    f'{OWN_FOLDERS}cd -P -- "$0" || exit; see() {{ at=$(env pwd -P); rest=$1/; while [ "$rest" ]; do '
    'part=${rest%%/*}; rest=${rest#*/}; [ -e "./$part" ] || [ -L "./$part" ] || return 0; enter; done; }; '
    'for folder do (see "$folder") || exit; done'
)
OWN_REMEDY = (
    "let the ssh user write there; a run's folder is that user's own: move away what somebody else has made in its "
    "place, or name another folder"
)


async def checkpoints(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """CHECKPOINT_PATH can be written, and every case that is to go on has a checkpoint here.

    A round without one begins anew, which is a warning: the run may have been cut off in a round before it.

    Checkpoints lie on the host of node rank 0: global rank 0 writes and reads them.
    """
    path = plan.run.checkpoint_path
    firsts = [place.case for place in use.places if place.rank == 0]
    cases = [case for case in firsts if path and uses_checkpoints(plan, case)]
    if not cases:
        return None
    others = await _make(use, path)
    detail = await _check_earlier(plan, use.transport, cases) if plan.continue_from else path
    if others:
        message = (
            f"CHECKPOINT_PATH = {path}: {others}: a run could go on from a checkpoint that is not its own"
        )
        raise DoubtError(message, remedy="let only root and the ssh user write there, or name another folder")
    return detail


def uses_checkpoints(plan: Plan, case: CasePlan) -> bool:
    """Whether a case's task must see CHECKPOINT_PATH."""
    return saves_checkpoints(case) or (bool(plan.continue_from) and can_save(case))


def checkpoint_folders(plan: Plan, run: RunId, node: Node) -> tuple[str, str]:
    """Where a node's round saves its checkpoints, and where those are that it goes on from; empty: it does not."""
    path, earlier = plan.run.checkpoint_path, plan.continue_from
    if not path:
        return "", ""
    goes_on = earlier and uses_checkpoints(plan, node.case)
    return (
        checkpoint_folder(path, run.uid, node.case, node.round) if saves_checkpoints(node.case) else "",
        checkpoint_folder(path, earlier, node.case, node.round) if goes_on else "",
    )


async def make_checkpoint_folders(transport: Transport, plan: Plan, run: RunId, node: Node) -> None:
    """Make what a round's task gets of CHECKPOINT_PATH, on the host of global rank 0.

    Raises:
        FlagPerfError: it cannot be made, is there already, or would lie behind a link.
    """
    path, folders = plan.run.checkpoint_path, checkpoint_folders(plan, run, node)
    if node.rank != 0 or not any(folders):
        return
    words = [str(PurePosixPath(folder).relative_to(path)) if folder else "" for folder in folders]
    words.append("may_be_there" if node.case.roles else "")
    made = await transport.run(["sh", "-c", MAKE_FOLDERS, path, *words], timeout=QUICK_S)
    if not made.ok:
        raise FlagPerfError(
            f"CHECKPOINT_PATH = {path}: the round's folder was not made: {made.last_lines(1)}",
            where=transport.host,
            remedy=OWN_REMEDY,
        )


async def remove_checkpoint_folder(transport: Transport, plan: Plan, run: RunId, node: Node) -> None:
    """Remove the checkpoints of a round of this run that begins anew, on the host of global rank 0; a search goes on.

    Raises:
        FlagPerfError: they are there still.
    """
    path, (own, _) = plan.run.checkpoint_path, checkpoint_folders(plan, run, node)
    if node.rank == 0 and own and not node.case.roles:
        folder = str(PurePosixPath(own).relative_to(path))
        await checked(
            transport, ["sh", "-c", REMOVE_FROM_SHARED, path, run.uid, folder], timeout=REMOVE_TIMEOUT_S
        )


async def _make(use: HostUse, path: str) -> str:
    """Make CHECKPOINT_PATH and see that it can be written; by whom it can be replaced, in words, or empty."""
    script = SEE_FOLDER if use.is_only_seen else MAKE
    done = await use.transport.run(guard_argv(script, path, use.transport), timeout=QUICK_S)
    if not done.ok:
        raise FlagPerfError(
            f"CHECKPOINT_PATH = {path}: {done.last_lines(1) or 'not writable'}",
            remedy="name a folder in test_conf.py that the ssh user may create and write on this host",
        )
    return done.stdout.partition("\n")[0]


async def _check_earlier(plan: Plan, transport: Transport, cases: list[CasePlan]) -> str:
    folder = f"{plan.run.checkpoint_path}/{plan.continue_from}"
    await _see_own(plan, transport, cases)
    of_cases = dict.fromkeys(str(path.parent) for case in cases for path in _folders(plan, case, (1,)))
    having = {file.parent for file in await _listed(transport, LIST_NEWEST, *of_cases)}
    lost = [case for case in cases if not _left(plan, case, having)]
    if lost:
        names = ", ".join(case.settings.name for case in lost)
        files = await _listed(transport, LIST_ALL, folder)
        there = _there(files) if files else await _other_runs(plan, transport)
        remedy = f"name another run with {OPTION}, choose cases with --cases, or start anew"
        raise FlagPerfError(f"{folder} has no checkpoint of {names}; {there}", remedy=remedy)
    wanted = [path for case in cases for path in _folders(plan, case, plan.rounds(case))]
    anew = [f"{path.parent.name} {path.name}" for path in wanted if path not in having]
    if anew:
        message = f"{folder} has no checkpoint of {', '.join(anew)}: begun anew"
        raise DoubtError(message, remedy=f"nothing, or name the run that has one with {OPTION}")
    return f"goes on from {folder} in {counted(len(wanted), 'round')}"


async def _see_own(plan: Plan, transport: Transport, cases: list[CasePlan]) -> None:
    """See that nobody else has made what the rounds are to go on from: before a round is launched, and fails by it."""
    path = plan.run.checkpoint_path
    wanted = [folder for case in cases for folder in _folders(plan, case, plan.rounds(case))]
    words = [str(folder.relative_to(path)) for folder in wanted]
    seen = await transport.run(["sh", "-c", SEE_FOLDERS, path, *words], timeout=QUICK_S)
    if not seen.ok:
        raise FlagPerfError(f"CHECKPOINT_PATH = {path}: {seen.last_lines(1)}", remedy=OWN_REMEDY)


async def _listed(transport: Transport, script: str, *folders: str) -> list[PurePosixPath]:
    """The checkpoints that one of the scripts lists, in the order of their names."""
    listed = await transport.run(["sh", "-c", script, CHECKPOINT_PATTERN, *folders], timeout=QUICK_S)
    return sorted(PurePosixPath(line) for line in listed.whole_stdout().splitlines())


def _folders(plan: Plan, case: CasePlan, rounds: Iterable[int]) -> list[PurePosixPath]:
    path = plan.run.checkpoint_path
    return [PurePosixPath(checkpoint_folder(path, plan.continue_from, case, number)) for number in rounds]


def _left(plan: Plan, case: CasePlan, having: set[PurePosixPath]) -> bool:
    """Whether that run left anything of the case: a checkpoint, or a round that had succeeded."""
    if plan.done.get(case.settings.name):
        return True
    return not having.isdisjoint(_folders(plan, case, range(1, case.settings.repeat + 1)))


def _there(files: list[PurePosixPath]) -> str:
    """What there is: of each round its newest checkpoint, which sorts last."""
    newest = {file.parent: file.stem for file in files}
    return "there is " + ", ".join(
        f"{folder.parent.name} {folder.name} ({step})" for folder, step in newest.items()
    )


async def _other_runs(plan: Plan, transport: Transport) -> str:
    listed = await transport.run(["ls", "-1", plan.run.checkpoint_path], timeout=QUICK_S)
    return f"the runs with checkpoints are {', '.join(listed.stdout.split()) or 'none'}"
