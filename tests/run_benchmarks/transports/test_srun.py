"""Commands by srun on a real Slurm: what is its own among what every transport promises (test_contract.py)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from run_benchmarks.transports.base import (
    AuthenticationError,
    PassingError,
    Transport,
    TransportError,
    checked,
)
from tests.run_benchmarks.process_table import pids_with
from tests.run_benchmarks.transports.conftest import Host, eventually, node_of
from tests.slurm.fixtures import need_control_groups, speak_to
from tests.slurm.slurm import Slurm

SLEEP = ["sh", "-c", "echo begun; sleep 300; :"]


@pytest.fixture
def node(slurm: Slurm) -> Host:
    """The second node of a job of this test's own."""
    return node_of(slurm.allocate("--nodes=2", "--exclusive", "--gres=gpu:2", "--no-requeue"))


def lost_while(
    host: Host, happens: Callable[[], object], argv: list[str] = SLEEP, timeout: float = 90.0
) -> TransportError:
    """The error of a command during which something happens, once it has printed something."""

    async def scenario(transport: Transport) -> TransportError:
        async def begun(_: bytes) -> None:
            await asyncio.to_thread(happens)

        with pytest.raises(TransportError) as caught:
            await transport.run(argv, stdout=begun)
        return caught.value

    return host.use(scenario, timeout)


