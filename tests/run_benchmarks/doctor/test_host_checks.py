"""What one look at a host tells, from texts that hosts printed; and that nothing in them can steer what reads it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks.doctor import host_checks
from run_benchmarks.doctor.look import LONGEST_VALUE, MOST_LINES, look_at, parse
from run_benchmarks.plan.records import Plan
from run_benchmarks.stages.checks import Checker, Status
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.doctor.examined import as_process, judge, patient_of, plan_of

ALL = (
    host_checks.host_key,
    host_checks.system,
    host_checks.processors,
    host_checks.cpu_governor,
    host_checks.memory,
    host_checks.huge_pages,
    host_checks.limits,
    host_checks.mtu,
)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("plan"))


def test_a_good_host_passes(plan: Plan) -> None:
    checks = {checker.__name__: judge(checker, plan, patient_of()) for checker in ALL}
    assert {name: check.status for name, check in checks.items()} == {
        **dict.fromkeys(checks, Status.OK),
        "host_key": Status.SKIPPED,  # this machine has to prove nothing
    }
    assert checks["system"].detail == "Debian GNU/Linux 12 (bookworm), x86_64"
    assert checks["memory"].facts == {"total_gib": 2015.5, "available_gib": 1996.4}
    assert checks["mtu"].detail == "eth0 1500, ib0 4092"
    assert checks["limits"].facts == {"memlock": "unlimited", "nofile": "1048576"}


@pytest.mark.parametrize(
    ("checker", "changed", "detail", "remedy"),
    [
        (host_checks.cpu_governor, "governor=performance powersave", "powersave", "cpupower frequency-set"),
        (host_checks.processors, "load=112.5", "load 112.5: others are at work", "top"),
        (host_checks.memory, "MemAvailable=900000000", "858.3 of 2015.5 GiB", "what uses it"),
        (host_checks.memory, "MemTotal=a lot", "does not say", "yourself"),
        (
            host_checks.huge_pages,
            "HugePages_Total=512000\nHugePages_Free=512000",
            "nobody uses hold 50% of the memory",
            "vm.nr_hugepages",
        ),
        (host_checks.limits, "memlock=8192", "memlock 8192", "memlock to unlimited"),
        (host_checks.limits, "nofile=256", "nofile 256", "raise nofile"),
    ],
)
def test_what_makes_a_host_slow_is_a_warning(
    checker: Checker[host_checks.Patient], changed: str, detail: str, remedy: str, plan: Plan
) -> None:
    check = judge(checker, as_process(plan), patient_of(changed))
    assert check.status is Status.WARNING, check
    assert detail in check.detail and remedy in check.remedy


def test_a_load_that_is_no_number_is_none(plan: Plan) -> None:
    for load in ("abc", "nan", "1e999", "-5", "9" * 400):
        assert judge(host_checks.processors, plan, patient_of(f"load={load}")).status is Status.OK


def test_limits_of_the_ssh_user_are_none_of_containers(plan: Plan) -> None:
    assert judge(host_checks.limits, plan, patient_of("memlock=8192\nnofile=256")).status is Status.OK


def test_a_host_without_frequencies_has_no_governor(plan: Plan) -> None:
    patient = patient_of()
    bare = {name: value for name, value in patient.look.values.items() if name != "governor"}
    check = judge(
        host_checks.cpu_governor, plan, type(patient)(patient.transport, (), look=type(patient.look)(bare))
    )
    assert check.status is Status.SKIPPED


def test_this_machine_is_looked_at() -> None:
    look = asyncio.run(look_at(LocalTransport()))
    assert look.text("kernel") == f"Linux {Path('/proc/sys/kernel/osrelease').read_text().strip()}"
    assert all(look.number(name) for name in ("processors", "MemTotal", "MemAvailable"))
    assert look.text("nofile") and look.text("memlock")


def test_what_is_no_line_of_ours_is_left_out() -> None:
    hostile = "kernel=\x1b[2J\x9bLinux\na b=c\n=x\n" + "x" * 10**6 + "\nmtu.eth0=" + "9" * 10**6
    values = parse(hostile)
    assert set(values) == {"kernel", "mtu.eth0"}
    assert values["kernel"].isprintable() and len(values["mtu.eth0"]) < 2 * LONGEST_VALUE
    assert len(parse("\n".join(f"n{number}=1" for number in range(10 * MOST_LINES)))) == MOST_LINES


@settings(max_examples=150, deadline=None, derandomize=True)
@given(text=st.text() | st.text(alphabet="kernel=load\n .\x1b9-einfa"))
def test_whatever_a_host_prints_every_check_comes_to_an_end(text: str, plan: Plan) -> None:
    patient = patient_of(text)
    assert all(value.isprintable() for value in patient.look.values.values())
    for checker in ALL:
        check = judge(checker, plan, patient)
        assert "not foreseen" not in check.detail, check
