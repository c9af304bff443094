"""MetaX's monitor against the tables that releases of mx-smi printed; the values were read in them by eye."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording, recordings_of
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "metax"
TEXT = "mx-smi_2.3.1_C500"


@dataclass(frozen=True)
class Seen:
    """A recorded table: how many GPUs, and watts, degrees and MiB in use of the first and of the last."""

    name: str
    gpus: int
    first: tuple[int, int, int]
    last: tuple[int, int, int]


TABLES = (
    Seen("mx-smi_2.1.6_C500x4_power_without_cap", 4, (71, 51, 60982), (71, 50, 60534)),
    Seen("mx-smi_2.1.12_C550_cap_NA", 1, (97, 34, 858), (97, 34, 858)),
    Seen("mx-smi_2.2.4_C550x8", 8, (53, 29, 858), (56, 31, 858)),
    Seen("mx-smi_2.2.8_N260x2", 2, (29, 37, 666), (33, 37, 666)),
    Seen("mx-smi_2.2.9_C500_util_twice_in_the_heading", 1, (50, 35, 0), (50, 35, 0)),
    Seen("mx-smi_2.2.9_C500x8", 8, (57, 35, 826), (56, 36, 826)),
    Seen("mx-smi_2.2.12_C500_slice", 1, (61, 38, 15155), (61, 38, 15155)),
    Seen("mx-smi_2.3.1_C500", 1, (37, 32, 826), (37, 32, 826)),
    Seen("ht-smi_2.2.9_Mars_X201", 3, (38, 34, 858), (36, 33, 858)),
)


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "metax_monitor.py", "metax_monitor_under_test")


def test_no_recording_is_left_out() -> None:
    others = {"mx-smi_2.2.9_list", "mx-smi_2.2.12_list_not_available", "mx-smi_2.2.12_summary"}
    assert recordings_of("metax") == {seen.name for seen in TABLES} | others


@pytest.mark.parametrize("seen", TABLES, ids=lambda seen: seen.name)
def test_every_release_is_read(monitor: ModuleType, seen: Seen) -> None:
    samples = monitor.parse(recording("metax", seen.name))
    assert list(samples) == [str(number) for number in range(seen.gpus)]
    for sample, values in ((samples["0"], seen.first), (samples[str(seen.gpus - 1)], seen.last)):
        assert (sample.power_w, sample.temperature_c, sample.memory_used_mib) == values
        assert (sample.utilisation, sample.memory_total_mib, sample.error) == (0, 65536, "")


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


def test_the_inventory_has_firmware_driver_and_limit_and_no_serial_number(monitor: ModuleType) -> None:
    assert monitor.describe(recording("metax", "mx-smi_2.2.12_summary")) == [
        {
            "name": "MXC500",
            "pci_bus": "0000:37:00.0",
            "vbios": "1.33.5.0",
            "driver": "3.8.30",
            "maca": "3.5.3.20",
            "memory_mib": 65536,
            "power_limit_w": 350,
        }
    ]
