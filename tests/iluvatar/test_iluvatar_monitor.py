"""Iluvatar's monitor against the tables that releases of ixsmi printed; the values were read in them by eye."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording, recordings_of
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "iluvatar"
OF_TWO = "ixsmi_4.3.8_BI-V150x2_fan_NA"


@dataclass(frozen=True)
class Seen:
    """A recorded table: how many devices, and watts, degrees and MiB in use of the first and of the last."""

    name: str
    devices: int
    first: tuple[int | None, int, int]
    last: tuple[int | None, int, int]


TABLES = (
    Seen("ixsmi_3.0.1_renumbered", 7, (54, 31, 513), (55, 30, 513)),
    Seen("ixsmi_3.1.1_BI-V100", 1, (40, 30, 257), (40, 30, 257)),
    Seen("ixsmi_4.0.0_BI-V100", 1, (56, 35, 9), (56, 35, 9)),
    Seen("ixsmi_4.0.0_BI-V150S_no_power", 1, (None, 33, 114), (None, 33, 114)),
    Seen("ixsmi_4.1.0_BI-V150x16", 16, (None, 32, 116), (94, 30, 116)),
    Seen(OF_TWO, 2, (None, 40, 64), (104, 39, 64)),
    Seen("ixsmi_4.4.0_MR-V100", 1, (37, 35, 68), (37, 35, 68)),
    Seen("ixsmi_4.4.0_MR-V100_DUO_wider", 2, (None, 37, 68), (40, 36, 68)),
)


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "iluvatar_monitor.py", "iluvatar_monitor_under_test")


def test_no_recording_is_left_out() -> None:
    others = {"ixsmi_3.0.1_fallen_off", "ixsmi_4.4.0_query"}
    assert recordings_of("iluvatar") == {seen.name for seen in TABLES} | others


@pytest.mark.parametrize("seen", TABLES, ids=lambda seen: seen.name)
def test_every_release_is_read(monitor: ModuleType, seen: Seen) -> None:
    samples = monitor.parse(recording("iluvatar", seen.name))
    assert list(samples) == [str(number) for number in range(seen.devices)]
    for sample, values in ((samples["0"], seen.first), (samples[str(seen.devices - 1)], seen.last)):
        assert (sample.power_w, sample.temperature_c, sample.memory_used_mib) == values
        assert (sample.utilisation, sample.memory_total_mib, sample.error) == (0, 32768, "")


def test_the_power_of_a_board_is_counted_once(monitor: ModuleType) -> None:
    printed = recording("iluvatar", "ixsmi_4.1.0_BI-V150x16")
    samples = monitor.parse(printed).values()
    assert [sample.power_w for sample in samples if sample.power_w] == [93, 94, 98, 95, 95, 94, 93, 94]
    assert [sample.power_on for sample in samples] == [None if n % 2 else str(n + 1) for n in range(16)]
    assert not any(sample.error for sample in samples)
    less = monitor.parse(printed.replace("98W / 350W ", "N/A / N/A  "))
    assert (less["4"].power_on, less["5"].power_on, less["6"].power_on) == (None, None, "7")
    single = monitor.parse(printed.replace("BI-V150 ", "BI-V150S"))
    assert not any(sample.power_on for sample in single.values())


def test_a_device_that_fell_off_says_so_and_the_others_keep_their_values(monitor: ModuleType) -> None:
    heading = recording("iluvatar", "ixsmi_3.0.1_renumbered").partition("| 0    Iluvatar")[0]
    samples = monitor.parse(heading + recording("iluvatar", "ixsmi_3.0.1_fallen_off"))
    assert {number: sample.power_w for number, sample in samples.items()} == {
        "4": 55,
        "5": None,
        "6": 57,
        "7": 55,
    }
    lost = samples["5"]
    assert lost.error == "ixsmi prints what no device has: 0%   0C    P0    65535W / 250"
    assert (lost.utilisation, lost.memory_used_mib, lost.temperature_c) == (None, None, None)


def test_utilisation_is_a_part_of_one(monitor: ModuleType) -> None:
    busy = recording("iluvatar", OF_TWO).replace("| 0%        Default", "| 97%       Default")
    assert [sample.utilisation for sample in monitor.parse(busy).values()] == [0.97, 0.97]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("39C  ", "N/A  ", "temperature_c"),
        ("104W / 350W", "N/A / N/A  ", "power_w"),
        ("64MiB / 32768MiB", "N/A / N/A       ", "memory_used_mib"),
        ("| 0%  ", "| N/A ", "utilisation"),
    ],
)
def test_a_sensor_that_says_nothing_is_not_measured(
    monitor: ModuleType, old: str, new: str, name: str
) -> None:
    printed = recording("iluvatar", OF_TWO)
    assert old in printed
    sample = monitor.parse(printed.replace(old, new))["1"]
    assert getattr(sample, name) is None and not sample.error
    values = (sample.power_w, sample.temperature_c, sample.memory_used_mib, sample.utilisation)
    assert values.count(None) == 1


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("Failed to initialize IXML\n", "no table headed 'Bus-Id'"),
        (recording("iluvatar", OF_TWO).replace("Pwr:Usage/Cap", "Watts        "), "no column is headed 'Pwr"),
        (recording("iluvatar", OF_TWO).replace("| 1    Ilu", "|      Ilu"), "no number of a GPU"),
    ],
)
def test_what_is_no_such_table_is_refused(monitor: ModuleType, wrong: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        monitor.parse(wrong)


def test_the_inventory_has_firmware_driver_and_limits_and_no_serial_number(monitor: ModuleType) -> None:
    assert monitor.describe(recording("iluvatar", "ixsmi_4.4.0_query")) == [
        {
            "name": "Iluvatar MR-V100",
            "vbios": "2.0.17",
            "pci_bus": "00000000:15:00.0",
            "two_device_board": False,
            "memory_mib": 32768,
            "power_limit_w": 150,
            "board_power_limit_w": None,
            "driver": "4.4.0",
        }
    ]
