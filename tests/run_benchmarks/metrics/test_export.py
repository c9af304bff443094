"""METRICS_PORT of a run: refused where it is not free, never what ends a run, and nothing where it is not set."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.metrics import server as server_module
from run_benchmarks.metrics.export import exported
from run_benchmarks.metrics.listener import RunListener
from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.unchanged import plan_digest
from tests.ports import free_port, reserved_port
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.plan.tree import make_tree
from tests.run_benchmarks.whole_run import REAL_TRAINING, WholeRun, make_whole_run
from utils.errors import FlagPerfError

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:
        yield make_whole_run(tmp_path, port, monkeypatch)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return make_tree(tmp_path_factory.mktemp("tree")).load()


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_port_that_is_taken_is_refused_before_anything_is_begun(
    run: WholeRun, verb: str, capsys: Capture
) -> None:
    with reserved_port() as port:
        run.configure(f"METRICS_PORT = {port}\n")
        assert run.main(verb) == 2
    said = capsys.readouterr().err
    assert f"port {port} cannot be listened on: Address already in use" in said
    assert "METRICS_PORT of test_conf.py" in said and "METRICS_PORT = None" in said
    assert not (run.folder / "result").exists() and not run.host.exists()


def test_a_run_whose_scraper_hangs_ends_as_one_without(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    run.configure(f"METRICS_PORT = {port}\n")
    connections: list[socket.socket] = []
    start = server_module.MetricsServer.start

    def start_and_hang(self: server_module.MetricsServer) -> None:
        start(self)
        for _ in range(server_module.MOST_REQUESTS):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(b"GET /metrics HTTP/1.1\r\n")
            connections.append(connection)

    monkeypatch.setattr(server_module.MetricsServer, "start", start_and_hang)
    assert run.main() == 0
    assert connections
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port))


def test_a_run_that_is_taken_up_does_without_where_its_port_is_taken(plan: Plan, log_lines: LogLines) -> None:
    with reserved_port() as port:
        settings = replace(plan.run, metrics_port=port)
        with exported(settings, is_needed=False) as displays:
            assert displays == ()
        with pytest.raises(FlagPerfError), exported(settings):
            raise AssertionError("it was opened")
    assert "there are no metrics: 127.0.0.1, port" in log_lines.text


def test_nobody_waits_at_the_end_of_a_run_that_was_interrupted(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[str] = []
    monkeypatch.setattr(
        server_module.MetricsServer, "wait_for_last_scrape", lambda self: waits.append("waited")
    )
    for is_interrupted in (False, True):
        with exported(replace(plan.run, metrics_port=free_port())) as (display,):
            assert isinstance(display, RunListener) and display.follows_telemetry
            if is_interrupted:
                display.interrupted()
    assert waits == ["waited"]


def test_ctrl_c_while_a_last_scrape_is_awaited_changes_nothing(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: server_module.MetricsServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(server_module.MetricsServer, "wait_for_last_scrape", interrupt)
    port = free_port()
    with exported(replace(plan.run, metrics_port=port)):
        pass
    with exported(replace(plan.run, metrics_port=port)):
        pass  # the port is free again


def test_a_run_is_taken_up_with_another_port(plan: Plan) -> None:
    other = replace(plan, run=replace(plan.run, metrics_port=9435, metrics_address="0.0.0.0"))  # noqa: S104
    assert plan_digest(plan_as_dict(other)) == plan_digest(plan_as_dict(plan))
    assert plan_digest(plan_as_dict(replace(plan, run=replace(plan.run, retries=7)))) != plan_digest(
        plan_as_dict(plan)
    )


def test_the_client_library_is_loaded_where_a_port_is_set_and_nowhere_else() -> None:
    code = (
        "import sys\nfrom run_benchmarks import foreground, runner\nfrom run_benchmarks.metrics import export\n"
        "print([name for name in sys.modules if name.startswith('prometheus_client')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REAL_TRAINING,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(ran.stdout.replace("'", '"')) == []


def test_without_the_client_library_it_is_named(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("run_benchmarks.metrics.")]:
        if not name.endswith("export"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(FlagPerfError) as error, exported(replace(plan.run, metrics_port=free_port())):
        pass
    assert "prometheus_client" in error.value.message and "requirements.txt" in error.value.remedy
