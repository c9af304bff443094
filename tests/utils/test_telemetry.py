"""Telemetry: its lines, and reading them back after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from utils.errors import FlagPerfError
from utils.telemetry import (
    Sample,
    Scope,
    SourceInfo,
    Telemetry,
    device_log,
    note_line,
    read_device_log,
    read_telemetry,
    read_value_log,
    record_line,
    value_log,
)

GPU = SourceInfo(0, "gpu", Scope.ACCELERATOR, "a card", interval_s=1.0)
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
    lost = Sample(6_000, "gpu", "1", error="GPU is lost")
    path.write_text(record_line(GPU) + record_line(CARD) + record_line(lost))
    assert read_telemetry(path) == Telemetry(str(path), (GPU,), (CARD, lost))


def test_zero_is_a_value_and_is_written() -> None:
    assert '"utilisation": 0.0' in record_line(Sample(0, "cpu", utilisation=0.0))
    assert "utilisation" not in record_line(Sample(0, "cpu"))


@pytest.mark.parametrize("cut", ['{"kind": "sample", "time_ms": 1', '{"kind"', "\0\0\0\0", '{"ki\0\0'])
def test_a_cut_last_line_is_left_out(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(CARD) + cut)
    assert read_telemetry(path).samples == (CARD,)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "1",
        '{"kind": "sample"}',
        '{"kind": "something"}',
        '{"kind": "sample", "time_ms": 1, "source": "gpu", "volts": 12}',
        '{"kind": "sample", "time_ms": "now", "source": "gpu"}',
        '{"kind": "source", "time_ms": 1, "source": "gpu", "scope": "rack", "interval_s": 1}',
    ],
)
def test_a_damaged_line_in_the_middle_is_an_error_with_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(record_line(CARD) + line + "\n" + record_line(CARD))
    with pytest.raises(FlagPerfError, match=rf"^{path}:2: not a telemetry record"):
        read_telemetry(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="No such file"):
        read_telemetry(tmp_path / "telemetry.jsonl")


def test_value_logs_have_the_documented_form_and_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "cpu_monitor.log"
    text = value_log(1_669_051_164_000, 0.25, digits=3) + note_line(0, "a\nnote")
    text += value_log(1_669_051_165_000, None, digits=3) + "2022-11-21-19:19:26\t0.2"
    path.write_text(text)
    first, second = read_value_log(path)
    assert text.splitlines()[0].endswith("\t0.250") and len(text.splitlines()[0]) == len(
        "2022-11-21-19:19:24\t0.250"
    )
    assert (first.time_ms, first.value) == (1_669_051_164_000, 0.25)
    assert (second.time_ms, second.value) == (1_669_051_165_000, None)


@pytest.mark.parametrize("line", ["yesterday\t0.5", "2022-11-21-19:19:24\thigh", "2022-11-21-19:19:24"])
def test_a_value_log_with_another_line_is_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pwr_monitor.log"
    path.write_text(f"2022-11-21-19:19:23\t412.0\n{line}\n")
    with pytest.raises(FlagPerfError, match=rf"{path}:2: expected"):
        read_value_log(path)


def test_a_card_stands_in_the_documented_form() -> None:
    lines = device_log(0, [CARD, Sample(0, "gpu", "1", error="lost")]).split("\n")
    assert lines[1:] == ["33C 61W 1234MiB 40536MiB 98%", "N/A N/A N/A N/A N/A", "", ""]


def test_a_device_log_is_read_entry_by_entry_and_a_cut_entry_left_out(tmp_path: Path) -> None:
    path = tmp_path / "nvidia_monitor.log"
    # Two entries as FlagPerf's own monitor wrote them, the second cut off by a crash.
    path.write_text(
        "# a note\n2022-11-21-19:19:24\n33C 61W 1234MiB 40536MiB 98%\n34C 62W 5MiB 40536MiB 0%\n\n"
        "2022-11-21-19:19:25\n33C 61W 1234MiB 40536MiB 98%\n34C 62W 5Mi"
    )
    first, second = read_device_log(path)
    assert (first.card, first.temperature_c, first.power_w, first.utilisation) == (0, 33, 61, 0.98)
    assert (second.card, second.memory_used_mib, second.memory_total_mib) == (1, 5, 40536)
    assert first.time_ms == second.time_ms


@pytest.mark.parametrize(
    "line", ["33C 61W 1234MiB 98%", "33C 61W 1234MiB 40536MiB 98", "33F 61W 1MiB 4MiB 9%"]
)
def test_a_card_in_another_form_is_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "nvidia_monitor.log"
    path.write_text(f"2022-11-21-19:19:24\n{line}\n\n")
    with pytest.raises(FlagPerfError, match=rf"{path}:2"):
        read_device_log(path)
