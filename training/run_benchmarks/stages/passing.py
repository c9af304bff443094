"""Bring one large file to many hosts: it leaves this machine for the first two alone, and hosts give it to each other.

Each that has a copy gives it to one that has none, so that twice as many have it after each turn. Hosts that share a
file system have one copy for all of them. Nothing that a host
says of the file is believed: every copy is compared with the SHA-256 of what was read here. A host that could not get
it from another, or not use it, is named with the reason, and gets it as if there were no other hosts.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import copy_folder
from run_benchmarks.plan.host_ranges import alike
from run_benchmarks.run_log import LOGGER
from run_benchmarks.stages.fan_out import MOST_AT_ONCE, errors_of, on_all, values_of
from run_benchmarks.stages.file_systems import FileSystems
from run_benchmarks.stages.identity import new_identity
from run_benchmarks.stages.served_port import served_port
from run_benchmarks.stages.work_folder import ENTER_OWN, IN_OWN, REMOVE_BELOW, in_work_folder
from run_benchmarks.transports.base import CommandTimeoutError, checked
from run_benchmarks.unforeseen import contained
from utils import pass_on
from utils.errors import FlagPerfError

# From so many receivers on: for fewer what the hosts' own turns cost (two log-ins, two interpreters) is not worth it.
PASS_ON_FROM = 8
FIRST = 2  # get it from here: one that fails does not send all others here
MOST_FAILURES = 2  # of a host as giver, and as receiver: one may be the other's fault
QUICK_S, START_S = 60.0, 30.0
SLOWEST = pass_on.STEP / pass_on.STEP_S  # bytes a second
UNABLE = 3
# $2: a Python, or nothing where no copy is to be passed on, $3: the copy's folder in the work folder, $4: the bytes
# that must be free for it and what is made of it.
PREPARE = (
    f'[ -z "$2" ] || "$2" -I -c "import ssl, os; os.memfd_create" || exit {UNABLE}; '
    'free=$(df --output=avail -B1 "$0" | tail -n 1); '
    f'[ "$free" -ge "$4" ] || {{ echo "$free bytes are free for a copy, and $4 needed" >&2; exit {UNABLE}; }}; '
    'mkdir -m 700 "$0/$3"'
)
# $0: the work folder; $1: the copy in it, which is not there yet; its content on standard input. All that makes, gives,
# fetches, uses or removes a copy begins by entering the work folder. Only we can put anything there, and who is in it
# stays in it whatever becomes of its path: so no copy is compared once more before it is used.
KEEP = f'{ENTER_OWN}umask 077; set -C; exec cat >"./$1"'
# $1: a copy that another host may have made, $2: its SHA-256.
IS_WHOLE = f'{ENTER_OWN}[ "$(sha256sum <"./$1")" = "$2  -" ]'


@dataclass(frozen=True)
class Site:
    """Where hosts keep copies, and what passes them on.

    work: the work folder; python: an interpreter's command. file_systems: which of the hosts see one work folder.
    """

    work: str
    run_uid: str
    python: str = "python3"
    file_systems: FileSystems = field(default_factory=FileSystems)


@dataclass(frozen=True, eq=False)
class Place:
    """Where a host has its copy, or will; `sharers` are further hosts that see it there.

    copy: the file, from the work folder `work`.
    """

    host: Host
    work: str
    copy: str
    sharers: tuple[Host, ...] = ()

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All that use this copy."""
        return (self.host, *self.sharers)


@dataclass(frozen=True)
class Content:
    """What every copy must be. size: bytes; sha256: hexadecimal."""

    size: int
    sha256: str


Fill = Callable[[Sequence[Place]], Awaitable[tuple[Content, Mapping[str, FlagPerfError]]]]
Use = Callable[[Place], Awaitable[None]]


