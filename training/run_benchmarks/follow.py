"""Follow what grows on a node while a round runs: rank 0's events, and what the monitor samples."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage

from run_benchmarks.display.base import Display
from run_benchmarks.names import HostPaths, Node, decisive_log
from run_benchmarks.plan.monitors import METERS
from run_benchmarks.results.rank_logs import NAMES, SELDOM
from run_benchmarks.results.telemetry_file import record_of
from run_benchmarks.run_log import LOGGER, LineFile
from run_benchmarks.stages.collect_listing import KEPT
from run_benchmarks.stages.run_folder import GO_BELOW, below_work
from run_benchmarks.training_state import TrainingState
from run_benchmarks.transports.base import Transport
from run_benchmarks.unforeseen import sentence_of, traceback_text
from utils.errors import FlagPerfError
from utils.events import PREFIX, Event, parse_line
from utils.search.events import RECORDS
from utils.telemetry.lines import TELEMETRY_FILE
from utils.text_files import LONGEST_LINE

RETRY_S = 2.0
# Of a round's events so much is kept on the controller: 100,000 steps have less.
KEPT_BYTES = 2**26
# The last lines are for the eye alone: a host that does not answer is not waited for longer.
REST_S = 5.0
# What is read of a node takes so much of a core at most, but for a credit: an honest rank and a monitor take far less,
# and what they wrote while contact was lost is read at once. To move so many bytes is a second's work.
SHARE, CREDIT_S, BYTES_PER_S = 0.2, 5.0, 2**28
TURN_S = 0.01  # of work, behind which the controller's other tasks have theirs
# $2: a file of a node's folder, $3: its first byte that is wanted, counted from 1, $4: `-f` to wait for the file and
# for what is added to it. A task may put a link or a pipe in its place: it is opened once, and is what was opened.
READ = (
    f'{GO_BELOW}is_plain() {{ [ -f "./$2" ] && [ ! -L "./$2" ]; }}; '
    'while [ "$4" ] && ! is_plain "$@"; do sleep 0.5; done; is_plain "$@" && exec <"./$2" '
    '&& [ "$(readlink /proc/self/fd/0)" = "$PWD/$2" ] && exec tail -c "+$3" -s 0.5 $4'
)


async def follow_events(
    transport: Transport,
    paths: HostPaths,
    node: Node,
    state: TrainingState,
    display: Display,
    kept: KeptEvents | None = None,
) -> None:
    """Feed each event of global rank 0, of a search its controller, to `state` and `display` until cancelled.

    Its last ones too: the evaluation that met the target stands among the last lines of a task that has ended.

    Args:
        node: on which either runs.
        kept: gets the lines of the events: the round is judged by it where its log gets lost.
    """

    def take(line: str) -> None:
        event = parse_line(line)
        if event is not None:
            state.update(event)
            display.event(event)
            if kept:
                kept.take(event, line)

    log = _Log(paths.work, below_work(paths, paths.node(node)), decisive_log(node.case.roles))
    lines = _Lines(take)
    try:
        await _follow(transport, log, lines)
    finally:
        with suppress(FlagPerfError):
            await transport.run(log.argv(lines.read), stdout=lines.feed, timeout=REST_S)
        if kept:
            kept.close()


_KEPT = NAMES | RECORDS.keys()


class KeptEvents:
    """A file of FlagPerf's own events, bounded: those of steps, of which there may be many, leave room for the rest.

    What collecting keeps free on the disk for later rounds stays free, of a small disk half.

    left_out: how many events found no room.
    """

    def __init__(self, path: Path) -> None:
        self.left_out = 0
        self._path, self._bytes = path, 0
        self._room: int | None = None  # not looked for yet
        self._file: LineFile | None = None

    def take(self, event: Event, line: str) -> None:
        """One more event, and the line that it stands in."""
        if event.name not in _KEPT:
            return
        if self._room is None:
            self._room = self._begin()
        text = line[line.index(PREFIX) :].rstrip() + "\n"
        size = len(text.encode())
        if self._bytes + size > (self._room if event.name in SELDOM else self._room // 2):
            self.left_out += 1
            return
        self._bytes += size
        self._opened().write(text)

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def _begin(self) -> int:
        """Forget what a controller that died had followed, which is followed anew; for how many bytes there is room."""
        self._path.unlink(missing_ok=True)
        disk = disk_usage(next(folder for folder in self._path.parents if folder.is_dir()))
        return min(KEPT_BYTES, disk.free - min(KEPT, disk.total // 2))

    def _opened(self) -> LineFile:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = LineFile(self._path)
        return self._file


async def follow_telemetry(transport: Transport, paths: HostPaths, node: Node, display: Display) -> None:
    """Hand each record that the node's monitor writes to `display` until cancelled."""

    def take(line: str) -> None:
        with suppress(FlagPerfError):  # who reads the file for figures says what is wrong with it
            record = record_of(line, TELEMETRY_FILE)
            if record.source not in METERS:  # which the controller reads itself
                display.telemetry(node, record)

    log = _Log(paths.work, below_work(paths, paths.node(node)), TELEMETRY_FILE)
    await _follow(transport, log, _Lines(take))


