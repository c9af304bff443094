"""Wait for a round's tasks: on events, through lost connections, until all have ended or one has failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from run_benchmarks.host_log import log_of_host
from run_benchmarks.names import Node
from run_benchmarks.runtimes.base import EngineError, Runtime
from run_benchmarks.stages.contact import PING_TIMEOUT_S, REACH_TIMEOUT_S, given_up, out_of_reach, silence_of
from run_benchmarks.stages.fan_out import on_all
from run_benchmarks.stages.hang import CATCH_UP_S, HangWatch, Unseen
from run_benchmarks.transports.backoff import NEVER, with_backoff
from run_benchmarks.transports.base import CommandError, Transport, TransportError
from run_benchmarks.transports.time_limit import within
from utils.errors import FlagPerfError
from utils.records import FailureClass

RECONNECT_EVERY_S = 1.0
ENGINE_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0)  # within which an engine is started anew
KILLED = 137  # 128 + SIGKILL
# After the first failure the peers' own ends are awaited this long: which of them failed first is judged later.
SETTLE_S = 3.0
PEERS_FAILED = "its peers failed, and it does not answer"
# A wait that held so long has worked: what ends it is said. One that ends at once each time is said once.
HELD_S = 10.0
SAID, HUSHED = ("WARNING", "INFO"), ("DEBUG", "DEBUG")  # levels of the log: of a loss, of its end
# Between two looks whether the training still makes progress.
LOOK_EVERY_S = 1.0
# A lost connection is noticed this long after the last sign of life (the ssh keepalive's patience).
NOTICED_AFTER_S = 10.0


@dataclass(frozen=True)
class Ended:
    """The task's main process ended with `code` (`at`: seconds on the monotonic clock).

    cause: where it was killed, what the engine says of that, if it says anything. remedy: what to do about that.
    """

    code: int
    at: float
    cause: FailureClass | None = None
    remedy: str = ""


@dataclass(frozen=True)
class Lost:
    """Nothing is known of the task any more: its host is out of reach or, where that `answered`, the unit is gone.

    message: what happened in the first line, and how that is known. cause: what the error was that says so, if that is
    known. remedy: what to do next.
    """

    message: str
    answered: bool
    at: float
    cause: FailureClass | None = None
    remedy: str = ""

    @classmethod
    def by(cls, error: FlagPerfError, remedy: str = "") -> Lost:
        """Lost now, by an error; `remedy` in the place of the error's own."""
        answered = isinstance(error, CommandError)
        return cls(error.message, answered, time.monotonic(), error.failure_class, remedy or error.remedy)


Ending = Ended | Lost


@dataclass(frozen=True)
class Outcome:
    """How a round's tasks ended, by node rank; a node that still ran has no ending.

    timed_out: the deadline came first. hung_s: the seconds of silence after which the training was taken for hung, or
    None; hang_limit: what that exceeded; unseen: nodes whose ranks could not be looked at then. out_of_contact: nodes
    without an ending that did not answer either, and why. goes_on: at the deadline rank 0 had been silent for no longer
    than before. dispensable: how those ended that the round could do without. Plain data: it stands in `round.json`.
    """

    endings: Mapping[int, Ending]
    timed_out: bool
    out_of_contact: Mapping[int, str]
    hung_s: float | None = None
    hang_limit: str = ""
    unseen: Mapping[int, Unseen] = field(default_factory=dict)
    goes_on: bool = False
    dispensable: Mapping[int, Ending] = field(default_factory=dict)

    @property
    def all_ended_well(self) -> bool:
        """Whether every task exited with 0."""
        is_cut_off = self.timed_out or self.hung_s is not None
        return not is_cut_off and all(isinstance(e, Ended) and e.code == 0 for e in self.endings.values())