async def bring(
    what: str, hosts: Sequence[Host], site: Site, room: int, fill: Fill, use: Use
) -> dict[str, FlagPerfError]:
    """Give all `hosts` a copy of `what`, and let each `use` its own.

    Args:
        room: the bytes that a host must have free.
        fill: sends the copies of the first hosts from here; what they are, and which of them failed.

    Returns:
        The hosts that have not used it, and why; it is for others to give it to them.

    Raises:
        FlagPerfError: what `fill` raises.
    """
    async with places_on(hosts, site, room) as (places, failed):
        few = FIRST if site.python else len(places)
        first, others = places[:few], places[few:]
        if others or not site.python or any(place.sharers for place in first):
            content, not_filled = await fill(first)
            filled = [place for place in first if place.host.name not in not_filled]
            failed |= _of_all(not_filled, first)
            failed |= await _Passing(site, content, use).run(filled, others)
        else:
            failed |= {place.host.name: FlagPerfError("no other host can have a copy") for place in first}
    count = len(hosts) - len({*failed, *(place.host.name for place in first)})
    LOGGER.info(f"{what}: {count} of {len(hosts)} hosts got it from each other, the others from this machine")
    for names, why in alike({name: error.message for name, error in failed.items()}):
        LOGGER.warning(f"{names}: gets {what} from this machine: {why}")
    return failed


@asynccontextmanager
async def places_on(
    hosts: Sequence[Host], site: Site, room: int
) -> AsyncIterator[tuple[list[Place], dict[str, FlagPerfError]]]:
    """Places for copies on those hosts that can pass one on, and why the others cannot; gone afterwards."""
    groups = {group[0]: group for group in site.file_systems.groups(hosts)}
    folders = {host: copy_folder(site.run_uid) for host in groups}

    async def prepare(host: Host) -> Place:
        words = (site.python, folders[host], str(room))
        done = await in_work_folder(
            host.transport, site.work, PREPARE, *words, timeout=QUICK_S, codes=(0, UNABLE)
        )
        if not done.ok:
            raise FlagPerfError(done.last_lines(1), where=host.name)
        return Place(host, site.work, f"{folders[host]}/copy", groups[host][1:])

    async def remove(host: Host) -> None:
        await host.transport.run(("sh", "-c", REMOVE_BELOW, site.work, folders[host]), timeout=QUICK_S)

    try:
        prepared = await on_all(list(groups), prepare)
        errors = errors_of(prepared)
        failed = {host.name: errors[first] for first in errors for host in groups[first]}
        yield list(values_of(prepared).values()), failed
    finally:
        # one that is out of reach keeps it until `cleanup`
        await on_all(list(groups), remove)


def _of_all(errors: Mapping[str, FlagPerfError], places: Iterable[Place]) -> dict[str, FlagPerfError]:
    """Errors of those that keep copies, as errors of all hosts that were to use them."""
    failed = (place for place in places if place.host.name in errors)
    return {host.name: errors[place.host.name] for place in failed for host in place.hosts}


async def keep(place: Place, content: bytes | AsyncIterator[bytes], limit_s: float) -> None:
    """Make the host's copy of what comes from here.

    Raises:
        FlagPerfError: it has none.
    """
    argv = ("sh", "-c", KEEP, place.work, place.copy)
    done = await place.host.transport.run(argv, stdin=content, timeout=limit_s)
    if not done.ok:
        raise FlagPerfError(f"no copy could be made: {done.last_lines(1)}", where=place.host.name)


async def give(giver: Place, receiver: Place, content: Content, python: str) -> None:
    """Let one host send its copy to another, which knows by what it is told here that it gets the right one.

    Raises:
        FlagPerfError: it has not got it; nothing of it is left there.
    """
    certificate, key = new_identity()
    token, limit_s = secrets.token_hex(32), _limit_s(content.size)
    served = _program(f"serve({giver.copy!r}, {certificate + key!r}, {token!r})")
    serving, fetching = (
        ("sh", "-c", IN_OWN, place.work, python, "-I", "-c", pass_on.BOOT) for place in (giver, receiver)
    )
    async with served_port(giver.host.transport, serving, served, START_S, limit_s) as port:
        whom = f"{giver.host.address!r}, {port}, {certificate!r}, {token!r}"
        what = f"{receiver.copy!r}, {content.size}, {content.sha256!r}"
        fetched = _program(f"fetch({whom}, {what})")
        done = await receiver.host.transport.run(fetching, stdin=fetched, timeout=limit_s)
        if not done.ok:
            raise FlagPerfError(f"not from {giver.host.name}: {done.last_lines(1)}", where=receiver.host.name)


