"""A round that failed by the machines' fault is run again, on the same hosts or with a spare in the place of one.

The attempt that failed stays beside the round's folder, whole: `round1.attempt1` beside `round1`. So does, on its host,
what of it could not be collected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path, PurePosixPath

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import Node
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.reading import parsed, read_object
from run_benchmarks.results.round_result import Attempt, RoundResult
from run_benchmarks.round_state import write_result
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes.base import EngineError
from run_benchmarks.session import Interrupted, Session, unless_interrupted
from run_benchmarks.stages.collect import collect_folder
from run_benchmarks.stages.run_folder import below_work, move_argv
from run_benchmarks.transports.backoff import is_passing, with_backoff
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError
from utils.numbers import counted
from utils.records import Fault

LATE_LOGS_S = 60.0
MOVING_S = 60.0
# So long, in all, a host that failed has to be there again before the round is run once more.
PAUSES_S = (2.0, 5.0, 10.0, 20.0)


def attempts_in(folder: Path) -> tuple[Attempt, ...]:
    """The attempts that were set aside of the round whose folder is `folder`, in their order, as far as they say it."""
    attempts, unread = [], []
    for path in _set_aside(folder):
        try:
            result = parsed(RoundResult, read_object(path / "result.json") or {}, str(path))
        except FlagPerfError as error:
            unread.append(error)
            continue
        if result.failure:
            kind, host = result.failure.failure_class, result.failure.host
            attempts.append(Attempt(path.name, result.verdict, kind, host, result.hosts))
    if unread:
        LOGGER.warning(f"{counted(len(unread), 'earlier attempt')} cannot be read: {unread[0]}")
    return tuple(attempts)


async def bring_late_logs(session: Session, transport: Transport, node: Node) -> None:
    """Fetch what an attempt left on a host that could not be reached at its end; the rest stays there.

    Raises:
        FlagPerfError: it cannot be moved out of the way of the next attempt.
    """
    own = session.log_dir / node.folder
    for attempt in list(_set_aside(own.parent))[-1:]:
        target = attempt / own.name
        if not target.exists():
            # Noted before: a controller that dies meanwhile may have brought it without what is left out.
            _keep(session, node.folder)
            if await _is_collected(session, transport, node, target):
                session.kept.discard(node.folder)
                session.journal.write("collected", folder=node.folder)
        if node.folder in session.kept:
            await _keep_aside(session, transport, node, attempt)


async def _is_collected(session: Session, transport: Transport, node: Node, target: Path) -> bool:
    """Fetch a node's folder; whether nothing of it is on its host alone."""
    folder = below_work(session.paths, session.paths.node(node))
    try:
        left_out = await collect_folder(
            transport, session.paths.work, folder, target, LATE_LOGS_S, own_logs=node.own_logs
        )
    except FlagPerfError as error:
        LOGGER.warning(f"{node.host}: of an attempt that does not count: {error.message}")
        return False
    return not any(item.has_content for item in left_out or ())


async def _keep_aside(session: Session, transport: Transport, node: Node, attempt: Path) -> None:
    """Move what lies on a host alone to where the attempt's folder is here, and let its result say so."""
    own = PurePosixPath(node.folder)
    aside = str(own.parent.with_name(attempt.name) / own.name)
    earlier, later = session.paths.node(node), f"{session.paths.logs}/{aside}"
    await checked(transport, move_argv(session.paths, earlier, later), timeout=MOVING_S)
    _keep(session, aside, instead_of=node.folder)
    LOGGER.info(f"{node.host}: what could not be collected of {attempt.name} lies in {later}")
    with suppress(FlagPerfError):  # one that cannot be read is told of where attempts are listed
        result = parsed(RoundResult, read_object(attempt / "result.json") or {}, str(attempt))
        notes, failure = tuple(note.replace(earlier, later) for note in result.notes), result.failure
        failure = failure and replace(failure, remedy=failure.remedy.replace(earlier, later))
        write_result(replace(result, notes=notes, failure=failure), attempt)


def _keep(session: Session, folder: str, *, instead_of: str = "") -> None:
    """Note that a node's folder stays on its host, in the place of another."""
    session.kept.discard(instead_of)
    session.kept.add(folder)
    session.journal.write("kept", folder=folder, **({"instead_of": instead_of} if instead_of else {}))