@dataclass(frozen=True)
class _Log:
    """A file of a node's folder, which lies below the work folder."""

    work: str
    folder: str
    name: str

    def argv(self, read: int, *how: str) -> tuple[str, ...]:
        """The command that prints what follows the first `read` bytes; `how`: "-f" to go on with what is added."""
        return ("sh", "-c", READ, self.work, self.folder, self.name, str(read + 1), *how)


async def _follow(transport: Transport, log: _Log, lines: _Lines) -> None:
    """Feed a file of the host to `lines` as it grows, until cancelled.

    What is missed while contact is lost is read after it: the file is followed from where it was left.
    """
    while True:
        # losing sight of a file is not losing the task: whether that lives, the watch decides
        with suppress(FlagPerfError):
            await transport.run(log.argv(lines.read, "-f"), stdout=lines.feed)
        await asyncio.sleep(RETRY_S)


class _Lines:
    """Cuts a stream of bytes into lines and hands them on; those longer than LONGEST_LINE bytes are left out.

    What is seen of a round that goes on is for the eye: a line that breaks its taker is logged, the first time, and
    lines that come too fast are not read faster: they wait on the node, and cost the controller no time or memory.
    """

    def __init__(self, take: Callable[[str], None]) -> None:
        self.read = 0
        self._take = take
        self._rest = bytearray()
        self._is_too_long = self._has_failed = False
        self._credit_s, self._counted_at = CREDIT_S, time.monotonic()

    async def feed(self, chunk: bytes) -> None:
        """The next part of the stream; returns when the one after it may come."""
        await self._pay(len(chunk) / BYTES_PER_S)
        began = time.thread_time()
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._end_line(end)
            if time.thread_time() - began > TURN_S:  # others' work waits, and a line may be dear
                await self._pay(time.thread_time() - began)
                began = time.thread_time()
        self._add(rest)
        self.read += len(rest)
        await self._pay(time.thread_time() - began)

    async def _pay(self, worked: float) -> None:
        """Let others work; after so many seconds of work, which count."""
        now = time.monotonic()
        self._credit_s = min(CREDIT_S, self._credit_s + SHARE * (now - self._counted_at)) - worked
        self._counted_at = now
        await asyncio.sleep(max(0.0, -self._credit_s / SHARE))

    def _end_line(self, end: bytes) -> None:
        """The rest of a line: what is cut off behind it is read again."""
        self._add(end)
        self.read += len(end) + 1
        if not self._is_too_long:
            self._hand_on(self._rest.decode("utf-8", "replace"))
        self._rest.clear()
        self._is_too_long = False

    def _add(self, part: bytes) -> None:
        self._is_too_long = self._is_too_long or len(self._rest) + len(part) > LONGEST_LINE
        self._rest += b"" if self._is_too_long else part

    def _hand_on(self, line: str) -> None:
        try:
            self._take(line)
        except Exception as error:
            if not self._has_failed:
                message = f"a line of a node was not shown: {sentence_of(error)}"
                LOGGER.bind(detail=traceback_text(error)).warning(message)
            self._has_failed = True
