"""What a node writes is followed while it grows: by a real `tail` on this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from run_benchmarks import follow
from run_benchmarks.display.base import Display
from run_benchmarks.display.power_meter import Power, PowerMeter
from run_benchmarks.follow import KeptEvents, follow_events, follow_telemetry
from run_benchmarks.names import HostPaths, Node
from run_benchmarks.training_state import TrainingState
from run_benchmarks.transports.base import ByteSink, Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.builders import make_nodes
from utils.events import Event, EventName, format_line
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo, ticks_of

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick


class Seen(Display):
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, event: Event) -> None:
        self.events.append(event)

    def steps(self) -> list[int]:
        return [event.value["global_steps"] for event in self.events if event.name == EventName.STEP_END]


class Losing(LocalTransport):
    """This machine; contact is lost `times` times, each time after `after` chunks."""

    def __init__(self, after: int, times: int) -> None:
        super().__init__("node1")
        self.after = after
        self.times = times
        self.runs = 0

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
    ) -> Completed:
        self.runs += 1
        left = self.after
        assert stdout is not None

        async def sink(chunk: bytes) -> None:
            nonlocal left
            await stdout(chunk)
            left -= 1
            if not left and self.runs <= self.times:
                raise TransportError("contact was lost", where=self.host)

        return await super().run(argv, stdout=sink, timeout=timeout)


def line(step: int) -> str:
    return format_line(Event(EventName.STEP_END, {"global_steps": step, "text": "Ü" * 20})) + "\n"


NODE, _ = make_nodes()


def paths_in(work: Path) -> HostPaths:
    return HostPaths(str(work), f"{work}/tree", f"{work}/runs/uid", f"{work}/runs/uid/run1")


def node_folder(work: Path) -> Path:
    """The node's folder, which is there once this was asked."""
    folder = Path(paths_in(work).node(NODE))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def followed(
    folder: Path, write: Callable[[Path], AsyncIterator[int]], transport: LocalTransport | None = None
) -> Seen:
    """What was seen of the steps that `write` wrote; it yields how many there are once it waits for them."""
    seen = Seen()

    async def scenario() -> None:
        state = TrainingState()
        following = asyncio.create_task(
            follow_events(transport or LocalTransport("node1"), paths_in(folder), NODE, state, seen)
        )
        async for count in write(node_folder(folder) / "rank0.out.log"):
            while len(seen.events) < count:
                assert not following.done()
                await asyncio.sleep(0.01)
            assert state.step == (seen.steps()[-1] if seen.events else None)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert following.cancelled()

    asyncio.run(asyncio.wait_for(scenario(), timeout=60))
    return seen


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "RETRY_S", 0.0)


def test_a_log_that_grows(tmp_path: Path) -> None:
    async def write(log: Path) -> AsyncIterator[int]:
        yield 0
        log.write_text("no event\n" + line(1))  # it was not there when the follower began
        yield 1
        with log.open("a") as file:
            file.write(line(2) + "a warning\n" + line(3))
        yield 3

    assert followed(tmp_path, write).steps() == [1, 2, 3]


def test_events_that_are_followed_are_kept_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "KEPT_BYTES", 8 * len(line(1).encode()))
    kept = tmp_path / "round1" / "followed_events.log"
    kept.parent.mkdir()
    kept.write_text("of an earlier attempt\n")
    keeping = KeptEvents(kept)
    for number in range(100):
        keeping.take(Event(EventName.STEP_END.value, {}), line(number))
    keeping.take(Event("MY_OWN", {}), "[PerfLog] mine\n")
    last = format_line(Event(EventName.FINISHED, {"converged": True}))
    keeping.take(Event(EventName.FINISHED.value, {}), f"\x1b[31m{last}\r\n")
    keeping.close()
    steps = "".join(line(number) for number in range(4))
    assert kept.read_text() == f"{steps}{last}\n"
    assert keeping.left_out == 96


