"""Which of a Redfish service's readings is the whole machine's, of a simulated BMC: never that of a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.meters import open_meter
from tests.run_benchmarks.meters.simulators import Resources, chassis, link, power, reading
from utils.errors import FlagPerfError

# ---- which member of PowerControl


def controls(*members: tuple[str, str, float | None]) -> Resources:
    """Of a chassis: names, PhysicalContexts and watts."""
    written = [
        {"Name": name or None, "PhysicalContext": context or None, "PowerConsumedWatts": watts}
        for name, context, watts in members
    ]
    return chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": {"PowerControl": written}}


SERVER = ("Server Power Control", "Chassis", 900.0)
CPUS, MEMORY = ("CPU Sub-system Power", "CPU", 180.0), ("Memory Sub-system Power", "Memory", 60.0)
CLEAR = [
    (
        (("CPU Power", "", 180.0), ("System Power Control", "", 900.0)),
        "PowerControl 1 (System Power Control)",
    ),
    ((SERVER, CPUS, MEMORY), "PowerControl 0 (Server Power Control)"),
    ((CPUS, ("", "Chassis", 900.0)), "PowerControl 1 (Chassis)"),
    (
        (("", "PowerSupply", 900.0),),
        "PowerControl 0 (PowerSupply, its only member, which does not say of what it is)",
    ),
    ((("PSU 1", "", 450.0), ("PSU 2", "", 450.0), ("Total", "", 900.0)), "PowerControl 2 (Total)"),
]


@pytest.mark.parametrize(("members", "what"), CLEAR)
def test_the_control_of_the_machine_is_chosen_wherever_it_stands(
    members: Any, what: str, tmp_path: Path
) -> None:
    with reading(tmp_path, controls(*members)) as (source, _):
        assert source.read() == 900
        assert f": {what} of chassis 1" in source.note


UNCLEAR = [
    (CPUS,),
    (("", "GPUSubsystem", 3000.0),),
    (("Power Control 1", "", 180.0), ("Power Control 2", "", 900.0)),
    (CPUS, ("Power Control 2", "", 900.0)),
    (("Node 1 Power", "", 400.0), ("Node 2 Power", "", 500.0)),
]


@pytest.mark.parametrize("members", UNCLEAR)
def test_where_no_control_is_clearly_of_the_machine_they_are_named(members: Any, tmp_path: Path) -> None:
    with reading(tmp_path, controls(*members)) as (source, _):
        with pytest.raises(FlagPerfError, match="none is clearly the machine") as error:
            source.read()
        assert ", ".join(name or "no name" for name, _, _ in members) in error.value.message
        assert '"sensors"' in error.value.remedy


def test_a_part_does_not_take_the_place_of_the_machine_that_is_silent_at_first(tmp_path: Path) -> None:
    silent = ("Server Power Control", "Chassis", None)
    with reading(tmp_path, controls(silent, CPUS)) as (source, bmc):
        with pytest.raises(FlagPerfError, match=r"PowerControl 0 \(Server Power Control\): no power is told"):
            source.read()
        bmc.set_resource("Chassis/1/Power", controls(SERVER, CPUS)["Chassis/1/Power"])
        assert source.read() == 900
        bmc.set_resource("Chassis/1/Power", controls(CPUS, SERVER)["Chassis/1/Power"])
        assert source.read() == 900, "members have no order"


# ---- power supplies


def supplies(*members: Mapping[str, Any]) -> Resources:
    return chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": {"PowerSupplies": list(members)}}


FIRST = {"PowerInputWatts": 410}
ABSENT = {"State": "Absent"}


@pytest.mark.parametrize("other", [None, 10**400])
def test_half_of_the_power_supplies_is_no_power(other: int | None, tmp_path: Path) -> None:
    resources = supplies(FIRST, {"PowerInputWatts": other, "Status": {"State": "Enabled"}})
    with (
        reading(tmp_path, resources) as (source, _),
        pytest.raises(FlagPerfError, match="input of 2 power supplies: not all of them tell theirs"),
    ):
        source.read()


@pytest.mark.parametrize(
    ("other", "count"),
    [
        ({"PowerInputWatts": 0, "Status": {"State": "StandbySpare"}}, "2 power supplies"),
        ({"PowerInputWatts": 0}, "2 power supplies"),
        ({"PowerInputWatts": None, "Status": ABSENT}, "1 power supply"),
        ({"PowerInputWatts": 410, "Status": ABSENT}, "1 power supply"),
    ],
)
def test_a_supply_in_standby_takes_nothing_and_an_absent_one_is_none(
    other: Mapping[str, Any], count: str, tmp_path: Path
) -> None:
    with reading(tmp_path, supplies(FIRST, other)) as (source, _):
        assert source.read() == 410
        assert f"input of {count} of chassis 1" in source.note


def test_supplies_that_all_take_in_nothing_are_not_measured(tmp_path: Path) -> None:
    with (
        reading(tmp_path, supplies({"PowerInputWatts": 0}, {"PowerInputWatts": 0})) as (source, _),
        pytest.raises(FlagPerfError, match="input of 2 power supplies: 0 W"),
    ):
        source.read()


def subsystem(**second: Any) -> Resources:
    """Two power supplies of PowerSubsystem, the first with 410 W."""
    place = "Chassis/1/PS"
    return chassis(PowerSubsystem=link(place)) | {
        place: {"PowerSupplies": link(f"{place}/All")},
        f"{place}/All": {"Members": [link(f"{place}/A"), link(f"{place}/B")]},
        f"{place}/A": {"Metrics": link(f"{place}/A/M")},
        f"{place}/A/M": {"InputPowerWatts": {"Reading": 410}},
        f"{place}/B": second,
        f"{place}/B/M": {"InputPowerWatts": {"Reading": None}},
    }


@pytest.mark.parametrize("metrics", [{}, {"Metrics": link("Chassis/1/PS/B/M")}])
def test_an_empty_bay_is_left_out_until_there_is_a_supply_in_it(
    metrics: Mapping[str, Any], tmp_path: Path
) -> None:
    with reading(tmp_path, subsystem(Status=ABSENT, **metrics)) as (source, bmc):
        assert source.read() == 410
        assert "input of 1 power supply of chassis 1" in source.note
        bmc.set_resource("Chassis/1/PS/B", {"Status": {"State": "Enabled"}, **metrics})
        with pytest.raises(FlagPerfError, match="not all of them"):
            source.read()


@pytest.mark.parametrize("metrics", [{}, {"Metrics": link("Chassis/1/PS/B/M")}])
def test_a_supply_whose_metrics_tell_nothing_may_carry_half(
    metrics: Mapping[str, Any], tmp_path: Path
) -> None:
    with (
        reading(tmp_path, subsystem(**metrics)) as (source, _),
        pytest.raises(FlagPerfError, match="input of 2 power supplies: not all of them tell theirs"),
    ):
        source.read()


# ---- which chassis


def two_chassis(second: str = "GPU", watts: float | None = 700, **of_second: Any) -> Resources:
    """A box, and another chassis with 350 W."""
    box = chassis("Box", Power=link("Chassis/Box/Power")) | {"Chassis/Box/Power": power(watts)}
    other = {
        f"Chassis/{second}": {"Power": link(f"Chassis/{second}/Power"), **of_second},
        f"Chassis/{second}/Power": power(350),
    }
    return {**box, **other, "Chassis": {"Members": [link("Chassis/Box"), link(f"Chassis/{second}")]}}


BOARDS = [
    ("GPU", {}),
    ("HGX_Chassis_0", {"Links": {"ComputerSystems": [link("Systems/HGX_Baseboard_0")]}}),
    ("Board", {"ChassisType": "Module"}),
    ("Board", {"Links": {"ContainedBy": link("Chassis/Box")}}),
    ("Board", {"Links": {"ContainedBy": [link("Chassis/Box")]}}),
]


@pytest.mark.parametrize(("name", "more"), BOARDS)
@pytest.mark.parametrize("watts", [700, None])
def test_a_board_is_not_the_machine_even_if_the_box_tells_nothing(
    watts: float | None, name: str, more: Any, tmp_path: Path
) -> None:
    with reading(tmp_path, two_chassis(name, watts, **more)) as (source, _):
        if watts:
            assert source.read() == 700
        else:
            with pytest.raises(FlagPerfError, match=r"whole machine: chassis Box: PowerControl 0"):
                source.read()


def test_boards_alone_are_no_machine_until_one_is_named(tmp_path: Path) -> None:
    resources = chassis("HGX_0", Power=link("Chassis/HGX_0/Power")) | {"Chassis/HGX_0/Power": power(3000)}
    with reading(tmp_path, resources) as (source, _):
        with pytest.raises(FlagPerfError, match="no chassis that is clearly a machine: HGX_0") as error:
            source.read()
        assert '"chassis"' in error.value.remedy
        assert open_meter(replace(source.meter, chassis="HGX_0")).read() == 3000


def test_a_board_is_named_where_the_box_has_no_power_at_all(tmp_path: Path) -> None:
    resources = two_chassis("HGX_0") | {"Chassis/Box/Power": {"PowerControl": []}}
    why = r"no power: Box \(but for what is a part of it: HGX_0\)"
    with reading(tmp_path, resources) as (source, _), pytest.raises(FlagPerfError, match=why):
        source.read()


def test_a_sled_that_holds_the_system_is_the_machine_and_not_its_enclosure(tmp_path: Path) -> None:
    links = {"ComputerSystems": [link("Systems/1")], "ContainedBy": link("Chassis/Box")}
    with reading(tmp_path, two_chassis("Sled", Links=links)) as (source, _):
        assert source.read() == 350


@pytest.mark.parametrize("watts", [700, None])
def test_of_several_chassis_one_must_be_named(watts: float | None, tmp_path: Path) -> None:
    """Also where just one of them has a reading at the moment."""
    with reading(tmp_path, two_chassis("Shelf", watts)) as (source, _):
        with pytest.raises(FlagPerfError, match="several chassis that tell a power: Box, Shelf") as error:
            source.read()
        assert '"chassis"' in error.value.remedy
        named = open_meter(replace(source.meter, chassis="Shelf"))
        assert named.read() == 350
        with pytest.raises(FlagPerfError, match="no such chassis") as error:
            open_meter(replace(source.meter, chassis="Rack")).read()
        assert "Box, Shelf" in error.value.remedy


BOX_OF_A_MACHINE = {"ChassisType": "RackMount"}
HOLDS = {"Links": {"ComputerSystems": [link("Systems/1")]}}
POSSIBLE = [
    (BOX_OF_A_MACHINE, {}),
    ({}, {}),
    (BOX_OF_A_MACHINE, HOLDS),
    (BOX_OF_A_MACHINE | HOLDS, BOX_OF_A_MACHINE | HOLDS),
]


@pytest.mark.parametrize(("box", "board"), POSSIBLE)
def test_a_board_is_not_the_machine_where_a_silent_box_may_be_it(
    box: Any, board: Any, tmp_path: Path
) -> None:
    resources = two_chassis("IO_Board_0", **board) | {"Chassis/Box": box}
    with reading(tmp_path, resources) as (source, _):
        with pytest.raises(
            FlagPerfError, match=r"a power of IO_Board_0 only, .* may as well be Box"
        ) as error:
            source.read()
        assert '"chassis"' in error.value.remedy
        assert open_meter(replace(source.meter, chassis="IO_Board_0")).read() == 350


@pytest.mark.parametrize(
    "silent",
    [{}, {"ChassisType": "Zone"} | HOLDS, {"Links": {"ContainedBy": link("Chassis/Box")}} | BOX_OF_A_MACHINE],
)
def test_what_says_less_that_it_is_a_machine_does_not_rival_the_box(silent: Any, tmp_path: Path) -> None:
    resources = two_chassis("Other") | {"Chassis/Other": silent}
    resources["Chassis/Box"] |= BOX_OF_A_MACHINE
    with reading(tmp_path, resources) as (source, _):
        assert source.read() == 700


@pytest.mark.parametrize("name", ["motherboard", "WP_Baseboard", "Front_Panel", "PDB_0", "Bluefield_BMC"])
def test_a_silent_board_does_not_rival_the_box_though_it_says_as_much(name: str, tmp_path: Path) -> None:
    """As bmcweb has it: whatever has no type is a RackMount, and each holds the system."""
    resources = two_chassis(name) | {f"Chassis/{name}": BOX_OF_A_MACHINE | HOLDS}
    resources["Chassis/Box"] |= BOX_OF_A_MACHINE | HOLDS
    with reading(tmp_path, resources) as (source, _):
        assert source.read() == 700


def test_a_board_in_a_part_of_the_box_is_within_the_box(tmp_path: Path) -> None:
    within_riser, within_box = (
        {"Links": {"ContainedBy": link(f"Chassis/{outer}")}} for outer in ("Riser", "Box")
    )
    resources = two_chassis("Board", **within_riser) | {"Chassis/Riser": within_box}
    resources["Chassis"]["Members"].append(link("Chassis/Riser"))
    with reading(tmp_path, resources) as (source, _):
        assert source.read() == 700


def test_chassis_of_the_same_id_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    resources = two_chassis("x/Box") | {"Chassis/Box": {"Power": link("Chassis/Box/Power"), **HOLDS}}
    with reading(tmp_path, resources) as (source, _):
        assert source.read() == 700
        assert source.note.endswith("of chassis /redfish/v1/Chassis/Box")
        with pytest.raises(FlagPerfError, match=r"several chassis with this ID: .*Chassis/Box, .*/x/Box"):
            open_meter(replace(source.meter, chassis="Box")).read()
        named = open_meter(replace(source.meter, chassis="/redfish/v1/Chassis/x/Box"))
        assert named.read() == 350
