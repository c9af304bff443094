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

# `go_down PATH` goes from $at, where we are, to a folder below, and fails where another has come in its place. Where
# it came to, a program says: bash works its PWD out from names, before it goes and after; others may exchange them.
_GO_DOWN = 'go_down() { at=${at%/}/$1 && cd -P -- "./$1" && [ "$(env pwd -P)" = "$at" ]; }; '
# $0: the work folder; $1: a folder below it.
GO_BELOW = (
    f'{ENTER_OWN}{_GO_DOWN}at=$(env pwd -P); go_down "$1" || '
    '{ echo "$0/$1 is not the folder that was made there" >&2; exit 3; }; '
)
# `own PATH` makes the folders of a PATH that begins where we are, below $0, and refuses a link, and what somebody else
# has made; `make` and `enter` do so with its $part. What they ask of, and change, is the folder that we are in: the
# same from the first question to the last, whatever becomes of its path. And its path still leads there when it is
# mounted: it did when the folder was ours, and ours nobody else can rename, in a folder with the sticky bit or in one
# of ours, by an access control list neither. On a file system that takes the ssh user for another (NFS with
# root_squash), ours are those that belong to whom a new one does.
OWN_FOLDERS = (
    f'{_GO_DOWN}new_owner() {{ probe=$(mktemp -d "$0/.owner-XXXXXX") && stat -c %u "$probe"; rmdir "$probe"; }}; '
    'refuse() { [ ! -L "$1" ] || { echo "$1 is a link" >&2; exit 3; }; '
    'echo "$1 is $(stat -c "a %F of %U" "$1"), and not a folder of $(id -un)" >&2; exit 3; }; '
    'make() { why=$(mkdir "$@" "./$part" 2>&1) || { echo "$at/$part: ${why##*: }" >&2; exit 1; }; }; '
    'enter() { go_down "$part" 2>/dev/null && '
    '{ [ -O . ] || [ "$(stat -c %u .)" = "$(new_owner)" ]; } || refuse "$at"; }; '
    'own() { at=$(env pwd -P); rest=$1/; while [ "$rest" ]; do part=${rest%%/*}; rest=${rest#*/}; '
    '[ -L "./$part" ] || make -p; enter; chmod go-w . || exit; done; }; '
)
# $0: a folder; $1: one below it, to be made. The last one must be new: what lies in it already is not this round's. All
# may write to it, as the root of a container that may not pass over permissions is another user than the ssh user; a
# folder above it is closed to everybody else.
MAKE_OPEN_FOLDER = (
    f'{OWN_FOLDERS}mkdir -p "$0" && cd -P -- "$0" || exit; own "${{1%/*}}"; part=${{1##*/}}; '
    '[ ! -L "./$part" ] || refuse "$at/$part"; make -m 0777'
)


def _removal(go: str) -> str:
    """What removes, of $1, the run's folder, those folders in it that follow, and what is empty then.

    Another host that shares them may do so at once: what has gone meanwhile is removed, and nothing on the way to it is
    made again.
    """
    return (
        f'[ -e "$0/$1" ] || [ -L "$0/$1" ] || exit 0; {go}{OWN_FOLDERS}make() {{ :; }}; run=$1; shift; '
        'gone() { [ ! -e "./$1" ] && [ ! -L "./$1" ]; }; '
        'try() { why=$("$@" 2>&1) || gone "$d" || { printf "%s\\n" "$why" >&2; failed=1; }; }; '
        'drop() { own "${d%/*}"; exec rm -rf "./${d##*/}"; }; '
        'sweep() { own "$d"; find . -mindepth 1 -depth -type d -empty -delete 2>/dev/null; '
        'cd -P .. && rmdir "./${d##*/}" 2>/dev/null; :; }; '
        'for d; do gone "$d" || try drop; done; d=$run; gone "$d" || try sweep; exit "${failed:-0}"'
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