@pytest.mark.parametrize(
    ("total", "free", "kept"), [(2**40, 2**30 + 2000, 4), (2000, 1500, 1), (2**40, 2**30 - 1, 0)]
)
def test_events_that_are_followed_leave_room_on_the_disk_for_later_rounds(
    total: int, free: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a disk as this says, which cannot be had here; a line has 401 bytes, and half as many characters."""
    monkeypatch.setattr(follow, "disk_usage", lambda _: SimpleNamespace(total=total, free=free))
    file, text = tmp_path / "round1" / "followed_events.log", "[PerfLog] " + "Ü" * 195
    keeping = KeptEvents(file)
    for _ in range(10):
        keeping.take(Event(EventName.EVALUATE.value, {}), text)
    keeping.close()
    assert (file.read_text().count(text) if file.exists() else 0) == kept
    assert keeping.left_out == 10 - kept


def test_what_a_task_wrote_last_is_read_although_it_has_ended(tmp_path: Path) -> None:
    async def write(log: Path) -> AsyncIterator[int]:
        log.write_text(line(1))
        yield 1
        with log.open("a") as file:
            file.write(line(2) + line(3))
        yield 1  # the follower is cancelled before it can have seen them

    assert followed(tmp_path, write).steps() == [1, 2, 3]


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    """Also where a character of several bytes is cut in two."""
    whole = line(1).encode()
    text = json_with_umlaut(whole)

    async def write(log: Path) -> AsyncIterator[int]:
        middle = text.index("Ü".encode()) + 1
        log.write_bytes(text[:middle])
        yield 0
        await asyncio.sleep(0.05)
        with log.open("ab") as file:
            file.write(text[middle:] + line(2).encode())
        yield 2

    seen = followed(tmp_path, write)
    assert seen.steps() == [1, 2]
    assert seen.events[0].value["text"] == "Ü" * 20


class Work:
    """A FAKE clock of a thread for which every line is 10 ms of work; it sleeps at once."""

    def __init__(self) -> None:
        self.lines, self.slept = 0, 0.0

    def thread_time(self) -> float:
        return self.lines * 0.01

    def monotonic(self) -> float:
        return self.thread_time() + self.slept

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def take(self, line: str) -> None:
        self.lines += 1


def test_a_flood_is_read_at_a_part_of_a_core_and_a_few_lines_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It kept the controller busy long after it was over; what is not read yet stays on the node."""
    work = Work()
    monkeypatch.setattr(follow, "time", work)
    monkeypatch.setattr(follow.asyncio, "sleep", work.sleep)

    async def feed(chunks: int, chunk: bytes) -> None:
        for _ in range(chunks):
            await lines.feed(chunk)

    lines = follow._Lines(work.take)
    asyncio.run(feed(50, b"x\n" * 10))
    assert work.slept == 0, "five seconds of work"
    asyncio.run(feed(1000, b"x\n" * 10))
    assert work.lines == 10_500 and lines.read == 21_000, "none is left out"
    assert work.thread_time() <= follow.SHARE * work.monotonic() + follow.CREDIT_S
    before = work.slept
    asyncio.run(feed(100, bytes(2**20)))
    assert work.slept > before, "bytes without lines are work too"


def test_others_work_between_lines_that_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines of a chunk were taken at once, whatever they cost."""
    work = Work()
    given_way: list[int] = []

    async def sleep(seconds: float) -> None:
        work.slept += seconds
        given_way.append(work.lines)

    monkeypatch.setattr(follow, "time", work)
    monkeypatch.setattr(follow.asyncio, "sleep", sleep)
    lines = follow._Lines(work.take)
    asyncio.run(lines.feed(b"x\n" * 2000))
    assert work.lines == 2000
    assert max(after - before for before, after in pairwise(given_way)) <= 2
    assert work.slept >= (20 - follow.CREDIT_S) / follow.SHARE - 20 - 1, "and a part of a core is enough"


def test_what_is_cut_off_within_a_chunk_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    turns = iter(range(1000))
    monkeypatch.setattr(follow.time, "thread_time", lambda: float(next(turns)))

    async def cut_off() -> None:
        reading = asyncio.ensure_future(lines.feed(text))
        while not taken:
            await asyncio.sleep(0)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading

    lines, text = follow._Lines(taken.append), b"".join(b"line %d\n" % number for number in range(50))
    asyncio.run(cut_off())
    assert 0 < len(taken) < 50
    monkeypatch.undo()
    asyncio.run(lines.feed(text[lines.read :]))
    assert taken == text.decode().splitlines()


def json_with_umlaut(text: bytes) -> bytes:
    """The line as a logger writes it that does not escape what is not ASCII."""
    return text.replace(b"\\u00dc", "Ü".encode())


def test_after_a_lost_contact_nothing_is_missed_and_nothing_comes_twice(tmp_path: Path) -> None:
    async def write(log: Path) -> AsyncIterator[int]:
        for step in range(1, 8):
            with log.open("a") as file:
                file.write(line(step)[:30])
                file.flush()
                await asyncio.sleep(0.01)
                file.write(line(step)[30:])
            yield step

    transport = Losing(after=2, times=3)
    assert followed(tmp_path, write, transport).steps() == [1, 2, 3, 4, 5, 6, 7]
    assert transport.runs == 5, "four times it is followed; the last reads what was written last"


def read_of(work: Path, name: str) -> str:
    """What is read of a file of the node's folder at once, without waiting for it."""
    node_folder(work)
    folder = Path(paths_in(work).node(NODE)).relative_to(work)
    argv = ["sh", "-c", follow.READ, str(work), str(folder), name, "1"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30).stdout


def test_what_a_task_put_in_the_place_of_a_log_is_not_opened(tmp_path: Path) -> None:
    """A link to a pipe outside made the host open it as the ssh user, who may open what the task may not."""
    pipe, secret, folder = tmp_path / "pipe", tmp_path / "secret", node_folder(tmp_path)
    os.mkfifo(pipe)
    secret.write_text("the host's own")
    (folder / "plain").write_text("a line")
    (folder / "link").symlink_to(secret)
    (folder / "link to a pipe").symlink_to(pipe)
    os.mkfifo(folder / "pipe")
    assert read_of(tmp_path, "plain") == "a line"
    for name in ("link", "link to a pipe", "pipe", "missing"):
        assert read_of(tmp_path, name) == ""


def test_a_link_is_never_followed_and_the_log_after_it_is(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(line(7))

    async def write(log: Path) -> AsyncIterator[int]:
        log.symlink_to(tmp_path / "secret")
        yield 0
        await asyncio.sleep(0.7)  # it has been looked at
        log.unlink()
        log.write_text(line(1))
        yield 1

    assert followed(tmp_path, write).steps() == [1]


def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    folder = node_folder(tmp_path)
    (folder / "plain").write_text("a line")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert read_of(tmp_path, "plain") == ""


MACHINE = SourceInfo(1, "pwr", Scope.MACHINE, 1.0)
PACKAGES = SourceInfo(1, "rapl", Scope.PACKAGE, 1.0)


def test_what_a_monitor_writes_comes_record_by_record(tmp_path: Path) -> None:
    class Records(Display):
        def __init__(self) -> None:
            self.seen: list[tuple[Node, SourceInfo | float | None]] = []

        def telemetry(self, node: Node, record: AnyTick | SourceInfo) -> None:
            is_source = isinstance(record, SourceInfo)
            self.seen.append((node, record if is_source else record.readings["power_w"][0]))

    async def scenario() -> None:
        following = asyncio.create_task(
            follow_telemetry(LocalTransport("node1"), paths_in(tmp_path), NODE, records)
        )
        for watts in (500.0, 612.5):
            with (node_folder(tmp_path) / TELEMETRY_FILE).open("a") as file:
                file.write(record_line(MACHINE) + "not a record\n")
                file.write(record_line(Sample(2, "pwr", power_w=watts)))
            while not records.seen or records.seen[-1] != (NODE, watts):
                await asyncio.sleep(0.01)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    records = Records()
    asyncio.run(asyncio.wait_for(scenario(), timeout=60))
    assert records.seen == [(NODE, MACHINE), (NODE, 500.0), (NODE, MACHINE), (NODE, 612.5)]


def test_power_is_that_of_the_source_that_the_figures_will_use() -> None:
    meter = PowerMeter()

    def take(sample: Sample) -> Power | None:
        (tick,) = ticks_of([sample])
        return meter.take(tick)

    package = Sample(2, "rapl", "package-0", power_w=40.0)
    assert take(package) is None, "nobody knows of what it is"
    assert meter.take(PACKAGES) is None
    assert take(package) == Power(40.0, Scope.PACKAGE)
    assert take(Sample(2, "rapl", "package-1")) is None, "a part of the devices is no power of the node"
    assert take(Sample(3, "rapl", "package-1", power_w=2.0)) == Power(42.0, Scope.PACKAGE)
    carried = Sample(3, "rapl", "package-2", power_on="package-1")
    assert take(carried) == Power(42.0, Scope.PACKAGE), "it is counted with the one that carries it"
    meter.take(MACHINE)
    assert take(package) is None
    assert take(Sample(3, "pwr", power_w=300.0)) == Power(300.0, Scope.MACHINE)
    assert take(Sample(3, "cpu", utilisation=0.5)) is None
