"""Power by IPMI: the real ipmitool asks a simulated BMC; DCMI, which the simulator lacks, by recorded output."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.meters import open_meter
from run_benchmarks.meters.base import UnreachableError
from run_benchmarks.meters.ipmi import PRESENT, Chosen, names_in, sensors_of_machine, values_of
from run_benchmarks.plan.meters import Meter
from tests.run_benchmarks.meters.simulators import PASSWORD, USER, Simulated, ipmi_bmc
from utils.errors import FlagPerfError

VARIABLE = "METER_OF_THE_TESTS"
# What ipmitool 1.8.19 prints of a BMC that has DCMI, by its source (lib/ipmi_dcmi.c); the values are made up.
DCMI = """
    Instantaneous power reading:                   {watts} Watts
    Minimum during sampling period:                 12 Watts
    Maximum during sampling period:                804 Watts
    Average power reading over sample period:      310 Watts
    IPMI timestamp:                           Mon Nov 23 09:15:02 2026
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   {state}
"""


@pytest.fixture
def bmc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulated]:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with ipmi_bmc(tmp_path / "bmc", {"CPU1_Power": 40, "PSU1_Input": 120, "Total_Power": 220}) as simulated:
        yield simulated


def meter_of(port: int, sensors: tuple[str, ...] = ()) -> Meter:
    return Meter("ipmi", "127.0.0.1", port, USER, VARIABLE, sensors=sensors, cipher_suite=3)


def test_the_sensor_of_the_whole_machine_is_chosen_and_followed(bmc: Simulated) -> None:
    source = open_meter(meter_of(bmc.port))
    assert source.read() == 220
    assert source.note.endswith("sensor Total_Power") and "the whole machine" in source.note
    bmc.set_sensor("Total_Power", 400)
    watts = source.read()
    while watts == 220:  # the simulator reads its file 20 times a second
        watts = source.read()
    assert watts == 400
    bmc.set_sensor("Total_Power", 0)
    with pytest.raises(FlagPerfError, match="no machine that runs draws"):
        while source.read() == 400:
            pass
    source.close()


def test_sensors_that_are_named_are_added(bmc: Simulated) -> None:
    source = open_meter(meter_of(bmc.port, ("PSU1_Input", "CPU1_Power")))
    assert source.read() == 160
    source.close()
    with pytest.raises(FlagPerfError, match="PSU9"):
        open_meter(meter_of(bmc.port, ("PSU9",))).read()


def test_a_wrong_password_is_told_with_what_to_do(bmc: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "wrong")
    with pytest.raises(UnreachableError, match="Unable to establish") as error:
        open_meter(meter_of(bmc.port)).read()
    assert "user and password" in error.value.remedy


def test_the_password_is_in_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A FAKE ipmitool that writes down how it was called."""
    calls = tmp_path / "calls"
    _fake_tool(tmp_path, monkeypatch, f'echo "$@" >>{calls}\ncat {tmp_path}/dcmi')
    (tmp_path / "dcmi").write_text(DCMI.format(watts=318, state="activated"))
    monkeypatch.setenv(VARIABLE, PASSWORD)
    source = open_meter(meter_of(623))
    assert source.read() == 318
    assert source.note.endswith("DCMI power reading")
    assert PASSWORD not in calls.read_text() and "-E" in calls.read_text().split()


