"""Lists of a simulated Redfish service that are long, in pages or not whole: a part of one is not the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.meters import open_meter
from run_benchmarks.meters.redfish import MOST_CHASSIS
from run_benchmarks.meters.redfish_lists import MOST_PAGES
from tests.run_benchmarks.meters.simulators import Resources, chassis, link, power, reading
from utils.errors import FlagPerfError

BOARD, BOX = "IO_Board_0", "Box"


def board_and_box(others: int = 0, **page: Any) -> Resources:
    """A board with 45 W; behind it and some chassis without a power the box, with 5200 W."""
    names = [BOARD, *(f"IRoT_{number}" for number in range(others)), BOX]
    return {
        "": {"Chassis": link("Chassis")},
        "Chassis": {"Members": [link(f"Chassis/{name}") for name in names], **page},
        **{f"Chassis/{name}": {"Id": name} for name in names},
        f"Chassis/{BOARD}": {"EnvironmentMetrics": link(f"Chassis/{BOARD}/EM")},
        f"Chassis/{BOARD}/EM": {"PowerWatts": {"Reading": 45}},
        f"Chassis/{BOX}": {
            "ChassisType": "RackMount",
            "Links": {"ComputerSystems": [link("Systems/1")]},
            "Power": link(f"Chassis/{BOX}/Power"),
        },
        f"Chassis/{BOX}/Power": power(5200),
    }


# ---- many


def test_the_machine_is_found_behind_many_others(tmp_path: Path) -> None:
    with reading(tmp_path, board_and_box(others=70)) as (source, _):
        assert source.read() == 5200
        assert source.note.endswith(f"of chassis {BOX}")


def test_of_more_chassis_than_are_looked_at_none_is_chosen_until_one_is_named(tmp_path: Path) -> None:
    with reading(tmp_path, board_and_box(others=MOST_CHASSIS)) as (source, _):
        with pytest.raises(FlagPerfError, match=f"it has {MOST_CHASSIS + 2}, of which at most") as error:
            source.read()
        assert '"chassis"' in error.value.remedy and "IPMI" in error.value.remedy
        assert open_meter(replace(source.meter, chassis=BOX)).read() == 5200


# ---- in pages


def in_pages(next_page: Any, count: int = 2, key: str = "Members@odata.nextLink") -> Resources:
    """The first page of the chassis, which has the board alone."""
    first = {"Members": [link(f"Chassis/{BOARD}")], "Members@odata.count": count, key: next_page}
    return board_and_box() | {"Chassis": first}


LAST_PAGE = {"Members": [link(f"Chassis/{BOX}")], "Members@odata.count": 2}


@pytest.mark.parametrize("key", ["Members@odata.nextLink", "@odata.nextLink"])
@pytest.mark.parametrize("place", ["Chassis/Page2", "Chassis/?$skip=1&$top=1"])
def test_the_machine_is_found_on_the_next_page(key: str, place: str, tmp_path: Path) -> None:
    resources = in_pages(f"/redfish/v1/{place}", key=key) | {place: LAST_PAGE}
    with reading(tmp_path, resources) as (source, _):
        assert source.read() == 5200
        assert source.note.endswith(f"of chassis {BOX}")


NOT_WHOLE = [
    (in_pages("https://192.0.2.1/redfish/v1/Chassis?$skip=1"), "goes on elsewhere: not followed"),
    (in_pages("//192.0.2.1/redfish/v1/Chassis"), "goes on elsewhere: not followed"),
    (in_pages("/redfish/v1/Chassis?x\r\nX: y"), "goes on elsewhere: not followed"),
    (in_pages({"@odata.id": "/redfish/v1/Chassis/Page2"}), "goes on elsewhere: not followed"),
    (in_pages("/redfish/v1/Chassis/None"), r"has no /redfish/v1/Chassis/None \(404\)"),
    (in_pages("/redfish/v1/Chassis"), "its list does not end"),
    (in_pages(None), "it lists 1 of 2"),
    (in_pages("/redfish/v1/Chassis/Page2", 3) | {"Chassis/Page2": LAST_PAGE}, "it lists 2 of 3"),
]


@pytest.mark.parametrize(("resources", "why"), NOT_WHOLE)
def test_of_a_list_that_is_not_whole_none_is_chosen(resources: Resources, why: str, tmp_path: Path) -> None:
    with reading(tmp_path, resources) as (source, _):
        with pytest.raises(
            FlagPerfError, match=f"does not say of all its chassis what they are: .*{why}"
        ) as error:
            source.read()
        assert '"chassis"' in error.value.remedy and "IPMI" in error.value.remedy
        assert open_meter(replace(source.meter, chassis=BOARD)).read() == 45, "whoever names one is believed"


def test_pages_without_end_are_left(tmp_path: Path) -> None:
    pages = {
        f"Chassis/Page{number}": {
            "Members": [],
            "Members@odata.nextLink": f"/redfish/v1/Chassis/Page{number + 1}",
        }
        for number in range(MOST_PAGES + 2)
    }
    with (
        reading(tmp_path, in_pages("/redfish/v1/Chassis/Page0") | pages) as (source, _),
        pytest.raises(FlagPerfError, match="its list does not end"),
    ):
        source.read()


def test_a_list_with_more_than_its_count_is_whole(tmp_path: Path) -> None:
    with reading(tmp_path, board_and_box(**{"Members@odata.count": 1})) as (source, _):
        assert source.read() == 5200


# ---- of power supplies and controls


def supplies(*listed: int, **page: Any) -> Resources:
    """Two power supplies of PowerSubsystem with 1200 and 1300 W, of which these are on the first page."""
    place = "Chassis/1/PS"
    return (
        chassis(PowerSubsystem=link(place))
        | {place: {"PowerSupplies": link(f"{place}/All")}}
        | {f"{place}/All": {"Members": [link(f"{place}/{number}") for number in listed], **page}}
        | {f"{place}/{number}": {"Metrics": link(f"{place}/{number}/M")} for number in (0, 1)}
        | {f"{place}/{number}/M": {"InputPowerWatts": {"Reading": 1200 + 100 * number}} for number in (0, 1)}
    )


def test_power_supplies_of_the_next_page_are_added(tmp_path: Path) -> None:
    place = "Chassis/1/PS/All?$skip=1"
    resources = supplies(0, **{"Members@odata.nextLink": f"/redfish/v1/{place}"})
    with reading(tmp_path, resources | {place: {"Members": [link("Chassis/1/PS/1")]}}) as (source, _):
        assert source.read() == 2500
        assert "input of 2 power supplies" in source.note


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ({"Members@odata.nextLink": "/redfish/v1/Chassis/1/PS/None"}, "None"),
        ({"Members@odata.count": 2}, "it lists 1 of 2"),
    ],
)
def test_some_of_the_power_supplies_are_no_power(page: Mapping[str, Any], why: str, tmp_path: Path) -> None:
    with (
        reading(tmp_path, supplies(0, **page)) as (source, _),
        pytest.raises(FlagPerfError, match=f"whole machine: chassis 1: power supplies: .*{why}") as error,
    ):
        source.read()
    assert "IPMI" in error.value.remedy


NEXT = "/redfish/v1/Chassis/1/Power?$skip=1"


@pytest.mark.parametrize("more", [{"@odata.count": 2}, {"@odata.nextLink": NEXT}])
@pytest.mark.parametrize(
    ("key", "member", "why"),
    [
        ("PowerSupplies", {"PowerInputWatts": 410}, "not all of them tell theirs"),
        ("PowerControl", {"PowerConsumedWatts": 410, "Name": "System"}, "not all are listed"),
    ],
)
def test_some_of_the_members_of_power_are_no_power(
    key: str, member: Mapping[str, Any], why: str, more: Mapping[str, Any], tmp_path: Path
) -> None:
    resources = chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": {key: [member]}}
    with reading(tmp_path, resources) as (source, bmc):
        assert source.read() == 410
        partly = {key: [member], **{f"{key}{name}": value for name, value in more.items()}}
        bmc.set_resource("Chassis/1/Power", partly)
        with pytest.raises(FlagPerfError):
            source.read()
        with pytest.raises(FlagPerfError, match=why):
            open_meter(source.meter).read()
