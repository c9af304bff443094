"""The checks of what nodes need of their network: the master port, and their peers' names."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from run_benchmarks.names import LABEL_RUN
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.stages import checks
from run_benchmarks.stages.checks import Status
from run_benchmarks.stages.master_port import master_port
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.stages.checked_host import TWO_NODES, Site, assert_bad, assert_ok, assert_skipped
from utils.process_unit import RUN_MARK

RUN = "run20260102030405-aaaaaa"

# ---- master port


def own_name() -> str:
    """As the kernel has it of this process: fifteen bytes."""
    return Path("/proc/self/comm").read_text().strip()


def test_master_port(site: Site) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        site.hosts("node1", port=port)
        check = site.check(master_port)
        by = f"{port} is in use by {own_name()} (pid {os.getpid()})"
        assert_bad(check, Status.ERROR, by, "end that on node1, or set another MASTER_PORT")
        site.rank = 1
        assert_skipped(site.check(master_port))


def test_of_a_port_that_another_run_has_the_remedy_is_to_wait_or_to_stop_that(site: Site) -> None:
    listen = "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    argv = [sys.executable, "-c", f"{listen}; sys.stdin.read()"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, RUN_MARK: RUN}
    ) as listener:
        assert listener.stdout
        site.hosts("node1", port=int(listener.stdout.readline()))
        check = site.check(master_port)
        listener.communicate()
    assert_bad(check, Status.ERROR, f"(pid {listener.pid}): {RUN} runs there", f"run.py stop {RUN}")
    assert (
        "wait until that run is over, or end it (one of another checkout: " in check.remedy
        and "MASTER_PORT" not in check.remedy
    )


def test_master_port_that_only_a_connection_uses(site: Site) -> None:
    """The near end of somebody's connection: nobody listens there."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as connection:
            port = connection.getsockname()[1]
            site.hosts("node1", port=port)
            assert_ok(site.check(master_port), str(port))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (127, "sh: ss: not found"),
        (0, "LISTEN 0 128 0.0.0.0:29501 0.0.0.0:*"),
        (0, 'LISTEN 0 128 users:(("a\nb",pid=1,fd=3))'),
    ],
)
def test_of_a_port_whose_owner_is_not_told_the_remedy_says_how_to_ask(
    code: int, told: str, site: Site
) -> None:
    listening = "0: 00000000:733D 00000000:0000 0A"
    site.transport = AnsweringHost({"/proc/net/tcp": (0, listening, ""), "ss -": (code, told, "")})
    site.hosts("node1", port=29501)
    check = site.check(master_port)
    assert_bad(check, Status.ERROR, "29501 is in use, by whom", "`sudo ss -ltnp 'sport = :29501'` on node1")
    site.runtime.units = (UnitState("flagperf-x", {LABEL_RUN: RUN}, running=True),)
    check = site.check(master_port)
    assert_bad(check, Status.ERROR, f"{RUN} runs there", f"run.py stop {RUN}")


def test_of_those_who_have_a_port_few_are_named(site: Site) -> None:
    owners = ",".join(f'("gunicorn",pid={number},fd=3)' for number in (*range(1, 9), 1))
    listening = "0: 00000000:733D 00000000:0000 0A"
    answers = {"/proc/net/tcp": (0, listening, ""), "ss -": (0, f"LISTEN users:({owners})", "")}
    site.transport = AnsweringHost(answers)
    site.hosts("node1", port=29501)
    detail = site.check(master_port).detail
    assert detail == "29501 is in use by " + ", ".join(f"gunicorn (pid {number})" for number in range(1, 6))


def test_master_port_on_ipv6(site: Site) -> None:
    if not Path("/proc/net/if_inet6").exists() or not Path("/proc/net/if_inet6").read_text():
        pytest.skip("this machine has no IPv6")
    with socket.socket(socket.AF_INET6) as listener:
        listener.bind(("::1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        site.hosts("node1", port=port)
        assert_bad(site.check(master_port), Status.ERROR, "in use", "MASTER_PORT")


# ---- peers


def test_peers_are_not_needed_by_one_node(site: Site) -> None:
    assert_skipped(site.check(checks.peers))


@pytest.mark.parametrize(("rank", "peer"), [(0, "second.invalid"), (1, "first.invalid")])
def test_peers_that_are_not_known(rank: int, peer: str, site: Site) -> None:
    site.conf(base=TWO_NODES)
    site.hosts("first.invalid", "second.invalid")
    site.rank = rank
    assert_bad(site.check(checks.peers), Status.ERROR, f"{peer} has no IPv4 address", "DNS or /etc/hosts")


def test_peers_that_mean_the_host_itself(site: Site) -> None:
    """Debian writes a host's own name with 127.0.1.1 into /etc/hosts."""
    site.conf(base=TWO_NODES)
    site.transport = AnsweringHost({"getent": (0, "127.0.1.1 STREAM node2\n", "")})
    assert_bad(site.check(checks.peers), Status.ERROR, "means this host itself", "/etc/hosts")
