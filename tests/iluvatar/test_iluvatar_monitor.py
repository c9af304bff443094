"""Iluvatar's monitor against changed recordings of ixsmi."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "iluvatar"
OF_TWO = "ixsmi_4.3.8_BI-V150x2_fan_NA"


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "iluvatar_monitor.py", "iluvatar_monitor_under_test")


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
