"""Telemetry: its lines, and reading them back after a crash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from run_benchmarks.results import telemetry_file
from run_benchmarks.results.telemetry_file import read_power, read_telemetry
from utils.errors import FlagPerfError
from utils.telemetry import series
from utils.telemetry.lines import device_log, note_line, record_line, value_log
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry, Tick, ticks_of
from utils.telemetry.series import SeriesTable

GPU = SourceInfo(0, "gpu", Scope.ACCELERATOR, 1.0, "a card")
CARD = Sample(
    5_000,
    "gpu",
    "0",
    utilisation=0.98,
    power_w=61.4,
    energy_mj=123_456_789,
    memory_used_mib=1234,
    memory_total_mib=40536,
    temperature_c=33,
)


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    lost = Sample(6_000, "gpu", "1", power_on="0", error="GPU is lost")
    path.write_text(record_line(GPU) + record_line(CARD) + record_line(lost))
    assert read_telemetry(path) == Telemetry(str(path), (GPU,), (CARD, lost))


def test_zero_is_a_value_and_is_written() -> None:
    assert '"utilisation":[0.0]' in record_line(Sample(0, "cpu", utilisation=0.0))
    assert "utilisation" not in record_line(Sample(0, "cpu"))


@pytest.mark.parametrize("cut", ['{"kind": "sample", "time_ms": 1', '{"kind"', "\0\0\0\0", '{"ki\0\0'])
def test_a_cut_last_line_is_left_out(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(CARD) + cut)
    assert read_telemetry(path).samples == (CARD,)


def test_the_readings_of_a_moment_stand_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    lost = Sample(5_000, "gpu", "1", power_on="0", error="GPU is lost")
    slow = Sample(5_000, "gpu", "2", power_w=60.0, throttle="power", clock_mhz=1200)
    later = Sample(6_000, "gpu", "0", power_w=62.0, throttle="")
    ticks = list(ticks_of([CARD, lost, slow, later], monotonic_ms=77))
    assert [(tick.time_ms, tick.devices) for tick in ticks] == [(5_000, ["0", "1", "2"]), (6_000, ["0"])]
    path.write_text("".join(map(record_line, ticks)))
    assert path.read_text().count("\n") == 2 and '"monotonic_ms":77' in path.read_text()
    # where one of the devices tells why it is held back, the others tell nothing of it
    assert read_telemetry(path).samples == (CARD, lost, slow, later)
    columns = read_power(path).series("gpu")
    assert list(columns["0"].times_ms) == [5_000, 6_000] and list(columns["0"].column("power_w")) == [
        61.4,
        62.0,
    ]
    assert (columns["1"].power_on, columns["1"].error) == ("0", "GPU is lost")


def test_lines_of_earlier_versions_are_read_as_they_were_meant(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(
        '{"kind": "sample", "time_ms": 5000, "source": "gpu", "device": "0", "utilisation": 0.98, "power_w": 61.4, '
        '"energy_mj": 123456789, "memory_used_mib": 1234, "memory_total_mib": 40536, "temperature_c": 33}\n'
        '{"kind": "sample", "time_ms": 6000, "source": "gpu", "device": "1", "power_on": "0", "error": "GPU is lost"}\n'
    )
    assert read_telemetry(path).samples == (
        CARD,
        Sample(6_000, "gpu", "1", power_on="0", error="GPU is lost"),
    )


def test_a_quantity_of_a_later_version_costs_none_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(CARD).replace('"readings":{', '"readings":{"humidity":[0.4],'))
    telemetry = read_telemetry(path)
    assert (telemetry.samples, telemetry.wrong) == ((CARD,), 0)


def test_devices_that_come_and_go_have_a_series_each(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    watts = {1: {"0": 1.0, "1": 2.0}, 2: {"1": 3.0}, 4: {"0": 5.0, "1": 6.0}, 3: {"10": 4.0, "1": 4.5}}
    ticks = [Tick(at, "gpu", list(of), {"power_w": list(of.values())}) for at, of in watts.items()]
    ticks += [Tick(5, "gpu", ["0", "1"], {"energy_mj": [7.0, None]})]
    path.write_text("".join(map(record_line, ticks)))
    of_devices = read_power(path).series("gpu")
    assert list(of_devices) == ["0", "1", "10"]
    assert {name: list(each.points("power_w")) for name, each in of_devices.items()} == {
        "0": [(1, 1.0), (4, 5.0)],
        "1": [(1, 2.0), (2, 3.0), (3, 4.5), (4, 6.0)],
        "10": [(3, 4.0)],
    }
    assert list(of_devices["0"].points("energy_mj")) == [(5, 7.0)] and not of_devices["1"].has_read(
        "energy_mj"
    )
    assert [len(each.column("energy_mj")) for each in of_devices.values()] == [3, 5, 1]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "readings": {}}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": [], "readings": {}}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": ["0"], "readings": {"power_w": [1, 2]}}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": ["0", "1"], "readings": {"power_w": [1]}}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": ["0", "0"], "readings": {"power_w": [1, 2]}}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": ["0"], "readings": {"power_w": ["1"]}}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": ["0"], "readings": {"power_w": [1e999]}}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": ["0"], "readings": {}, "error": ["a", "b"]}',
        '{"kind": "tick", "time_ms": 1, "source": "gpu", "devices": ["0"], "readings": {}, "volts": [12]}',
        "[]",
        "1",
        '{"kind": "sample"}',
        '{"kind": "something"}',
        '{"kind": "sample", "time_ms": 1, "source": "gpu", "volts": 12}',
        '{"kind": "sample", "time_ms": "now", "source": "gpu"}',
        '{"kind": "sample", "time_ms": 1, "source": "gpu", "power_w": NaN}',
        '{"kind": "source", "time_ms": 1, "source": "gpu", "scope": "machine", "interval_s": Infinity}',
        '{"kind": "source", "time_ms": 1, "source": "gpu", "scope": "rack", "interval_s": 1}',
        '{"kind": "source", "time_ms": 1, "source": "gpu", "scope": "machine", "interval_s": null}',
        '{"kind": "sample", "time_ms": null, "source": "gpu"}',
        '{"kind": "sample", "time_ms": -1, "source": "gpu"}',
        '{"kind": "sample", "time_ms": 1' + "0" * 400 + ', "source": "gpu"}',
        '{"kind": "sample", "time_ms": 1, "source": "gpu", "power_w": 1' + "0" * 400 + "}",
        '{"kind": "sample", "time_ms": 1, "source": ["gpu"]}',
        '{"kind": "sample", "time_ms": 1, "source": "gpu", "power_on": 0}',
        '{"kind": "sample", "time_ms": 1, "source": "' + "g" * 5000 + '"}',
        '{"kind": ' + "[" * 200_000,
    ],
)
def test_a_damaged_line_in_the_middle_is_left_out_and_counted(tmp_path: Path, line: str) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(CARD) + line + "\n" + record_line(CARD))
    telemetry = read_telemetry(path)
    assert telemetry.samples == (CARD, CARD)
    doubt = "1 of 3 lines of telemetry are no record and left out: "
    assert telemetry.doubt.startswith(f"{doubt}{path}:2: not a telemetry record: ")


def test_no_more_records_are_held_than_a_node_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry_file, "MOST_SAMPLES", 3)
    monkeypatch.setattr(telemetry_file, "MOST_SOURCES", 1)
    path = tmp_path / "telemetry.jsonl"
    other = SourceInfo(1, "other", Scope.MACHINE, 1.0)
    path.write_text(record_line(GPU) + record_line(other) + 9 * record_line(CARD))
    telemetry = read_telemetry(path)
    assert (telemetry.sources, len(telemetry.samples), telemetry.wrong) == ((GPU,), 3, 2)


def test_lines_that_are_no_record_are_not_read_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four GiB of empty lines took an hour of processor."""
    monkeypatch.setattr(telemetry_file, "MOST_LINES", 5)
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(CARD) + 99 * "\n")
    telemetry = read_telemetry(path)
    assert (len(telemetry.samples), telemetry.lines, telemetry.wrong) == (1, 6, 5)


