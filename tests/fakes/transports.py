"""FAKE hosts: answers that this machine cannot give, at the border to the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from run_benchmarks.transports.base import CommandTimeoutError, Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.clock import HandClock


class PingedHost:
    """A host that is only pinged: pings end as `answers` says (True: reached); after the last answer, as the last.

    lets_in: a connection is made also where a ping is not answered.
    """

    def __init__(
        self,
        clock: HandClock,
        answers: Sequence[bool] = (True,),
        *,
        each_takes: float = 5.0,
        lets_in: bool = False,
    ) -> None:
        self.host = "h"
        self.clock = clock
        self.answers = list(answers)
        self.each_takes = each_takes
        self.lets_in = lets_in
        self.pings = 0

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        reached = self.answers[min(self.pings, len(self.answers) - 1)]
        self.pings += 1
        await asyncio.sleep(0)
        if not reached:
            self.clock.now += self.each_takes
            raise CommandTimeoutError("no answer", where=self.host)
        return Completed(self.host, tuple(argv), 0, "", "")

    async def reach(self) -> None:
        if not (self.lets_in or self.answers[min(self.pings, len(self.answers) - 1)]):
            raise TransportError("takes TCP and hangs", where=self.host, remedy="see its console")


class AnsweringHost(LocalTransport):
    """This machine, but for the commands whose answer the test gives: a FAKE of just those."""

    def __init__(self, answers: dict[str, tuple[int, str, str]]) -> None:
        super().__init__("node1")
        self.answers = answers

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        for words, (code, out, err) in self.answers.items():
            if words in " ".join(argv):
                return Completed(self.host, tuple(argv), code, out, err)
        return await super().run(argv, **options)
