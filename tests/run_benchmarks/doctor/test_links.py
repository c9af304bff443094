"""The links between hosts: who is asked, and the program that measures, between two processes of this machine."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from run_benchmarks.doctor.links import links, ring
from run_benchmarks.doctor.look import Patient
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import Status
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.doctor.examined import as_process, patient_of, plan_of
from utils import link_probe

PROBE = Path(link_probe.__file__).read_text()
SHORT = "SENDING_S = 0.05\n"


def test_each_host_asks_the_next_one_of_its_vendor(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        cluster_conf='HOSTS = {"acme": ["n1", "n2", "n3"], "twin": ["n4"], "cpu": ["n1", "localhost"]}',
    )
    assert ring(plan, ["n1", "n2", "n3", "n4", "localhost"]) == {"n1": "n2", "n2": "n3", "n3": "n1"}
    assert ring(plan, ["n1", "n3"]) == {"n1": "n3", "n3": "n1"}, "n2 was not reached"
    assert ring(plan, ["n3"]) == {}


def run(call: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-c", f"{PROBE}\n{SHORT}{call}\n"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_measure_what_is_between_them() -> None:
    """A stranger who does not know the token is not served, and does not end it."""
    with run("serve('secret')") as server:
        assert server.stdout
        port = int(server.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"terces")
            assert stranger.recv(1) == b""
        with run(f"ask('127.0.0.1', {port}, 'secret')") as client:
            printed, errors = client.communicate(timeout=60)
        assert server.wait(60) == 0
    measured = json.loads(printed)
    assert errors == "" and measured["bytes_per_s"] > 0 and 0 < measured["latency_s"] < 60


def test_a_stranger_who_says_a_byte_now_and_then_holds_nobody_up() -> None:
    """Each byte gave it another second, until the server's time was over."""
    with run("serve('secret' * 100)") as server:
        assert server.stdout
        port = int(server.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            said = 0
            with suppress(OSError):
                for _ in range(600):
                    stranger.sendall(b"x")
                    said += 1
                    time.sleep(0.1)
        assert said < 600, "it was sent away before it had said a token's length"
        server.kill()


def test_a_server_that_nobody_asks_ends_by_itself() -> None:
    with run("serve('secret', 0.05)") as server:
        assert server.wait(60) != 0


def measured(folder: Path, *patients: Patient) -> dict[str, Status]:
    """The links between hosts that are all this machine, by addresses that other machines do not have either."""
    plan = as_process(plan_of(folder, cluster_conf='HOSTS = ["n1.invalid", "n2.invalid"]'))
    runtime: Runtime = FakeRuntime()  # type: ignore[assignment]
    checks = asyncio.run(links(plan, runtime, dict(zip(("n1.invalid", "n2.invalid"), patients, strict=True))))
    return {f"{host}: {check.detail}": check.status for host, check in checks.items()}


def test_a_host_that_is_not_reached_is_named(tmp_path: Path) -> None:
    """Names below .invalid have no address (RFC 6761)."""
    outcomes = measured(tmp_path, patient_of(), patient_of())
    assert list(outcomes.values()) == [Status.WARNING, Status.WARNING]
    assert all("is not reached at TCP port" in text for text in outcomes)


def test_a_host_is_reached_by_its_address_where_that_is_not_its_name(tmp_path: Path) -> None:
    """A pod is named by its node."""
    outcomes = measured(tmp_path, patient_of(address="127.0.0.1"), patient_of(address="127.0.0.1"))
    assert len(outcomes) == 2 and all("there and back" in text for text in outcomes)


def test_where_nothing_can_measure_it_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.fakes.transports import AnsweringHost

    silent = AnsweringHost({"python3": (127, "", "python3: not found")})
    outcomes = measured(tmp_path, patient_of(transport=silent), patient_of(transport=silent))
    assert list(outcomes.values()) == [Status.SKIPPED, Status.SKIPPED]
    assert "n1.invalid: n2.invalid did not serve: python3: not found" in outcomes
