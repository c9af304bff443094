"""A run's folder on a host, made, entered and removed without following a link.

A task may put a link where a folder was: in a process it writes as the ssh user, in a container to its node's folder.
So a folder counts as itself only where its physical path is the one that it was made at. Who has entered it stays in it
whatever becomes of that path.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from run_benchmarks.names import HostPaths, Node
from run_benchmarks.stages.work_folder import ENTER_OWN, STILL_OWN, guard_argv
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

# $0: a folder, and we are in it; $1: one below it. Shells set PWD to the physical path by `cd -P`.
_GO_DOWN = (
    'at=$PWD/$1 && cd -P -- "./$1" && [ "$PWD" = "$at" ] '
    '|| { echo "$0/$1 is not the folder that was made there" >&2; exit 3; }; '
)
GO_BELOW = f"{ENTER_OWN}{_GO_DOWN}"
# `own PATH` makes the folders of a relative PATH below $0, and refuses a link, and what somebody else has made: what is
# ours stays so, as long as nobody else may rename in the folder above it, by an access control list neither. On a file
# system that takes the ssh user for another (NFS with root_squash), ours are those that belong to whom a new one does.
OWN_FOLDERS = (
    'new_owner() { probe=$(mktemp -d "$0/.owner-XXXXXX") && stat -c %u "$probe"; rmdir "$probe"; }; '
    'is_ours() { [ -d "$1" ] && [ ! -L "$1" ] && '
    '{ [ -O "$1" ] || [ "$(stat -c %u "$1")" = "$(new_owner)" ]; }; }; '
    'refuse() { [ ! -L "$1" ] || { echo "$1 is a link" >&2; exit 3; }; '
    'echo "$1 is $(stat -c "a %F of %U" "$1"), and not a folder of $(id -un)" >&2; exit 3; }; '
    'own() { at=$0; rest=$1/; while [ "$rest" ]; do at=$at/${rest%%/*}; rest=${rest#*/}; '
    '[ -d "$at" ] || [ -L "$at" ] || mkdir -p "$at" || exit; is_ours "$at" || refuse "$at"; '
    'chmod go-w "$at" || exit; done; }; '
)
# $0: a folder; $1: one below it, to be made. The last one must be new: what lies in it already is not this round's. All
# may write to it, as the root of a container that may not pass over permissions is another user than the ssh user; a
# folder above it is closed to everybody else.
MAKE_OPEN_FOLDER = (
    f'{OWN_FOLDERS}mkdir -p "$0" && own "${{1%/*}}" && {{ [ ! -L "$0/$1" ] || refuse "$0/$1"; }} && '
    'mkdir -m 0777 "$0/$1"'
)


def _removal(enter: str) -> str:
    """What removes, of $1, the run's folder, those folders in it that follow, and what is empty then."""
    return (
        '[ -e "$0/$1" ] || [ -L "$0/$1" ] || exit 0; run=$1; shift; '
        'for d; do [ -e "$0/$d" ] || [ -L "$0/$d" ] || continue; '
        f'(set -- "${{d%/*}}" "./${{d##*/}}"; {enter}{_GO_DOWN}exec rm -rf "$2") || failed=1; done; '
        f'set -- "$run"; {enter}{_GO_DOWN}find . -mindepth 1 -depth -type d -empty -delete 2>/dev/null; '
        'cd -P .. && rmdir "./${run##*/}" 2>/dev/null; exit "${failed:-0}"'
    )


REMOVE_FOLDERS = _removal(ENTER_OWN)
# $0: a folder that others may have folders in too.
REMOVE_FROM_SHARED = _removal('cd -P -- "$0" || exit; ')
# $1: the folder of a case, then in it: a round's folder, that of an attempt at it, a node's folder. The node's is moved
# from the one to the other; none of them is a link.
MOVE_ASIDE = (
    'round=$2; attempt=$3; node=$4; [ -d "$0/$1/$round/$node" ] || exit 0; '
    f'{GO_BELOW}[ ! -L "./$round" ] && [ ! -L "./$round/$node" ] && [ ! -L "./$attempt" ] && mkdir -p "./$attempt" && '
    'exec mv -T "./$round/$node" "./$attempt/$node"'
)
# $0: the work folder; $1: the uid of a run. Pip's settings of its builds, and copies of files on their way.
REMOVE_LEFT = (
    f'[ ! -d "$0" ] || {{ {ENTER_OWN}find . -mindepth 1 -maxdepth 2 '
    '\\( -path "./copy-$1-*" -o -path "./pip/flagperf-$1-build-*" \\) -prune -exec rm -rf {} +; }'
)


def left_folders_argv(work: str, run_uid: str) -> tuple[str, ...]:
    """The command that removes what a run whose controller was killed left in the work folder, but for its logs."""
    return ("sh", "-c", REMOVE_LEFT, work, run_uid)


def below_work(paths: HostPaths, folder: str) -> str:
    """A folder of the run as the scripts get it: below the work folder."""
    return PurePosixPath(folder).relative_to(paths.work).as_posix()


async def make_node_folder(transport: Transport, paths: HostPaths, node: Node) -> None:
    """Make the folder that the node's units write to.

    Raises:
        FlagPerfError: it cannot be made, is there already, or would lie behind a link.
    """
    folder = below_work(paths, paths.node(node))
    argv = guard_argv(f"{STILL_OWN}shift; {MAKE_OPEN_FOLDER}", paths.work, transport, folder)
    made = await transport.run(argv, timeout=60)
    if not made.ok:
        raise FlagPerfError(
            f"the node's folder was not made: {made.last_lines(1)}",
            where=transport.host,
            remedy="check FLAGPERF_PATH_HOST in test_conf.py; what is there already, a task of the run has put there",
        )


def move_argv(paths: HostPaths, folder: str, aside: str) -> list[str]:
    """The command that moves a node's folder, if it is there, to that of an attempt, which it makes."""
    earlier, later = PurePosixPath(folder), PurePosixPath(aside)
    case = below_work(paths, str(earlier.parent.parent))
    words = (case, earlier.parent.name, later.parent.name, earlier.name)
    return ["sh", "-c", MOVE_ASIDE, paths.work, *words]


def remove_argv(paths: HostPaths, folders: Iterable[str]) -> list[str]:
    """The command that removes node folders of the run, and the run's folder where nothing is left in it."""
    words = [below_work(paths, folder) for folder in (paths.run, *folders)]
    return ["sh", "-c", REMOVE_FOLDERS, paths.work, *words]
