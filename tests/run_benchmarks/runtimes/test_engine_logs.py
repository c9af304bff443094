"""Where an engine tells why a container ended: the commands that an operator is given, typed at real engines."""

from __future__ import annotations

import re
import subprocess
import time

from run_benchmarks.runtimes import open_runtime
from run_benchmarks.transports.base import Transport, checked
from tests.run_benchmarks.runtimes.conftest import Bench, settings
from utils.records import FailureClass


def test_who_removed_a_container_is_asked_of_its_engine(containers: Bench) -> None:
    """As it stands the command ends by itself, and has the container that was removed by hand."""
    unit = containers.unit("sleep 600")

    async def remove(transport: Transport) -> None:
        await containers.runtime.start(transport, unit)
        at_once = () if containers.engine == ("docker",) else ("--time=0",)
        await checked(transport, (*containers.engine, "rm", "--force", *at_once, unit.name))

    containers.use(remove)
    advice = containers.runtime.advice(FailureClass.TASK_REMOVED, "h2")
    assert advice.startswith("see on h2 when")
    (command,) = re.findall(r"`([^`]* events [^`]*)`", advice)

    def said() -> str:
        return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=True).stdout

    # `--until 0s` ends with the last whole second
    assert any(unit.name in said() or time.sleep(0.2) for _ in range(50))


def test_an_engine_without_a_daemon_has_no_daemons_log(containers: Bench) -> None:
    advice = containers.runtime.advice(FailureClass.ENGINE_FAILED, "h2")
    has_daemon = containers.engine == ("docker",)
    assert ("journalctl -u docker" in advice) is has_daemon
    assert ("podman info" in advice) is not has_daemon


def test_of_other_ends_no_engine_knows_more(containers: Bench) -> None:
    assert containers.runtime.advice(FailureClass.RANK_KILLED, "h2") == ""
    assert containers.runtime.advice(None, "h2") == ""


def test_of_processes_that_were_removed_the_hosts_own_logs_tell(processes: Bench) -> None:
    runtime = open_runtime(settings(processes.folder, runtime="process"))
    assert "on h2 who ended its processes" in runtime.advice(FailureClass.TASK_REMOVED, "h2")
    assert runtime.advice(FailureClass.ENGINE_FAILED, "h2") == ""
