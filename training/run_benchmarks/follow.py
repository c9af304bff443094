"""Follow rank 0's events while a round runs, for the display and the signs of life."""

from __future__ import annotations

import asyncio
import codecs
from contextlib import suppress

from run_benchmarks.display import Display
from run_benchmarks.run_log import LOGGER
from run_benchmarks.training_state import TrainingState
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError
from utils.events import Event, EventName, parse_line
from utils.node import rank_log_name
from utils.processor import precision_note

RETRY_S = 2.0


async def follow_events(transport: Transport, folder: str, state: TrainingState, display: Display) -> None:
    """Feed each event of global rank 0 to `state` and `display` until cancelled.

    What is missed while contact is lost is read after it: the log is followed from where it was left.
    """
    reader = _Lines(state, display)
    while True:
        # `-F` waits for a file that does not exist yet; +N counts bytes from 1.
        argv = ["tail", "-c", f"+{reader.read + 1}", "-F", f"{folder}/{rank_log_name(0)}"]
        # losing sight of the log is not losing the task: whether that lives, the watch decides
        with suppress(FlagPerfError):
            await transport.run(argv, stdout=reader.take)
        await asyncio.sleep(RETRY_S)


class _Lines:
    """Cuts a stream of bytes into lines and hands on the events among them."""

    def __init__(self, state: TrainingState, display: Display) -> None:
        self.state = state
        self.display = display
        self.read = 0
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def _note_precision(self, event: Event) -> None:
        note = precision_note(event.value) if event.name == EventName.INIT_END else ""
        if note:
            LOGGER.info(note)

    async def take(self, chunk: bytes) -> None:
        """The next part of the stream."""
        self.read += len(chunk)
        *lines, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
        for line in lines:
            event = parse_line(line)
            if event is not None:
                self._note_precision(event)
                self.state.update(event)
                self.display.event(event)