async def _program(call: str) -> AsyncIterator[bytes]:
    """The program as it is fed to a host, with what nobody else may know; its input ends with the command."""
    text = Path(pass_on.__file__).read_bytes() + f"\n{call}\n".encode()
    yield f"{len(text)}\n".encode() + text
    await asyncio.Event().wait()


def _limit_s(size: int) -> float:
    """What the programs need at most that give up by themselves; a host may run others."""
    return 2 * START_S + 2 * size / SLOWEST


class _Passing:
    """Copies on their way. Who has failed too often gives no more, or waits for none any more."""

    def __init__(self, site: Site, content: Content, use: Use) -> None:
        self._site, self._content, self._use = site, content, use
        self._uses: dict[str, asyncio.Future[None]] = {}
        self._failures: dict[Place, list[FlagPerfError]] = defaultdict(list)
        self._tried: dict[Place, set[Place]] = defaultdict(set)
        self._giving: dict[asyncio.Task[None], tuple[Place, Place]] = {}

    async def run(self, first: Sequence[Place], others: Sequence[Place]) -> dict[str, FlagPerfError]:
        """The hosts that have not used a copy, and why."""
        # in no order: neighbours that reach nobody, one after the other, would use up the first that give
        free, waiting = list(first), random.sample(others, len(others))
        try:
            for place in first:
                self._begin_use(place)
            while self._started(free, waiting):
                done, _ = await asyncio.wait(self._giving, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._note(task, free, waiting)
            used = await on_all(list(self._uses), lambda name: self._uses[name])
        finally:
            begun = [*self._uses.values(), *self._giving]
            for each in begun:
                each.cancel()
            await asyncio.gather(*begun, return_exceptions=True)
        lacking = [place for place in others if place.host.name not in self._uses]
        return {
            **errors_of(used),
            **_of_all({place.host.name: self._why(place) for place in lacking}, lacking),
        }

    def _started(self, free: list[Place], waiting: list[Place]) -> bool:
        """Start what can be; whether anything is on its way."""
        for receiver in tuple(waiting):
            giver = next((place for place in free if place not in self._tried[receiver]), None)
            if giver is None or len(self._giving) >= MOST_AT_ONCE:
                continue
            free.remove(giver)
            waiting.remove(receiver)
            self._tried[receiver].add(giver)
            copying = give(giver, receiver, self._content, self._site.python)
            self._giving[asyncio.create_task(copying)] = (giver, receiver)
        return bool(self._giving)

    def _note(self, task: asyncio.Task[None], free: list[Place], waiting: list[Place]) -> None:
        giver, receiver = self._giving.pop(task)
        raised = task.exception()
        if raised is None:
            self._begin_use(receiver)
            free += [giver, receiver]
            return
        if not isinstance(raised, Exception):
            raise raised
        error = contained(raised)
        if isinstance(error, CommandTimeoutError) and error.where == receiver.host.name:
            self._failures[receiver].append(error)  # it had its whole time, which is hours: it gets no other
        for place, queue in ((giver, free), (receiver, waiting)):
            self._failures[place].append(error)
            if len(self._failures[place]) < MOST_FAILURES:
                queue.append(place)

    def _begin_use(self, place: Place) -> None:
        self._uses[place.host.name] = asyncio.ensure_future(self._use(place))
        for host in place.sharers:
            self._uses[host.name] = asyncio.ensure_future(
                self._use_shared(Place(host, place.work, place.copy))
            )

    async def _use_shared(self, place: Place) -> None:
        """Use a copy that another host has made, once this one has seen that it is the right one."""
        argv = ("sh", "-c", IS_WHOLE, place.work, place.copy, self._content.sha256)
        await checked(place.host.transport, argv, timeout=_limit_s(self._content.size))
        await self._use(place)

    def _why(self, place: Place) -> FlagPerfError:
        failures = self._failures[place]
        return failures[-1] if failures else FlagPerfError("no host could give it", where=place.host.name)
