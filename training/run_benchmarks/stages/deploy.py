"""Bring the `training/` tree to a host where it is not there yet; verify it by content before each round uses it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from run_benchmarks.host_log import log_of_host
from run_benchmarks.hosts.base import Host
from run_benchmarks.names import HostPaths
from run_benchmarks.run_log import LOGGER
from run_benchmarks.stages.fan_out import errors_of, on_all, values_of
from run_benchmarks.stages.passing import PASS_ON_FROM, QUICK_S, Content, Place, Site, bring, keep
from run_benchmarks.stages.progress import size_text
from run_benchmarks.stages.tree import END_MARK, LARGEST_TREE, Tree
from run_benchmarks.stages.work_folder import ENTER_OWN, REMEDY, in_work_folder
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

TIMEOUT_S = 600.0
MISSING, ALTERED = 3, 4
MOST_NAMES = 5
# `content FOLDER` lists a tree as `Tree.entries` does, each entry ended by NUL; `whole FOLDER DIGEST` compares it.
# Of what is larger than any tree only the names are listed: a file that fills no disk may take hours to read.
CONTENT = (
    'fits() { size=$(du -sbl "$1") && [ "${size%%[!0-9]*}" -le '
    f"{2 * LARGEST_TREE} ]; }}; "
    'content() { large=; fits "$1" || large=1; cd "$1" && { find . \\( -type f -perm -100 -printf "x %p\\0" \\) '
    '-o -printf "%y %p\\0"; [ "$large" ] || find . -type f -exec sha256sum --zero {} +; }; }; '
    'whole() { [ -d "$1" ] && [ ! -L "$1" ] && [ "$(content "$1" | LC_ALL=C sort -z | sha256sum)" = "$2  -" ]; }; '
)
# $2: the tree's folder, $3: its digest. Of a tree that was altered what it holds is printed, if it is not far too much;
# one that is whole is marked as used now, so that a clean-up leaves it alone.
LOOK = (
    f'{CONTENT}[ -e "$2" ] || [ -L "$2" ] || exit {MISSING}; whole "$2" "$3" || '
    f'{{ [ -L "$2" ] || content "$2" | head -c 4000000; exit {ALTERED}; }}; touch -c "$2" || :'
)
# $0: the work folder; $1: the folder to make in it, $2: its digest; its content as a tar file on standard input, or in
# the file $3 of the work folder. Made beside it and renamed, so that a broken stream never leaves half a tree under the
# final name; losing a race against another run is no error.
UNPACK = (
    f'set -e; umask 022; {ENTER_OWN}{CONTENT}[ -z "$3" ] || exec <"./$3"; '
    'tmp=$(mktemp -d "./$1.XXXXXX"); trap \'rm -rf "$tmp"\' EXIT; '
    f'tar -xf - -C "$tmp"; [ -e "$tmp/{END_MARK}" ] || {{ echo "the stream was cut off" >&2; exit 1; }}; '
    'whole "$tmp" "$2" || { echo "what arrived is not what was sent" >&2; exit 1; }; chmod 755 "$tmp"; '
    'if mv -T "$tmp" "./$1" 2>/dev/null || whole "./$1" "$2"; then exit; fi; '
    'if [ -e "./$1" ] || [ -L "./$1" ]; then rm -rf "./$1.altered"; mv -T "./$1" "./$1.altered"; fi; '
    'mv -T "$tmp" "./$1" || whole "./$1" "$2"'
)
IS_THERE = '[ -e "$0" ] || [ -L "$0" ]'


async def bring_tree(hosts: Sequence[Host], tree: Tree, paths: HostPaths, site: Site) -> list[str]:
    """Bring the tree to each file system once: where hosts share one, to the first of them; notes of what was wrong.

    Nothing is raised: `deploy_tree` sees to what was not done.
    """
    groups = site.file_systems.groups(hosts)
    await pass_tree_on([group[0] for group in groups], tree, paths, site)
    keepers = [group[0] for group in groups if len(group) > 1]
    kept = await on_all(keepers, lambda host: deploy_tree(host.transport, tree, paths))
    return [note for notes in values_of(kept).values() for note in notes]


async def pass_tree_on(hosts: Sequence[Host], tree: Tree, paths: HostPaths, site: Site) -> None:
    """Where many hosts have no tree, let them give it to each other; `deploy_tree` sees to what that has not done."""
    if len(hosts) < PASS_ON_FROM:
        return
    argv = ("sh", "-c", IS_THERE, paths.tree)
    there = await on_all(hosts, lambda host: host.transport.run(argv, timeout=QUICK_S))
    lacking = [host for host, done in values_of(there).items() if done.returncode == 1]
    if len(lacking) < PASS_ON_FROM:
        return
    content = Content(len(tree.archive), hashlib.sha256(tree.archive).hexdigest())

    async def fill(places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
        kept = await on_all(places, lambda place: keep(place, tree.archive, TIMEOUT_S))
        return content, {place.host.name: error for place, error in errors_of(kept).items()}

    async def use(place: Place) -> None:
        await _unpack(place.host.transport, tree, paths, place.copy)

    what = f"the code ({size_text(content.size)})"
    await bring(what, lacking, site, 2 * content.size, fill, use)


async def _unpack(transport: Transport, tree: Tree, paths: HostPaths, copy: str = "") -> None:
    """Make the tree of what is sent from here, or of a copy in the work folder."""
    argv = ["sh", "-c", UNPACK, paths.work, PurePosixPath(paths.tree).name, tree.digest, copy]
    done = await transport.run(argv, stdin=None if copy else tree.archive, timeout=TIMEOUT_S)
    if not done.ok:
        message = f"the code could not be brought to {paths.tree}\n{done.last_lines()}"
        raise FlagPerfError(message, where=transport.host, remedy=REMEDY)
    log_of_host("INFO", transport.host, f"deployed to {paths.tree}")


async def deploy_tree(transport: Transport, tree: Tree, paths: HostPaths) -> list[str]:
    """Make sure that the host has the tree, as it is here to the last byte; what deserves a word comes back as notes.

    One that differs is never used: it is put aside, for who wants to know who altered it.

    Raises:
        FlagPerfError: it cannot be brought there, or the work folder is not to be trusted.
    """
    seen = await in_work_folder(
        transport, paths.work, LOOK, paths.tree, tree.digest, timeout=TIMEOUT_S, codes=(0, MISSING, ALTERED)
    )
    if seen.ok:
        return []
    await _unpack(transport, tree, paths)
    if seen.returncode == MISSING:
        return []
    note = (
        f"{transport.host}: {paths.tree} was altered since it was deployed ({_differences(tree, seen.stdout)}): "
        f"it was not used, but deployed anew; what it was lies in {paths.tree}.altered"
    )
    LOGGER.warning(note)
    return [note]


def _differences(tree: Tree, listed: str) -> str:
    """Which paths of a tree on a host are not as they should be, some of them."""
    entries = set(listed.split("\0")) - {""}
    has_sums = any(map(_is_sum, entries))
    wanted = {entry for entry in tree.entries if _is_sum(entry) <= has_sums}
    # what is there first: where the list was cut off, much seems to be missing
    wrong = [*sorted(entries - wanted), *sorted(wanted - entries)]
    names = list(dict.fromkeys(repr(entry.partition(" ")[2].lstrip()) for entry in wrong))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more or "it is far larger than it was"


def _is_sum(entry: str) -> bool:
    """Whether it is a file's checksum, and not what a path is."""
    return len(entry.partition(" ")[0]) > 1
