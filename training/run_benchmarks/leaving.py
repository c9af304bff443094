"""How a run leaves hosts: nothing of it stays, but for logs that could not be brought home."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable

from run_benchmarks.collected import collected
from run_benchmarks.commands import run_command
from run_benchmarks.host_log import log_of_host
from run_benchmarks.hosts.base import Host
from run_benchmarks.names import UNITS, Node, unit_name
from run_benchmarks.plan.host_ranges import alike, fold
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import Session
from run_benchmarks.stages.checkpoints import remove_checkpoint_folder
from run_benchmarks.stages.fan_out import errors_of, on_all
from run_benchmarks.stages.run_folder import left_folders_argv, remove_argv
from run_benchmarks.transports.base import checked
from utils.errors import FlagPerfError

TIMEOUT_S = 60.0


async def leave(session: Session, hosts: Iterable[Host], *, is_last: bool = False) -> list[str]:
    """Remove every unit of the run from `hosts`, and its folder. Idempotent.

    Args:
        is_last: the run ends with it: what went wrong has been said, and what is to be done is said now, once.
    Returns:
        A note of the hosts where that failed, if there are any: what may be left there, and what removes it.
    """
    by_name = {host.name: host for host in hosts}

    async def leave_one(name: str) -> None:
        host = by_name[name]
        removed = await session.runtime.remove_all(host.transport, session.run.uid)
        if removed:
            log_of_host("DEBUG", name, f"removed {', '.join(removed)}")
        await checked(
            host.transport, left_folders_argv(session.paths.work, session.run.uid), timeout=TIMEOUT_S
        )
        await _remove_folder(session, host)

    failed = errors_of(await on_all(list(by_name), leave_one))
    errors = {name: error for name, error in failed.items() if by_name[name].transport.keeps}
    session.unclean.difference_update(by_name.keys() - errors.keys())
    for names, why in alike({name: str(error).removeprefix(f"{name}: ") for name, error in errors.items()}):
        LOGGER.log("DEBUG" if is_last else "WARNING", f"units of this run may be left on {names}: {why}")
    return _note_on(session, errors, is_last=is_last)


def removal_script(session: Session) -> str:
    """The same as a shell script for a host, but for the run's folder: its logs may be all there is of the round."""
    folders = shlex.join(left_folders_argv(session.paths.work, session.run.uid))
    return f"{session.runtime.removal_script(session.run.uid)}{folders}\n"


async def leave_once_more(session: Session) -> list[str]:
    """Leave those hosts that were taken away before that could be done; a note of those where it cannot be yet."""
    if not session.allocator.keeps:
        return []
    gone = sorted(session.unclean - {host.name for host in session.allocator.standing})
    async with session.allocator.revisit(gone) as hosts:
        await leave(session, hosts)
    return _note_on(session, [name for name in gone if name in session.unclean], is_last=True)


def _note_on(session: Session, names: Collection[str], *, is_last: bool) -> list[str]:
    """A note of hosts where something may be left, if there are any."""
    if not names:
        return []
    remove = run_command("cleanup", session.run.uid, *session.plan.options)
    back = "they are" if len(names) > 1 else "it is"
    where = f"{fold(names)}, in {session.paths.work}"
    note = f"units and files of this run may be left on {where}; once {back} back: {remove}"
    if is_last:
        LOGGER.warning(note)
    return [note]


async def forget_attempt(session: Session, host: Host, node: Node) -> None:
    """Remove from a host what an earlier attempt at the node's round left there, so that it can begin anew.

    Raises:
        FlagPerfError: something may be left.
    """
    transport, paths, uid = host.transport, session.paths, session.run.uid
    await session.runtime.remove_all(transport, uid)
    await checked(transport, left_folders_argv(paths.work, uid), timeout=TIMEOUT_S)
    # on a file system that hosts share these are there also of a host that is lost, and whose units have their names
    units = [f"{paths.work}/{UNITS}/{unit_name(session.run, node, role)}" for role in ("task", "monitor")]
    await checked(transport, remove_argv(paths, [paths.node(node), *units]), timeout=TIMEOUT_S)
    await remove_checkpoint_folder(transport, session.plan, session.run, node)


async def _remove_folder(session: Session, host: Host) -> None:
    """Node folders that were collected are spares; one of which something was not is all there is, and stays."""
    here = collected(session.log_dir, host.name, session.kept)
    spares = [f"{session.paths.logs}/{folder}" for folder in here]
    try:
        await checked(host.transport, remove_argv(session.paths, spares), timeout=TIMEOUT_S)
    except FlagPerfError as error:
        LOGGER.warning(f"{host.name}: {session.paths.run} could not be removed: {error.message}")
