"""The frame: its schedule, and that a source which fails or hangs costs the others nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from run_benchmarks.results.telemetry_file import read_telemetry, record_of
from tests.fakes.clock import HandClock
from tests.utils.monitors.value_log import logged_values
from utils.monitors import frame, schedule
from utils.monitors.accelerators import Accelerators
from utils.monitors.files import TelemetryFile, open_log
from utils.monitors.frame import Sampler
from utils.monitors.schedule import run_monitors, run_together
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.lines import TELEMETRY_FILE, value_log
from utils.telemetry.records import Sample, Scope, SourceInfo

TICK_S = 0.01


class Steady(Source):
    """A source of its own kind: real threads, files and ticks, a value that is made up."""

    scope = Scope.HOST
    note = "for tests"

    def __init__(self, name: str = "steady") -> None:
        self.name = name
        self.log_name = f"{name}_monitor.log"
        self.ticks = 0
        self.closed = False

    def open(self) -> None:
        pass

    def sample(self, time_ms: int) -> Sequence[Sample]:
        self.ticks += 1
        return [Sample(time_ms, self.name, utilisation=0.5)]

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        return value_log(time_ms, samples[0].utilisation, digits=3)

    def close(self) -> None:
        self.closed = True


class Absent(Steady):
    def open(self) -> None:
        raise SourceUnavailableError("there is\nno such sensor")


class BrokenAtStart(Steady):
    def open(self) -> None:
        raise ZeroDivisionError("a mistake in the source")


class FailsTwice(Steady):
    def sample(self, time_ms: int) -> Sequence[Sample]:
        super().sample(time_ms)
        if self.ticks in (2, 3):
            raise RuntimeError("the sensor\ndid not answer")
        return [Sample(time_ms, self.name, utilisation=0.5)]


class Hangs(Steady):
    def __init__(self) -> None:
        super().__init__("hangs")
        self.release = threading.Event()

    def sample(self, time_ms: int) -> Sequence[Sample]:
        self.release.wait(timeout=120)
        return []


def run(sources: Sequence[Steady], folder: Path, ticks: int = 3) -> list[Sampler]:
    return run_monitors([(source, TICK_S) for source in sources], folder, threading.Event(), ticks)


def values_of(folder: Path, name: str) -> list[float | None]:
    return logged_values(folder / f"{name}_monitor.log")


def test_every_tick_stands_in_the_log_and_in_the_telemetry(tmp_path: Path) -> None:
    source = Steady()
    (sampler,) = run([source], tmp_path)
    telemetry = read_telemetry(tmp_path / "telemetry.jsonl")
    assert values_of(tmp_path, "steady") == [0.5] * sampler.counts.sampled
    assert len(telemetry.samples) == sampler.counts.sampled > 0
    assert telemetry.sources[0].note == "for tests" and telemetry.sources[0].interval_s == TICK_S
    assert sampler.counts.sampled + sampler.counts.missed >= 3
    assert source.closed


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Absent, "there is no such sensor"),
        (BrokenAtStart, "ZeroDivisionError: a mistake in the source"),
    ],
)
def test_a_source_that_is_not_there_says_so_in_its_log_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: type[Steady], reason: str
) -> None:
    run([kind("gone"), Steady()], tmp_path)
    (note,) = (tmp_path / "gone_monitor.log").read_text().splitlines()
    assert note.startswith("# ") and note.endswith(f"not measured: {reason}")
    info = read_telemetry(tmp_path / "telemetry.jsonl").info("gone")
    assert info is not None and info.reason == reason
    assert values_of(tmp_path, "gone") == [] and values_of(tmp_path, "steady")
    assert f"gone: not measured: {reason}" in caplog.text


def test_a_source_that_hangs_is_left_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "SAMPLES_GRACE_S", 0.1)
    hanging, steady, stop = Hangs(), Steady(), threading.Event()
    monitors = threading.Thread(
        target=run_monitors, args=([(hanging, TICK_S), (steady, TICK_S)], tmp_path, stop)
    )
    monitors.start()
    while steady.ticks < 3 and monitors.is_alive():
        time.sleep(TICK_S)
    stop.set()
    monitors.join(timeout=60)
    hanging.release.set()
    assert not monitors.is_alive()
    assert "hangs: did not answer" in caplog.text
    assert reasons_of(tmp_path, "hangs") == [frame.NO_ANSWER]
    assert len(values_of(tmp_path, "steady")) >= 3


def test_the_first_sample_is_taken_at_once_and_the_last_at_the_order_to_stop(tmp_path: Path) -> None:
    source, stop = Steady(), threading.Event()
    monitors = threading.Thread(target=run_monitors, args=([(source, 1000.0)], tmp_path, stop))
    monitors.start()
    while source.ticks < 1 and monitors.is_alive():
        time.sleep(TICK_S)
    stop.set()
    monitors.join(timeout=60)
    assert not monitors.is_alive() and source.closed
    assert values_of(tmp_path, "steady") == [0.5, 0.5]
    assert len(read_telemetry(tmp_path / "telemetry.jsonl").samples) == 2


class InMemory(Steady):
    never_waits = True

    def sample(self, time_ms: int) -> Sequence[Sample]:
        self.thread = threading.current_thread()
        return super().sample(time_ms)


class EndsEarly(InMemory):
    def sample(self, time_ms: int) -> Sequence[Sample]:
        if self.ticks == 1:
            raise SourceUnavailableError("it has no group of its own")
        return super().sample(time_ms)


def test_sources_that_never_wait_share_a_thread_and_nothing_else(tmp_path: Path) -> None:
    first, ends, last = InMemory("first"), EndsEarly("ends"), InMemory("last")
    broken, other = FailsInMemory("broken"), Steady("other")
    run([first, ends, broken, last, other], tmp_path, ticks=4)
    assert first.thread is last.thread is ends.thread
    assert "other" not in first.thread.name and first.thread.name.startswith("first, ends, broken, last")
    assert len(values_of(tmp_path, "first")) == len(values_of(tmp_path, "last")) >= 2
    assert len(values_of(tmp_path, "ends")) == 1
    assert reasons_of(tmp_path, "ends")[-1] == "it has no group of its own"
    assert first.closed and ends.closed and last.closed


class FailsInMemory(InMemory):
    def sample(self, time_ms: int) -> Sequence[Sample]:
        raise RuntimeError("the counter is no number")


def test_a_full_disk_ends_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: HandClock
) -> None:
    full = Path("/dev/full").open("a")  # noqa: SIM115 - the sampler closes it
    monkeypatch.setattr(frame, "open_log", lambda path: full)
    source = Steady()
    counts = counts_of(source, tmp_path, clock, ticks=4)
    assert (counts.failed, counts.missed, source.closed) == (4, 0, True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    simulated = HandClock(100.0)
    monkeypatch.setattr(frame, "time", simulated)
    monkeypatch.setattr(schedule, "time", simulated)
    return simulated


class StampsItself(Steady):
    """It is read half a second after its tick, and the wall clock may be set meanwhile."""

    def __init__(self, clock: HandClock, set_by_ms: int) -> None:
        super().__init__()
        self.clock, self.set_by_ms = clock, set_by_ms

    def sample(self, time_ms: int) -> Sequence[Sample]:
        self.clock.now += 0.5
        read_ms = time_ms + 500 + self.set_by_ms
        self.clock.now += 0.25
        return [Sample(read_ms, self.name, utilisation=0.5)]


@pytest.mark.parametrize(
    ("set_by_ms", "monotonic_ms"), [(0, 100_500), (-3_600_000, 100_000), (9_000, 100_750)]
)
def test_a_source_that_stamps_its_reading_itself_has_both_clocks_of_that_moment(
    tmp_path: Path, clock: HandClock, set_by_ms: int, monotonic_ms: int
) -> None:
    telemetry = TelemetryFile(tmp_path / TELEMETRY_FILE)
    source = StampsItself(clock, set_by_ms)
    source.log_entry = lambda time_ms, samples: f"{time_ms}\n"  # type: ignore[method-assign]
    Sampler(source, tmp_path, telemetry, interval_s=1.0).tick(0.0)
    read_ms = 100_500 + set_by_ms
    record = {"time_ms": read_ms, "monotonic_ms": monotonic_ms}
    tick = json.loads((tmp_path / TELEMETRY_FILE).read_text().splitlines()[0])
    assert {name: tick[name] for name in record} == record
    assert (tmp_path / "steady_monitor.log").read_text() == f"{read_ms}\n"


class Slow(Steady):
    """A source that takes `durations` seconds, one after the other."""

    def __init__(self, clock: HandClock, durations: Sequence[float]) -> None:
        super().__init__("slow")
        self.clock, self.durations = clock, list(durations)
        self.started: list[float] = []

    def sample(self, time_ms: int) -> Sequence[Sample]:
        self.started.append(self.clock.now - 100)
        self.clock.now += self.durations.pop(0)
        return []


def counts_of(source: Steady, folder: Path, clock: HandClock, ticks: int) -> frame.Counts:
    sampler = Sampler(source, folder, TelemetryFile(folder / TELEMETRY_FILE), interval_s=1.0)
    run_together([sampler], SimpleNamespace(wait=clock.wait), ticks)  # type: ignore[arg-type]
    return sampler.counts


def test_ticks_do_not_drift(tmp_path: Path, clock: HandClock) -> None:
    source = Slow(clock, [0.3, 0.9, 0.1, 0.7, 0.0])
    counts = counts_of(source, tmp_path, clock, ticks=5)
    assert source.started == pytest.approx([0, 1, 2, 3, 4])
    assert (counts.sampled, counts.late, counts.missed) == (5, 0, 0)


def test_ticks_that_passed_while_a_source_was_busy_are_counted(tmp_path: Path, clock: HandClock) -> None:
    # The first sample ends at 3.7 s: ticks 1 and 2 are missed, tick 3 begins 0.7 s late.
    source = Slow(clock, [3.7, 0.0, 0.0, 0.0])
    counts = counts_of(source, tmp_path, clock, ticks=6)
    assert source.started == pytest.approx([0, 3.7, 4, 5])
    assert (counts.sampled, counts.late, counts.missed) == (4, 1, 2)


def test_a_source_that_fails_is_asked_again_and_the_failure_noted_once(
    tmp_path: Path, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="utils.monitors")
    counts = counts_of(FailsTwice("flaky"), tmp_path, clock, ticks=4)
    lines = (tmp_path / "flaky_monitor.log").read_text().splitlines()
    assert [line.split("\t")[1] for line in lines if line.startswith("#")] == [
        "sample failed: RuntimeError: the sensor did not answer",
        "samples again",
    ]
    assert (counts.sampled, counts.failed) == (2, 2)
    assert caplog.text.count("flaky: sample failed: RuntimeError: the sensor did not answer") == 1
    assert values_of(tmp_path, "flaky") == [0.5, 0.5]


class FailsAlways(Steady):
    scope = Scope.ACCELERATOR

    def sample(self, time_ms: int) -> Sequence[Sample]:
        raise RuntimeError("the library is of another driver")


class FailsOnce(Steady):
    def sample(self, time_ms: int) -> Sequence[Sample]:
        samples = super().sample(time_ms)
        if self.ticks == 1:
            raise RuntimeError("not yet")
        return samples


def reasons_of(folder: Path, name: str) -> list[str]:
    """What a source's records in telemetry.jsonl say why it has no samples, one after the other."""
    lines = (folder / "telemetry.jsonl").read_text().splitlines()
    records = (record_of(line, name) for line in lines)
    return [each.reason for each in records if isinstance(each, SourceInfo) and each.source == name]