def is_repeated(session: Session, result: RoundResult) -> bool:
    """Whether the round is to be run again: not where its result could not be written, as on a full disk.

    An attempt counts once it was made, whether or not anybody can read what it came to.
    """
    failure, folder = result.failure, folder_of(session, result)
    may_help = failure is not None and failure.failure_class.fault is not None
    is_written = (folder / "result.json").is_file()
    made = sum(1 for _ in _set_aside(folder))
    return may_help and is_written and made < session.plan.run.retries and not session.interrupt.is_set()


def is_another_attempt(folder: Path) -> bool:
    """Whether an attempt was set aside of the round whose folder is `folder`."""
    return any(_set_aside(folder))


def folder_of(session: Session, result: RoundResult) -> Path:
    """The round's folder, in which is the attempt that counts."""
    return session.log_dir / result.case / f"round{result.round}"


def set_aside(session: Session, result: RoundResult) -> Path:
    """Move the round's folder out of the way of the next attempt; where it is now.

    Raises:
        OSError: it cannot be moved, and stays.
    """
    folder = folder_of(session, result)
    target = next(path for path in _places(folder) if not path.exists())
    folder.rename(target)
    if result.failure and result.failure.file:  # it names the place that it was at
        file = result.failure.file.replace(f"/{folder.name}/", f"/{target.name}/", 1)
        write_result(replace(result, failure=replace(result.failure, file=file)), target)
    return target


def on_present_hosts(session: Session, case: CasePlan) -> CasePlan:
    """The case with the spares that have taken the places of its hosts."""
    places = _places_taken(session, _group_of(session, case))

    def present(host: str) -> str:
        while host in places:
            host = places[host]
        return host

    return replace(case, hosts=tuple(map(present, case.hosts)))


def restore_spares(session: Session, replaced: Mapping[tuple[str, str], str]) -> None:
    """Take over what an earlier controller noted of spares; a spare that takes two places, or its own, is none."""
    for (group, host), spare in replaced.items():
        places = _places_taken(session, group)
        if spare in session.plan.cluster.spares_of(group) and spare not in (host, *places, *places.values()):
            session.replaced[group, host] = spare


def _group_of(session: Session, case: CasePlan) -> str:
    """The vendor, whose spares are for its cases alone; empty where all cases have the same hosts."""
    return case.settings.vendor if session.plan.cluster.groups else ""


def _places_taken(session: Session, group: str) -> dict[str, str]:
    """Host -> the spare in its place, for the cases of a group."""
    return {host: spare for (of, host), spare in session.replaced.items() if of == group}


async def prepare_hosts(session: Session, case: CasePlan, result: RoundResult) -> str:
    """See to the host by whose fault the round failed: a spare takes its place, or it has a while to be there again.

    Returns:
        On which hosts the round is run again, for the log.
    """
    failure, hosts = result.failure, on_present_hosts(session, case).hosts
    if failure is None:
        return "on the same hosts"
    group = _group_of(session, case)
    places = _places_taken(session, group)
    taken = (*hosts, *places, *places.values())  # a larger case may have a place that this one has not
    spare = next((each for each in session.plan.cluster.spares_of(group) if each not in taken), None)
    if failure.failure_class.fault is Fault.HOST and failure.host in hosts and spare:
        session.replaced[group, failure.host] = spare
        session.journal.write("replaced", group=group, host=failure.host, spare=spare)
        return f"with {spare} in the place of {failure.host}"
    for host in (each for each in session.allocator.standing if each.name == failure.host):
        await _there_again(session, host)
    if session.allocator.standing:
        return "on the same hosts"
    if failure.failure_class.fault is Fault.HOST and failure.host:
        session.allocator.avoid(failure.host)
        return f"on hosts that are asked for anew, without {failure.host} where there are others"
    return "on hosts that are asked for anew"


async def _there_again(session: Session, host: Host) -> None:
    """Wait a while for a host and its engine to answer; where they do not, the round says what is wrong."""

    def may_pass(error: FlagPerfError) -> bool:
        return is_passing(error) or isinstance(error, EngineError)

    with suppress(FlagPerfError, Interrupted):
        answer = with_backoff(lambda: session.runtime.version(host.transport), PAUSES_S, may_pass)
        await unless_interrupted(session.interrupt, answer)


def _places(folder: Path) -> Iterator[Path]:
    return (folder.with_name(f"{folder.name}.attempt{number}") for number in count(1))


def _set_aside(folder: Path) -> Iterator[Path]:
    for path in _places(folder):
        if not path.is_dir():
            return
        yield path
