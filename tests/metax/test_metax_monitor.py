"""MetaX's monitor against changed recordings of mx-smi."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "metax"
TEXT = "mx-smi_2.3.1_C500"


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "metax_monitor.py", "metax_monitor_under_test")


def test_utilisation_is_a_part_of_one(monitor: ModuleType) -> None:
    busy = recording("metax", TEXT).replace("| 0%  ", "| 97% ")
    assert monitor.parse(busy)["0"].utilisation == 0.97


def test_columns_may_move(monitor: ModuleType) -> None:
    lines = recording("metax", TEXT).splitlines()
    moved = []
    for line in lines:
        cells = line.strip().strip("|").split("|")
        moved.append(f"|{cells[2]}|{cells[1]}|{cells[0]}|{cells[3]}|" if len(cells) == 4 else line)
    assert monitor.parse("\n".join(moved)) == monitor.parse("\n".join(lines))


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("37W / 350W", "power_w"),
        ("32C ", "temperature_c"),
        ("826/65536 MiB", "memory_total_mib"),
        ("0% ", "utilisation"),
    ],
)
def test_a_sensor_that_says_nothing_is_not_measured(monitor: ModuleType, cell: str, name: str) -> None:
    sample = monitor.parse(recording("metax", TEXT).replace(cell, "NA".ljust(len(cell))))["0"]
    assert getattr(sample, name) is None and not sample.error
    assert sum(value is None for value in (sample.power_w, sample.temperature_c, sample.utilisation)) <= 1


def test_a_gpu_that_is_not_available_says_so_and_has_no_values(monitor: ModuleType) -> None:
    lost = recording("metax", TEXT).replace("| Available    ", "| Not Available")
    sample = monitor.parse(lost)["0"]
    assert (sample.error, sample.power_w, sample.memory_used_mib) == (
        "mx-smi calls it Not Available",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("mx-smi  version: 2.3.1\n\nAttached GPUs : 0\n", "no table headed 'Bus-id'"),
        (recording("metax", TEXT).replace("Temp", "Heat"), "no column is headed 'Temp'"),
        (recording("metax", TEXT).partition("| 37W")[0], "ends within a device"),
        (recording("metax", TEXT).replace("| 0           Off", "|             Off"), "no number of a GPU"),
    ],
)
def test_what_is_no_such_table_is_refused(monitor: ModuleType, wrong: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        monitor.parse(wrong)