@dataclass(frozen=True)
class Watch:
    """Waits for the tasks of one round.

    Args:
        progressed_at: when (monotonic) the training last showed progress; None where that cannot be seen.
            Training is synchronous: where a step is finished, every rank lives.
        note_contact: told of a node whose contact is lost (False) or back (True).
        hangs: says when the training hangs.
        broken: the tasks whose engine does not answer, by node rank, since when.
        unheard: by node rank, takes how a host does not answer though its connection stands.
    """

    runtime: Runtime
    transports: Mapping[str, Transport]
    names: Mapping[int, str]
    host_lost_after_s: float
    progressed_at: Callable[[], float | None]
    note_contact: Callable[[Node, bool], None] = lambda node, there: None
    hangs: HangWatch = field(default_factory=HangWatch)
    broken: dict[int, Lost] = field(default_factory=dict)
    unheard: dict[int, asyncio.Future[TransportError]] = field(default_factory=dict)

    async def run(self, nodes: Sequence[Node], deadline_s: float) -> Outcome:
        """Wait until every task has ended, or one has failed and its peers had a moment to end too."""
        tasks = {node.rank: asyncio.create_task(self._node(node)) for node in nodes}
        try:
            timed_out, hung_s = await self._until_failure(tasks, nodes, deadline_s)
            silent = {}
            if not timed_out and hung_s is None and any(not task.done() for task in tasks.values()):
                await asyncio.wait(tasks.values(), timeout=SETTLE_S)
                silent = await self._silent([node for node in nodes if not tasks[node.rank].done()])
            ended = {rank: task.result() for rank, task in tasks.items() if task.done()}
            # an engine that does not answer on a host that does: that of a dead host went with it
            broken = {rank: lost for rank, lost in self.broken.items() if rank not in silent}
            endings: dict[int, Ending] = {**broken, **ended}
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        silent = {rank: error for rank, error in silent.items() if rank not in endings}
        out_of_contact = {rank: f"{PEERS_FAILED}\n{error.message}" for rank, error in silent.items()}
        if hung_s is None:
            return Outcome(endings, timed_out, out_of_contact)
        return Outcome(endings, timed_out, out_of_contact, hung_s, self.hangs.limit_text(), self.hangs.unseen)

    async def _silent(self, nodes: Sequence[Node]) -> dict[int, FlagPerfError]:
        """Those of `nodes` that do not answer now."""
        silences = await on_all(nodes, lambda node: silence_of(self.transports[node.host]))
        return {node.rank: error for node, error in silences.items() if error is not None}

    async def _until_failure(
        self, tasks: Mapping[int, asyncio.Task[Ending]], nodes: Sequence[Node], deadline_s: float
    ) -> tuple[bool, float | None]:
        """Whether the deadline came first, and how long the training was silent where it hangs."""
        end = time.monotonic() + deadline_s
        pending = set(tasks.values())
        while pending:
            asked = time.monotonic()
            left = end - asked
            pause_s = max(0.0, min(left, LOOK_EVERY_S))
            done, pending = await asyncio.wait(pending, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            if any(_failed(task.result()) for task in done):
                return False, None
            if self.hangs.note_pause(time.monotonic() - asked, pause_s):
                end = max(end, time.monotonic() + CATCH_UP_S)  # to hear of what ended meanwhile
            elif not done and left <= LOOK_EVERY_S:
                return True, None
            hung_s = None if done else await self.hangs.confirmed(lambda: self._answers(nodes[0]))
            if hung_s is not None:
                return False, hung_s
        return False, None

    async def _answers(self, node: Node) -> bool:
        error = await silence_of(self.transports[node.host])
        unheard = self.unheard.get(node.rank)
        if error is not None and unheard is not None and not unheard.done():
            unheard.set_result(error)
        return error is None

    async def _node(self, node: Node) -> Ending:
        transport = self.transports[node.host]
        said: set[type[FlagPerfError]] = set()
        while True:
            begun = time.monotonic()
            try:
                return await self._heard(node, transport)
            except (EngineError, TransportError) as error:
                if time.monotonic() - begun >= HELD_S:
                    said.clear()
                levels = HUSHED if type(error) in said else SAID
                said.add(type(error))
                if isinstance(error, EngineError):
                    ending = await self._after_engine(error, node, transport, levels)
                else:
                    ending = await self._after_loss(error, node, transport, levels)
                if ending is not None:
                    return ending
            except FlagPerfError as error:
                return self._unknown(error, node)

    async def _heard(self, node: Node, transport: Transport) -> Ended:
        """The task's end; raised is how its host does not answer, where that was found out meanwhile."""
        unheard = self.unheard[node.rank] = asyncio.get_running_loop().create_future()
        ended = asyncio.ensure_future(self._ended(transport, self.names[node.rank]))
        try:
            await asyncio.wait({ended, unheard}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                raise unheard.result()
            return ended.result()
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)

    async def _after_loss(
        self, error: TransportError, node: Node, transport: Transport, levels: tuple[str, str]
    ) -> Ending | None:
        """How its host is lost for good; None once contact is back, and the task goes on."""
        text = f"contact is lost; the task goes on, trying again ({error.message})"
        log_of_host(levels[0], node.host, text)
        self._note_contact(node, False)
        if isinstance(error, NEVER):
            return Lost.by(error)
        if lost := await self._lost(node, transport, error):
            return lost
        log_of_host(levels[1], node.host, "contact is back")
        self._note_contact(node, True)
        return None

    def _unknown(self, error: FlagPerfError, node: Node) -> Lost:
        """The host answers, and its runtime knows nothing of the task."""
        return Lost.by(error, self.runtime.advice(error.failure_class, node.host))

    async def _ended(self, transport: Transport, name: str) -> Ended:
        """The task's end, once it has come."""
        code = await self.runtime.wait(transport, name)
        at, cause = time.monotonic(), None
        with suppress(FlagPerfError):  # its end is known all the same
            cause = await self.runtime.why_killed(transport, name) if code == KILLED else None
        return Ended(code, at, cause, self.runtime.advice(cause, transport.host))

    async def _after_engine(
        self, error: EngineError, node: Node, transport: Transport, levels: tuple[str, str]
    ) -> Ending | None:
        """The task's end where its engine failed; None where that is there again, and the task goes on."""
        log_of_host(levels[0], node.host, f"the engine does not answer for the task ({error.message})")
        self.broken[node.rank] = lost = self._unknown(error, node)
        await asyncio.sleep(RECONNECT_EVERY_S)
        try:
            await with_backoff(
                lambda: self.runtime.version(transport),
                ENGINE_PAUSES_S,
                lambda each: isinstance(each, EngineError),
                levels,
            )
            # an engine that is started anew has ended what it does not keep before it answers
            ended = await within(self._ended(transport, self.names[node.rank]), SETTLE_S)
        except asyncio.TimeoutError:
            log_of_host(levels[1], node.host, "the engine is back, and the task goes on")
            del self.broken[node.rank]
            return None
        except FlagPerfError as again:
            return None if isinstance(again, TransportError) else lost
        message = f"{error.message}\nit ended the task, with exit code {ended.code}"
        return replace(lost, message=message) if ended.code else ended

    def _note_contact(self, node: Node, there: bool) -> None:
        self.note_contact(node, there)
        if node.rank == 0:
            self.hangs.note_contact(there)

    async def _lost(self, node: Node, transport: Transport, error: TransportError) -> Lost | None:
        """How a host is lost for good whose contact `error` has ended; None once contact is back."""
        last_contact, now = time.monotonic() - NOTICED_AFTER_S, None
        while not (decided := self._given_up(node, last_contact)):
            # before the attempt: a host that answers, but loses every wait, must not be asked in a frenzy
            await asyncio.sleep(RECONNECT_EVERY_S)
            try:
                await transport.run(["true"], timeout=PING_TIMEOUT_S)
                return None
            except TransportError as again:
                now = again
            except FlagPerfError:  # not in time: how it is out of reach is known once a connection has failed
                pass
        # one that is only slow has the time here to run a command
        now = now or await out_of_reach(transport) or await silence_of(transport, REACH_TIMEOUT_S)
        if now is None:  # it is back at the last moment
            await asyncio.sleep(RECONNECT_EVERY_S)
            return None
        return replace(Lost.by(now), message=f"{decided}\n{error.message}; since then: {now.message}")

    def _given_up(self, node: Node, last_contact: float) -> str:
        """Why a host is waited for no longer; empty where it is."""
        # Progress is read from node 0: it says nothing while node 0 itself is the one that is lost.
        progressed = self.progressed_at() if node.rank != 0 else None
        return given_up(last_contact, progressed, self.host_lost_after_s, alone=len(self.names) == 1)


def _failed(ending: Ending) -> bool:
    return isinstance(ending, Lost) or ending.code != 0