def test_more_devices_than_a_node_can_have_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    many = [Sample(1, "gpu", str(number)) for number in range(telemetry_file.MOST_DEVICES + 5)]
    path.write_text("".join(map(record_line, [GPU, *many, many[0]])))
    telemetry = read_telemetry(path)
    assert len(telemetry.samples) == telemetry_file.MOST_DEVICES + 1
    assert len(telemetry.devices("gpu")) == telemetry_file.MOST_DEVICES
    assert telemetry.wrong == 5 and "more than 4096 devices" in telemetry.first_wrong


def test_lists_of_devices_that_differ_each_time_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each order of 64 devices is a list of its own: a stranger has more of them than there is memory."""
    monkeypatch.setattr(telemetry_file, "MOST_NAMES", 10)
    path = tmp_path / "telemetry.jsonl"
    orders = (["0", "1", "2"], ["1", "2", "0"], ["2", "0", "1"], ["1", "0", "2"], ["0", "1", "2"])
    ticks = [Tick(at, "gpu", order, {"power_w": [1.0, 2.0, 3.0]}) for at, order in enumerate(orders)]
    path.write_text("".join(map(record_line, ticks)))
    telemetry = read_power(path)
    assert telemetry.wrong == 1 and "too many lists of them" in telemetry.first_wrong
    assert list(telemetry.series("gpu")["0"].times_ms) == [0, 1, 2, 4]


def test_a_table_takes_no_more_than_fits_into_the_memory() -> None:
    """A quantity that comes late makes a column of what was not read, as long as the others."""
    table = SeriesTable(most=20)
    for at in range(8):
        table.take(Tick(at, "gpu", ["0", "1"], {"power_w": [1.0, 2.0]}))
    assert not table.is_full
    table.take(Tick(8, "gpu", ["0", "1"], {"clock_mhz": [1.0, 2.0]}))  # 36 values now
    table.take(Tick(9, "gpu", ["0", "1"], {"power_w": [1.0, 2.0]}))
    assert table.is_full and len(table.by_source()["gpu"]["0"].times_ms) == 9


def test_readings_that_come_once_make_no_column_for_all_moments_without_being_counted() -> None:
    """Ticks of many devices and no readings cost nothing, until another list of the same devices had all quantities."""
    table = SeriesTable(most=100)
    table.take(Tick(0, "gpu", ["1", "0"], {name: [1.0, 2.0] for name in ("power_w", "clock_mhz", "load")}))
    for at in range(1, 99):
        table.take(Tick(at, "gpu", ["0", "1"], {}))
    assert table.is_full
    held = table.by_source()["gpu"]["0"]
    assert sum(map(len, held.columns.values())) <= 100 // 2 + 3


def test_around_a_window_few_readings_count_however_seldom_a_source_says_it_is_read() -> None:
    """A thousand windows, each with all readings around it, took ten seconds a node."""
    table = SeriesTable()
    for at in range(1000):
        table.take(Tick(at, "gpu", ["0"], {"power_w": [1.0], "energy_range_mj": [5.0]}))
    near = table.by_source()["gpu"]["0"].between(500, 502, around_ms=1e9)
    assert list(near.times_ms) == [*range(500 - series.FEW, 503 + series.FEW)]
    assert near.energy_range_mj == 5.0
    assert list(table.by_source()["gpu"]["0"].between(500, 502, around_ms=2).times_ms) == [*range(498, 505)]


def test_a_source_that_says_it_is_read_once_a_day_is_none(tmp_path: Path) -> None:
    """Whatever is missing of it would count as read."""
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(SourceInfo(1, "meter", Scope.MACHINE, 86_400.0)) + record_line(GPU))
    telemetry = read_telemetry(path)
    assert telemetry.sources == (GPU,) and "interval_s" in telemetry.first_wrong


def test_samples_of_long_texts_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(5 * record_line(Sample(1, "gpu", "0", error="no answer " * 399 + "\U0001f600")))
    assert {len(sample.error) for sample in read_telemetry(path).samples} == {227}
    monkeypatch.setattr(telemetry_file, "MOST_TEXT", 500)
    telemetry = read_telemetry(path)
    assert (len(telemetry.samples), telemetry.wrong) == (3, 1)
    assert "or they hold 500 characters: the rest is not read" in telemetry.doubt


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="No such file"):
        read_telemetry(tmp_path / "telemetry.jsonl")


def test_value_logs_have_the_documented_form() -> None:
    stamp = r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d"
    assert re.fullmatch(rf"{stamp}\t0\.250\n", value_log(1_669_051_164_000, 0.25, digits=3))
    assert re.fullmatch(rf"{stamp}\tN/A\n", value_log(1_669_051_165_000, None, digits=3))
    assert re.fullmatch(rf"# {stamp}\ta note\n", note_line(0, "a\nnote"))


def test_a_card_stands_in_the_documented_form() -> None:
    lines = device_log(0, [CARD, Sample(0, "gpu", "1", error="lost")]).split("\n")
    assert lines[1:] == ["33C 61W 1234MiB 40536MiB 98%", "N/A N/A N/A N/A N/A", "", ""]


@pytest.mark.parametrize(
    "lines",
    [
        '{"time_ms": 1, "source": "a", "error": "\\"kind\\": \\"sample\\""}\n',
        '{"kind": "sample", "time_ms": 1, "source": "a"},{"kind": "sample", "time_ms": 1, "source": "a"}\n',
        '{"kind": "sample", "time_ms": 1}\n{"source": "a", "error": "kind", "kind": "sample"}\n',
        '{"kind": "sample",\n"time_ms": 1, "source": "a"}\n',
        '{"kind": "sample", "time_ms": -1, "source": "a"}\n',
    ],
    ids=["no kind", "two in a line", "halves", "broken in two", "no time"],
)
def test_what_is_no_record_by_itself_is_none_among_others(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(CARD) + lines + record_line(CARD))
    telemetry = read_telemetry(path)
    assert telemetry.samples == (CARD, CARD)
    assert telemetry.wrong == lines.count("\n")
    assert telemetry.first_wrong.startswith(f"{path}:2: ")