def test_dcmi_that_is_off_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded of many BMCs: a reading stands there, of nothing."""
    text = DCMI.format(watts=0, state="deactivated")
    _fake_tool(tmp_path, monkeypatch, f'case "$*" in *dcmi*) cat <<E\n{text}E\n;; *) exit 1;; esac')
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with pytest.raises(FlagPerfError, match="ipmitool ended with 1"):
        open_meter(meter_of(623)).read()


def test_without_the_tool_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with pytest.raises(FlagPerfError, match="there is no ipmitool") as error:
        open_meter(meter_of(623)).read()
    assert "apt-get install ipmitool" in error.value.remedy


def listed(*rows: tuple[str, str]) -> str:
    """As `ipmitool sdr elist` prints sensors, by name and reading: each of the supply of its number, or the board."""
    lines = []
    for number, (name, reading) in enumerate(rows):
        status = "ns" if reading in ("No Reading", "Disabled") else "ok"
        supply = next(filter(str.isdigit, name), "")
        entity = f"10.{supply}" if supply else "7.1"
        lines.append(f"{name:16} | {number:02X}h | {status:3} | {entity} | {reading}\n")
    return "".join(lines)


FIRST, SECOND = ("PS1 Input Power", "100 Watts"), ("PS2 Input Power", "108 Watts")
LISTINGS = [
    ((("CPU1 Temp", "40 degrees C"), ("Pwr Consumption", "168 Watts")), ("Pwr Consumption",)),
    ((("PW Consumption", "168 Watts"),), ("PW Consumption",)),
    ((("PWR_PSU0", "900 Watts"), ("PWR_SYSTEM", "1800 Watts")), ("PWR_SYSTEM",)),
    # Huawei iBMC, as go-ipmi's issue 33 shows it: its supplies' have the total's name with a number behind it
    ((("Power", "168 Watts"), ("Power1", "90 Watts"), ("Power2", "78 Watts")), ("Power",)),
    ((FIRST, SECOND, ("CPU Power", "60 Watts")), ("PS1 Input Power", "PS2 Input Power")),
    ((FIRST, ("PS2 Input Power", "0 Watts")), ("PS1 Input Power", "PS2 Input Power")),
    ((("Total_Power", "No Reading"), ("PSU1_PIN", "120 Watts"), ("PSU1_POUT", "99 Watts")), ("PSU1_PIN",)),
    ((("SYS_POWER", "330 Watts"), ("Total_Power", "360 Watts")), ("Total_Power",)),
]


@pytest.mark.parametrize(("rows", "chosen"), LISTINGS)
def test_sensors_are_chosen_by_their_names(rows: Any, chosen: tuple[str, ...]) -> None:
    assert sensors_of_machine(listed(*rows), lambda: "") == Chosen(chosen)


def test_a_reading_beyond_a_threshold_is_one() -> None:
    listing = listed(FIRST, SECOND).replace("| ok  |", "| cr  |")
    assert sensors_of_machine(listing, lambda: "") == Chosen(("PS1 Input Power", "PS2 Input Power"))


PARTS = (("CPU Power", "60 Watts"), ("GPU1 Power", "300 Watts"))


@pytest.mark.parametrize("rows", [(), PARTS, (("--total-power", "9 Watts"),)])
def test_where_none_is_of_the_whole_machine_they_are_named(rows: Any) -> None:
    with pytest.raises(FlagPerfError, match="no sensor is known") as error:
        sensors_of_machine(listed(*rows), lambda: "")
    assert ("CPU Power, GPU1 Power" in error.value.message) is (rows == PARTS)
    assert '"sensors"' in error.value.remedy


SILENT = ("PS2 Input Power", "Disabled")
IN_FIRST, IN_SECOND, NOT_IN_SECOND = ("PS1 Status", PRESENT), ("PS2 Status", PRESENT), ("PS2 Status", "")


STATES = [
    (),
    (IN_FIRST,),
    (IN_FIRST, IN_SECOND),
    (IN_FIRST, ("PS2 Status", "No Reading")),
    (NOT_IN_SECOND,),
    (("PS1 Status", ""), NOT_IN_SECOND),  # a BMC that says of none that it is there
]


@pytest.mark.parametrize("states", STATES)
def test_a_power_supply_that_tells_nothing_may_carry_half(states: Any) -> None:
    with pytest.raises(FlagPerfError, match="PS2 Input Power tells nothing: what PS1 Input Power") as error:
        sensors_of_machine(listed(FIRST, SILENT), lambda: listed(*states))
    assert '"sensors"' in error.value.remedy


def test_an_empty_bay_is_no_part_of_the_machine() -> None:
    chosen = sensors_of_machine(listed(FIRST, SILENT), lambda: listed(IN_FIRST, NOT_IN_SECOND))
    assert chosen == Chosen(("PS1 Input Power",), ("PS2 Input Power",))


def test_power_supplies_are_added_as_they_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    first, second = "PS1 Input Power", "PS2 Input Power"
    with ipmi_bmc(tmp_path / "bmc", {first: 400, second: 360}, supplies=(first, second)) as bmc:
        both = open_meter(meter_of(bmc.port))
        assert both.read() == 760
        bmc.set_present(second, is_present=False)
        until = time.monotonic() + 30
        with pytest.raises(FlagPerfError, match="no reading of sensor PS2 Input Power"):
            while both.read() == 760 and time.monotonic() < until:  # the simulator reads its files at times
                pass
        one = open_meter(meter_of(bmc.port))
        assert one.read() == 400
        assert one.note.endswith("sensor PS1 Input Power")
        bmc.set_present(second, is_present=True)
        until = time.monotonic() + 30
        while one.read() == 400 and time.monotonic() < until:
            pass
        assert one.read() == 760, "a supply was put in"
        both.close()
        one.close()


@pytest.mark.parametrize(
    "rows",
    [
        (("Input Power", "500 Watts"), ("Input Power", "512 Watts")),
        (("Input Power", "500 Watts"), ("Input Power", "Disabled")),
        (("Total Power", "500 Watts"), ("Total_Power", "512 Watts")),
        (("System Power", "500 Watts"), ("System Power 2", "512 Watts")),
        (FIRST, FIRST),
    ],
)
def test_one_of_several_alike_is_no_total(rows: Any) -> None:
    with pytest.raises(FlagPerfError, match=f"no sensor is known .*{rows[0][0]}"):
        sensors_of_machine(listed(*rows), lambda: "")


@pytest.mark.parametrize("name", ["Input Power", "Pwr Consumption"])
def test_a_sensor_of_a_power_supply_is_no_total(name: str) -> None:
    listing = listed((name, "500 Watts"))
    assert sensors_of_machine(listing, lambda: "") == Chosen((name,))
    with pytest.raises(FlagPerfError, match="no sensor is known"):
        sensors_of_machine(listing.replace(" 7.1 ", " 10.1 "), lambda: "")


def test_power_supplies_whose_sensors_have_one_name_are_not_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    first, second = "Input Power#1", "Input Power#2"
    with ipmi_bmc(tmp_path / "bmc", {first: 500, second: 512}, supplies=(first, second)) as bmc:
        with pytest.raises(FlagPerfError, match="several are called Input Power") as error:
            open_meter(meter_of(bmc.port)).read()
        assert "Redfish" in error.value.remedy
        with pytest.raises(FlagPerfError, match="several sensors of one name: Input Power") as error:
            open_meter(meter_of(bmc.port, ("Input Power",))).read()
        assert "Redfish" in error.value.remedy


@pytest.mark.parametrize("records", [b"", b"\1\0\x51\1", b"\1\0\x51\1\xff", b"\1\0\x51\1\x2b" + 43 * b"\xff"])
def test_records_that_end_early_name_nothing(records: bytes) -> None:
    assert not any(names_in(records))


def test_what_is_no_number_is_no_reading() -> None:
    assert values_of("Total_Power,240\nPSU1,na\nPSU2, 12.5\nodd\n") == {"Total_Power": 240, "PSU2": 12.5}


def _fake_tool(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    tool = folder / "bin" / "ipmitool"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
