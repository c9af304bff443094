"""Two names of one machine: no two nodes of a run, whatever leads there."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.health import check_standing_hosts, refusal_of
from run_benchmarks.hosts.fixed import FixedHosts
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.session import Session
from run_benchmarks.stages.checks import Check, Status, with_status
from run_benchmarks.stages.same_machine import MACHINE, machine_in, same_machines
from run_benchmarks.transports.base import Completed
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.one_round import make_session

BOOT, NAMESPACE = "224a29c9-1558-4daa-9c96-98b6e37d5c80", "net:[4026531833]"
FIRST, SECOND = "192.0.2.1", "192.0.2.2"


def answer(boot: str = BOOT, namespace: str = NAMESPACE, *addresses: str) -> str:
    return "\n".join(
        ("Linux 6.1.0", "machine:", boot, namespace, *(addresses or ("02:fc:00:00:00:01", "0c:42")), "")
    )


@pytest.mark.parametrize(
    "other",
    [
        answer(BOOT.replace("2", "3")),
        answer(BOOT, "net:[4026532000]"),
        answer(BOOT, NAMESPACE, "02:fc:00:00:00:02"),
    ],
)
def test_each_of_the_three_tells_machines_apart(other: str) -> None:
    system, machine = machine_in(answer())
    assert system == "Linux 6.1.0" and len(machine) == 64
    assert machine_in(other)[1] not in ("", machine)
    assert machine_in(answer(BOOT, NAMESPACE, "0c:42", "02:fc:00:00:00:01"))[1] == machine


@pytest.mark.parametrize(
    "told",
    ["", "Linux 6.1.0\n", answer(""), answer(namespace=""), answer("x" * 36), answer(namespace="mnt:[1]")],
)
def test_a_host_that_does_not_tell_is_no_machine(told: str) -> None:
    assert machine_in(told)[1] == ""


def of_machines(**machines: str) -> dict[str, list[Check]]:
    return {
        host: [Check("reachable", Status.OK, "", facts={MACHINE: machine} if machine else {})]
        for host, machine in machines.items()
    }


def test_those_of_one_list_are_compared() -> None:
    checks = of_machines(a="1", b="2", c="1", d="", e="", f="1")
    errors = same_machines(ClusterSettings(hosts=tuple(checks), spares=("f",)), checks)
    assert [*errors] == ["c", "f"]
    assert errors["c"].detail.startswith("a and c are one machine")
    assert same_machines(ClusterSettings(hosts=tuple(checks), slurm=SlurmSettings()), checks) == {}
    two_vendors = ClusterSettings(hosts=("a", "c"), groups={"acme": ("a",), "bolt": ("c",)})
    assert same_machines(two_vendors, checks) == {}, "no case has hosts of both"
    spare = replace(two_vendors, spare_groups={"acme": ("f",)})
    assert [*same_machines(spare, checks)] == ["f"]


class Another(LocalTransport):
    """FAKE: this machine, which says that it is another where its host is not the first."""

    async def run(self, argv: Any, **options: Any) -> Completed:
        done = await super().run(argv, **options)
        is_asked = "boot_id" in " ".join(argv) and self.host != FIRST
        return replace(done, stdout=done.stdout.replace("net:[", "net:[9")) if is_asked else done


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Its two hosts are this machine."""
    return make_session(tmp_path, FakeRuntime())


def test_a_run_on_one_machine_twice_is_refused(session: Session) -> None:
    asyncio.run(check_standing_hosts(session))
    (found,) = with_status(session.checks, Status.ERROR)
    assert found[0] == SECOND and "HostName in ~/.ssh/config" in found[1].remedy
    refusal = refusal_of(session.checks)
    assert f"{SECOND}: machine: {FIRST} and {SECOND} are one machine: the same boot" in refusal


def test_a_run_on_two_machines_is_not(session: Session) -> None:
    session = replace(session, allocator=FixedHosts(session.plan.cluster, Another))
    asyncio.run(check_standing_hosts(session))
    assert with_status(session.checks, Status.ERROR) == []
