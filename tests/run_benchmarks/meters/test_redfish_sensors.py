"""Which of a chassis's Redfish sensors is the whole machine's, of a simulated BMC: never one of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.run_benchmarks.meters.simulators import Resources, chassis, link, reading
from utils.errors import FlagPerfError


def sensors(*names: str, **page: Any) -> Resources:
    """Of a chassis: the first has 600 W, each further one 10 W more."""
    place = "Chassis/1/Sensors"
    return (
        chassis(Sensors=link(place))
        | {place: {"Members": [link(f"{place}/{name}") for name in names], **page}}
        | {f"{place}/{name}": {"Reading": 600 + 10 * number} for number, name in enumerate(names)}
    )


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("node_power_1", "node_power_2", "Total_Power"), "Total_Power"),
        (("power_total_power", "node1_total_power"), "power_total_power"),
        (("Chassis_0_System_Power_0",), "Chassis_0_System_Power_0"),
        (("system_input_power_1",), "system_input_power_1"),
    ],
)
def test_the_sensor_of_the_machine_is_chosen(names: tuple[str, ...], chosen: str, tmp_path: Path) -> None:
    with reading(tmp_path, sensors(*names)) as (source, _):
        assert source.read() == 600 + 10 * names.index(chosen)
        assert f"sensor {chosen} of chassis 1" in source.note


@pytest.mark.parametrize(
    "names",
    [
        ("system_input_power_1", "system_input_power_2"),
        ("node_power_1", "node_power_2"),
        ("system_input_power", "system_input_power_2"),
        ("node1_total_power", "node2_total_power"),
        ("system_input_power_2",),
        ("a/total_power", "b/total_power"),
    ],
)
def test_of_several_sensors_that_may_be_parts_none_is_chosen(names: tuple[str, ...], tmp_path: Path) -> None:
    with reading(tmp_path, sensors(*names)) as (source, _):
        with pytest.raises(
            FlagPerfError, match="sensors, of which none is clearly of the whole machine"
        ) as error:
            source.read()
        assert "IPMI" in error.value.remedy


def test_a_total_of_a_list_that_is_not_whole_may_be_one_of_several(tmp_path: Path) -> None:
    resources = sensors("system_input_power_1", **{"Members@odata.count": 2})
    with (
        reading(tmp_path, resources) as (source, _),
        pytest.raises(FlagPerfError, match="whole machine: chassis 1: sensors: it lists 1 of 2"),
    ):
        source.read()