def test_a_step_sees_the_jobs_devices_and_no_settings_of_the_controller(
    node: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAGPERF_SECRET", "hunter2")
    monkeypatch.setenv("SLURM_LABELIO", "1")  # would put a number before each line
    monkeypatch.setenv("SLURM_EXPORT_ENV", "ALL")
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    shown = json.loads(node.use(lambda t: checked(t, ["/usr/bin/python3", "-c", script])).stdout)
    assert shown["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert shown["HOME"] == os.environ["HOME"]
    assert "hunter2" not in shown.values()


def test_a_command_on_each_node_of_the_job(slurm: Slurm) -> None:
    job = slurm.allocate("--nodes=3", "--exclusive")
    assert [node_of(job, name).use(lambda t: checked(t, ["hostname"])).stdout for name in slurm.names] == [
        f"{name}\n" for name in slurm.names
    ]


def test_hundreds_of_short_commands_at_once(node: Host) -> None:
    async def scenario(transport: Transport) -> list[str]:
        runs = (checked(transport, ["echo", str(number)]) for number in range(300))
        return [completed.stdout for completed in await asyncio.gather(*runs)]

    assert node.use(scenario, 300.0) == [f"{number}\n" for number in range(300)]


def test_one_step_runs_one_command_after_the_other(node: Host) -> None:
    async def scenario(transport: Transport) -> list[str]:
        return [(await checked(transport, ["sh", "-c", "echo $SLURM_STEP_ID"])).stdout for _ in range(5)]

    assert len(set(node.use(scenario))) == 1


def test_commands_with_input_of_a_size_follow_each_other_in_one_step(node: Host) -> None:
    reads = {"cat >/dev/null": 0, "head -c 1 >/dev/null": 0, ":": 0, "exec false": 1, "wc -c; exit 3": 3}

    async def scenario(transport: Transport) -> list[tuple[int, str]]:
        scripts = [f"echo $SLURM_STEP_ID; {script}" for script in reads]
        ends = [await transport.run(["sh", "-c", script], stdin=bytes(10**6)) for script in scripts]
        return [(end.returncode, end.stdout) for end in ends]

    ends = node.use(scenario)
    assert [code for code, _ in ends] == [*reads.values()]
    assert len({printed.splitlines()[0] for _, printed in ends}) == 1
    assert ends[-1][1].endswith("\n1000000\n")


def test_a_step_whose_srun_died_while_it_waited_is_replaced(node: Host, slurm: Slurm) -> None:
    async def scenario(transport: Transport) -> None:
        (step,) = (await checked(transport, ["sh", "-c", "echo $SLURM_JOB_ID.$SLURM_STEP_ID"])).stdout.split()
        slurm.run("scancel", step)
        await eventually(lambda: step not in slurm.run("squeue", "--steps", "--noheader", "--format=%i"))
        await asyncio.sleep(1)  # srun is told of it, too
        assert (await checked(transport, ["echo", "on"])).stdout == "on\n"

    node.use(scenario)


def test_what_is_asked_together_takes_one_step(node: Host, slurm: Slurm) -> None:
    async def scenario(transport: Transport) -> list[str]:
        together = transport.together()
        runs = (checked(together, ["sh", "-c", "echo $SLURM_STEP_ID"]) for _ in range(20))
        return [completed.stdout for completed in await asyncio.gather(*runs)]

    assert len(set(node.use(scenario))) == 1


def test_the_last_line_is_seen_at_once(node: Host) -> None:
    """Not held back until more comes, which may take hours."""

    async def scenario(transport: Transport) -> None:
        seen = asyncio.Event()

        async def read(chunk: bytes) -> None:
            assert chunk == b"step 1\n"
            seen.set()

        running = asyncio.ensure_future(transport.run(["sh", "-c", "echo step 1; sleep 300; :"], stdout=read))
        await seen.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    node.use(scenario)


def test_a_command_may_print_what_looks_like_a_mark(node: Host) -> None:
    printed = "\x1e" * 40 + "0123456789abcdef" * 4 + "\x1e"
    assert node.use(lambda t: checked(t, ["printf", "%s", printed])).stdout == printed


def test_a_job_that_is_cancelled_is_no_exit_code(node: Host, slurm: Slurm) -> None:
    error = lost_while(node, lambda: slurm.run("scancel", "--user=root"))
    assert "ended from outside" in error.message and error.where == "n2"
    assert "sacct -j" in error.remedy
    slurm.wait_for_no_job()
    again = lost_while(node, lambda: None)
    assert "the job has ended" in again.message


def test_a_node_that_is_killed_is_no_exit_code(node: Host, slurm: Slurm) -> None:
    error = lost_while(node, lambda: slurm.kill_node("n2"))
    assert "its node fails" in error.message and "scontrol show node n2" in error.remedy


def test_a_node_that_the_job_does_not_have_is_named(slurm: Slurm) -> None:
    job = slurm.allocate("--nodes=1", "--nodelist=n1")
    assert "does not have this node" in lost_while(node_of(job, "n3"), lambda: None).message


def test_without_slurmctld_commands_go_on_and_new_ones_may_be_tried_again(node: Host, slurm: Slurm) -> None:
    async def scenario(transport: Transport) -> None:
        begun = asyncio.Event()

        async def read(_: bytes) -> None:
            begun.set()

        script = "echo begun; read -r line; exit $line"
        input_comes = asyncio.Event()

        async def line() -> AsyncIterator[bytes]:
            await input_comes.wait()
            yield b"7\n"

        running = asyncio.ensure_future(transport.run(["sh", "-c", script], stdin=line(), stdout=read))
        await begun.wait()
        slurm.stop_controller()
        with pytest.raises(PassingError, match="slurmctld does not answer"):
            await transport.run(["true"])
        input_comes.set()
        assert (await running).returncode == 7

    node.use(scenario, 120.0)


def test_credentials_that_slurm_does_not_take_are_told_as_such(
    node: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = Path(os.environ["SLURM_CONF"]).read_text().replace("munge.socket", "no.socket")
    (tmp_path / "slurm.conf").write_text(conf)
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    assert isinstance(lost_while(node, lambda: None), AuthenticationError)


def test_without_srun_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for tool in ("env", "sh"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no srun on this machine" in lost_while(node_of(1), lambda: None).message


def test_cancelling_ends_the_step_while_srun_is_slow(slurm: Slurm) -> None:
    """A stopped srun minds no SIGTERM: it is killed once its time is over, and the step by its name."""
    mark, job = f"flagperf-{uuid.uuid4()}", slurm.allocate("--nodelist=n2")

    def sruns() -> list[int]:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return [pid for pid in pids_with(f"--jobid={job}") if str(pid) in children]

    async def scenario(transport: Transport) -> None:
        running = asyncio.ensure_future(transport.run(["sh", "-c", "sleep 300; :", mark]))
        await eventually(lambda: len(pids_with(mark)) > 0)
        before = sruns()
        assert before
        for pid in before:
            os.kill(pid, signal.SIGSTOP)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert sruns() == []
        await eventually(lambda: pids_with(mark) == [])  # slurmd ends the step that is cancelled

    node_of(job).use(scenario)


@pytest.fixture
def tracking_slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """A cluster whose steps end with all that was started in them, as most sites have it."""
    need_control_groups()
    # its steps' sockets have the names of folder and node in theirs, and 108 characters at most
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        cluster = Slurm(Path(folder), nodes=1, prefix=f"n{uuid.uuid4().hex[:8]}x", control_groups=True)
        speak_to(cluster, monkeypatch)
        with cluster.running():
            yield cluster


def test_what_a_command_leaves_running_goes_on_in_its_step(tracking_slurm: Slurm) -> None:
    """As a unit of the runtime `process` does; the step ends with it."""
    mark = f"flagperf-{uuid.uuid4()}"
    job, node = tracking_slurm.allocate(), tracking_slurm.names[0]

    def steps() -> int:
        return tracking_slurm.run("squeue", "--steps", "--noheader", "--format=%j").count("flagperf-")

    async def scenario(transport: Transport) -> None:
        script = 'setsid sh -c "sleep 300; :" "$0" >/dev/null 2>&1 </dev/null & echo started'
        assert (await checked(transport, ["sh", "-c", script, mark])).stdout == "started\n"
        assert (await transport.run(["sh", "-c", "exit 3"])).returncode == 3
        assert steps() == 2  # that which stays, and one that waits for a command
        sleeping = [
            pid for pid in pids_with(mark) if b"setsid" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        assert len(sleeping) == 1
        os.killpg(sleeping[0], signal.SIGKILL)
        await eventually(lambda: steps() == 1, 90.0)

    node_of(job, node).use(scenario, 120.0)


def test_what_stays_ends_when_the_node_is_let_go_of(tracking_slurm: Slurm) -> None:
    mark = f"flagperf-{uuid.uuid4()}"
    script = 'setsid sh -c "sleep 300; :" "$0" >/dev/null 2>&1 </dev/null &'
    host = node_of(tracking_slurm.allocate(), tracking_slurm.names[0])
    host.use(lambda t: checked(t, ["sh", "-c", script, mark]))
    asyncio.run(eventually(lambda: pids_with(mark) == []))
