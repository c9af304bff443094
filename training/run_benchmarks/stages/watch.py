"""Wait for a round's tasks: on events, through lost connections, until all have ended or one has failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from run_benchmarks.names import Node
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.fan_out import errors_of, on_all
from run_benchmarks.transports.base import CommandError, Transport, TransportError
from utils.errors import FlagPerfError

RECONNECT_EVERY_S = 1.0
# After the first failure the peers' own ends are awaited this long: which of them failed first is judged later.
SETTLE_S = 3.0
PING_TIMEOUT_S = 5.0
# A lost connection is noticed this long after the last sign of life (the ssh keepalive's patience).
NOTICED_AFTER_S = 10.0
# No peer waits for a task that has its node to itself, so a long outage of the connection costs nothing.
ALONE_PATIENCE_S = 600.0


@dataclass(frozen=True)
class Ended:
    """The task's main process ended with `code` (`at`: seconds on the monotonic clock)."""

    code: int
    at: float


@dataclass(frozen=True)
class Lost:
    """Nothing is known of the task any more: its host is out of reach or, where that `answered`, the unit is gone."""

    message: str
    answered: bool
    at: float


Ending = Ended | Lost


@dataclass(frozen=True)
class Outcome:
    """How a round's tasks ended, by node rank; a node that still ran has no ending.

    timed_out: the deadline came first. out_of_contact: nodes without an ending that did not answer either, and why.
    Plain data, for it stands in `round.json`.
    """

    endings: Mapping[int, Ending]
    timed_out: bool
    out_of_contact: Mapping[int, str]

    @property
    def all_ended_well(self) -> bool:
        """Whether every task exited with 0."""
        return not self.timed_out and all(isinstance(e, Ended) and e.code == 0 for e in self.endings.values())


@dataclass(frozen=True)
class Watch:
    """Waits for the tasks of one round.

    Args:
        progressed_at: when (monotonic) the training last showed progress; None where that cannot be seen.
            Training is synchronous: where a step is finished, every rank lives.
        note_contact: told of a node whose contact is lost (False) or back (True).
    """

    runtime: Runtime
    transports: Mapping[str, Transport]
    names: Mapping[int, str]
    host_lost_after_s: float
    progressed_at: Callable[[], float | None]
    note_contact: Callable[[Node, bool], None] = lambda node, there: None

    async def run(self, nodes: Sequence[Node], deadline_s: float) -> Outcome:
        """Wait until every task has ended, or one has failed and its peers had a moment to end too."""
        tasks = {node.rank: asyncio.create_task(self._node(node)) for node in nodes}
        try:
            timed_out = await self._until_failure(tasks, deadline_s)
            silent = {}
            if not timed_out and any(not task.done() for task in tasks.values()):
                await asyncio.wait(tasks.values(), timeout=SETTLE_S)
                silent = await self._silent([node for node in nodes if not tasks[node.rank].done()])
            endings = {rank: task.result() for rank, task in tasks.items() if task.done()}
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        silent = {rank: error for rank, error in silent.items() if rank not in endings}
        return Outcome(endings, timed_out, {rank: error.message for rank, error in silent.items()})

    async def _silent(self, nodes: Sequence[Node]) -> dict[int, FlagPerfError]:
        """Those of `nodes` that do not answer now."""

        async def ping(rank: int) -> None:
            await self.transports[hosts[rank]].run(["true"], timeout=PING_TIMEOUT_S)

        hosts = {node.rank: node.host for node in nodes}
        return errors_of(await on_all(list(hosts), ping))

    async def _until_failure(self, tasks: Mapping[int, asyncio.Task[Ending]], deadline_s: float) -> bool:
        end = time.monotonic() + deadline_s
        pending = set(tasks.values())
        while pending:
            left = end - time.monotonic()
            done, pending = await asyncio.wait(
                pending, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return True
            if any(_failed(task.result()) for task in done):
                return False
        return False

    async def _node(self, node: Node) -> Ending:
        transport, name = self.transports[node.host], self.names[node.rank]
        while True:
            try:
                return Ended(await self.runtime.wait(transport, name), time.monotonic())
            except TransportError as error:
                LOGGER.warning(
                    f"{node.host}: contact is lost; the task goes on, trying again ({error.message})"
                )
                self.note_contact(node, False)
                if not await self._contact_again(node, transport):
                    return Lost(error.message, isinstance(error, CommandError), time.monotonic())
                LOGGER.info(f"{node.host}: contact is back")
                self.note_contact(node, True)
            except FlagPerfError as error:
                return Lost(error.message, isinstance(error, CommandError), time.monotonic())

    async def _contact_again(self, node: Node, transport: Transport) -> bool:
        last_contact = time.monotonic() - NOTICED_AFTER_S
        while not self._given_up(node, last_contact):
            # before the attempt: a host that answers, but loses every wait, must not be asked in a frenzy
            await asyncio.sleep(RECONNECT_EVERY_S)
            with suppress(FlagPerfError):
                await transport.run(["true"], timeout=PING_TIMEOUT_S)
                return True
        return False

    def _given_up(self, node: Node, last_contact: float) -> bool:
        signs = [last_contact]
        progressed = self.progressed_at()
        # Progress is read from node 0: it says nothing while node 0 itself is the one that is lost.
        if progressed is not None and node.rank != 0:
            signs.append(progressed)
        patience = (
            self.host_lost_after_s if len(self.names) > 1 else max(self.host_lost_after_s, ALONE_PATIENCE_S)
        )
        return time.monotonic() - max(signs) > patience


def _failed(ending: Ending) -> bool:
    return isinstance(ending, Lost) or ending.code != 0