def test_a_source_that_never_answers_has_its_reason_in_the_telemetry(
    tmp_path: Path, clock: HandClock
) -> None:
    for source in (FailsAlways("never"), FailsOnce("late"), Steady()):
        counts_of(source, tmp_path, clock, ticks=3)
    assert reasons_of(tmp_path, "never")[1:] == ["RuntimeError: the library is of another driver"]
    assert reasons_of(tmp_path, "late")[1:] == ["RuntimeError: not yet", ""]
    assert reasons_of(tmp_path, "steady") == [frame.NO_ANSWER, ""]


def test_half_a_line_of_a_killed_monitor_is_cut_off_before_going_on(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text("whole\nha")
    with open_log(path) as log:
        log.write("next\n")
    assert path.read_text() == "whole\nnext\n"


# --- a vendor's own monitor --------------------------------------------------------------------------------

MONITOR = """
from utils.telemetry.records import Sample

class Cards:
    note = "two cards"

    def sample(self, time_ms):
        return [
            Sample(time_ms, "acme", "0", temperature_c=33, power_w=61, memory_used_mib=1234,
                   memory_total_mib=40536, utilisation=0.98, energy_mj=5),
            Sample(time_ms, "acme", "1", error="it fell off the bus"),
        ]

    def close(self):
        print("closed")

def open_devices():
    return Cards()
"""


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    folder = tmp_path / "vendors" / "acme"
    folder.mkdir(parents=True)
    (folder / "acme_monitor.py").write_text(MONITOR)
    return folder


def test_a_vendors_cards_stand_in_the_documented_log(
    acme: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    run_monitors([(Accelerators(acme), TICK_S)], tmp_path, threading.Event(), ticks=1)
    lines = (tmp_path / "acme_monitor.log").read_text().splitlines()
    assert lines[1:4] == ["33C 61W 1234MiB 40536MiB 98%", "N/A N/A N/A N/A N/A", ""]
    assert "device 1: it fell off the bus" in lines[4] and lines[4].startswith("#")
    telemetry = read_telemetry(tmp_path / "telemetry.jsonl")
    assert [sample.energy_mj for sample in telemetry.samples] == [5, None]
    assert telemetry.with_scope(Scope.ACCELERATOR) == ["acme"]
    assert "acme: sample failed: device 1: it fell off the bus" in caplog.text
    assert capsys.readouterr().out == "closed\n"


@pytest.mark.parametrize(
    "wrong",
    [
        *("power_w=-5", "power_w='61 W'", "power_w=True", "power_w=float('nan')", "energy_mj=-1"),
        *("power_w=0", "power_w=65535.0", "power_instant_w=32767"),
    ],
)
def test_a_reading_that_is_none_costs_nothing_but_itself(wrong: str, acme: Path, tmp_path: Path) -> None:
    name = wrong.partition("=")[0]
    text = (
        MONITOR.replace("power_w=61, ", "").replace(", energy_mj=5", "").replace("temp", f"{wrong}, temp", 1)
    )
    (acme / "acme_monitor.py").write_text(text)
    run_monitors([(Accelerators(acme), TICK_S)], tmp_path, threading.Event(), ticks=1)
    first = read_telemetry(tmp_path / "telemetry.jsonl").samples[0]
    assert getattr(first, name) is None
    assert f"{name} = " in first.error and "is no reading" in first.error
    assert first.memory_used_mib == 1234
    assert f"device 0: {name} = " in (tmp_path / "acme_monitor.log").read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "import no_such_library\n\ndef open_devices(): ...",
            "ModuleNotFoundError: No module named 'no_such_library'",
        ),
        ("def open_devices():\n    raise OSError('no driver')", "OSError: no driver"),
        ("open_device = None", r"has no open_devices\(\)"),
        ("raise SystemExit('an existing monitor, which is a program')", r"has no open_devices\(\)"),
        ("def open_devices(:", "SyntaxError"),
    ],
)
def test_a_vendors_monitor_that_does_not_start_leaves_the_others_running(
    acme: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, reason: str
) -> None:
    (acme / "acme_monitor.py").write_text(text)
    run_monitors([(Accelerators(acme), TICK_S), (Steady(), TICK_S)], tmp_path, threading.Event(), ticks=2)
    info = read_telemetry(tmp_path / "telemetry.jsonl").info("acme")
    assert info is not None
    with pytest.raises(SourceUnavailableError, match=rf"acme_monitor\.py: {reason}"):
        raise SourceUnavailableError(info.reason)
    assert "acme: not measured" in caplog.text
    assert values_of(tmp_path, "steady")
