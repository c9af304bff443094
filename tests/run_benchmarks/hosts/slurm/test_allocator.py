"""Hosts that a real Slurm grants; the commands on them are this machine's own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.base import AllocationError
from run_benchmarks.hosts.granted import AllocationEnd
from run_benchmarks.hosts.slurm import queue, tenure
from run_benchmarks.hosts.slurm.allocator import SlurmHosts
from run_benchmarks.hosts.slurm.jobs import Slurm as Jobs
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.builders import make_case
from tests.slurm.slurm import Slurm
from utils.errors import FlagPerfError
from utils.records import FailureClass, Verdict

RUN = "run20260102030405-abcdef"
PATIENCE_S = 120.0
ROOT = Path(__file__).resolve().parents[4]
TWO = replace(make_case(), hosts=())


def hosts_of(settings: SlurmSettings, run: str = RUN, most: int = 2) -> SlurmHosts:
    return SlurmHosts(settings, run, most, lambda job, node: LocalTransport(node))


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm is asked every half second, and not only where somebody may wait for long."""
    monkeypatch.setattr(tenure, "LOOK_S", 0.5)
    monkeypatch.setattr(queue, "LONGEST_S", 0.5)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the user is warned of."""
    lines: list[str] = []
    monkeypatch.setattr(queue.LOGGER, "warning", lines.append)
    return lines


@pytest.fixture
def info(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is logged for the user."""
    lines: list[str] = []
    monkeypatch.setattr(queue.LOGGER, "info", lines.append)
    return lines


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a state."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


def in_time(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, PATIENCE_S)

    return asyncio.run(bounded())


def test_a_round_has_the_nodes_of_a_job_and_gives_them_back(slurm: Slurm) -> None:
    async def scenario() -> None:
        async with hosts_of(SlurmSettings(time="10", options=("--gres=gpu:2",))).acquire(TWO) as allocation:
            assert [host.name for host in allocation.hosts] == ["n1", "n2"]
            assert {host.address for host in allocation.hosts} == {"127.0.0.1"}
            assert allocation.tenure is not None
            job = await allocation.tenure.record()
            assert slurm.job(int(job.job))["Requeue"] == "0"
            assert (job.scheduler, job.state, job.nodes, job.partition) == (
                "slurm",
                "RUNNING",
                ("n1", "n2"),
                "batch",
            )
            assert "node=2" in job.tres and "gpu:2" in job.per_node
            assert job.waited_s is not None and job.energy_j is None
        assert slurm.jobs() == {}
        assert (await allocation.tenure.record()).state == "RUNNING"  # cancelled by ourselves alone

    in_time(scenario())


def environments_of(job: str) -> dict[bytes, bytes]:
    """Of the processes of a job on its nodes, by PID and command line."""
    environments = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            argv, variables = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            if f"SLURM_JOB_ID={job}\0".encode() in variables:
                environments[folder.name.encode() + argv] = variables
    return environments


def test_nothing_of_the_controllers_environment_waits_on_the_nodes(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FLAGPERF_SECRET", "SLURM_OTHER"):
        monkeypatch.setenv(name, "hunter2")

    async def scenario() -> None:
        async with hosts_of(SlurmSettings()).acquire(TWO) as allocation:
            assert allocation.tenure is not None
            job = (await allocation.tenure.record()).job
            allocation.tenure.at_end("true")

            def waits_everywhere() -> bool:
                return sum(b"sh\0-c\0script=" in argv for argv in environments_of(job)) == 2

            await until(waits_everywhere)
            assert not any(b"hunter2" in variables for variables in environments_of(job).values())
            await allocation.tenure.close()

    in_time(scenario())


def test_a_job_waits_in_the_queue_and_its_place_is_shown(slurm: Slurm, info: list[str]) -> None:
    first = slurm.allocate("--nodes=3", "--exclusive", "--time=10")
    slurm.submit("true", "--nodes=3", "--exclusive")

    async def scenario() -> None:
        async def let_go() -> None:
            await until(lambda: any("waits in batch: place 2 of 2" in line for line in info))
            slurm.run("scancel", str(first))

        letting_go = asyncio.create_task(let_go())
        async with hosts_of(SlurmSettings()).acquire(TWO) as allocation:
            assert len(allocation.hosts) == 2
        await letting_go

    in_time(scenario())
    (line, *_) = [line for line in info if "place 2 of 2" in line]
    assert "Resources" in line or "Priority" in line
    assert "expected" in line


def test_a_job_that_waits_is_cancelled_with_who_waits_for_it(slurm: Slurm) -> None:
    first = slurm.allocate("--nodes=3", "--exclusive")

    async def scenario() -> None:
        waiting = asyncio.create_task(hosts_of(SlurmSettings()).acquire(TWO).__aenter__())
        await until(lambda: len(slurm.jobs()) == 2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    in_time(scenario())
    assert slurm.jobs() == {first: "RUNNING"}


@pytest.mark.parametrize(
    ("options", "time_limit", "words"),
    [
        (("--partition=nowhere",), "", "invalid partition specified: nowhere"),
        (("--constraint=fast",), "", "Invalid feature specification"),
        (("--partition=short",), "10", "would wait for ever: PartitionTimeLimit"),
        (("--hold",), "", "would wait for ever: JobHeldUser"),
    ],
)
def test_what_never_comes_is_refused_with_slurms_reason(
    slurm: Slurm, options: tuple[str, ...], time_limit: str, words: str
) -> None:
    async def scenario() -> None:
        async with hosts_of(SlurmSettings(options=options, time=time_limit)).acquire(TWO):
            pass

    with pytest.raises(AllocationError, match=words) as refused:
        in_time(scenario())
    assert refused.value.failure_class is FailureClass.HOSTS_NOT_ACQUIRED
    assert slurm.jobs() == {}


def ended_by(slurm: Slurm, what: Callable[[int], object], settings: SlurmSettings) -> AllocationEnd:
    """How an allocation ends after `what` was done to its job."""

    async def scenario() -> AllocationEnd:
        async with hosts_of(settings).acquire(TWO) as allocation:
            assert allocation.tenure is not None
            job = int((await allocation.tenure.record()).job)
            ending = asyncio.create_task(allocation.tenure.end())
            await asyncio.to_thread(what, job)
            return await ending

    end: AllocationEnd = in_time(scenario())
    return end


def test_a_job_that_somebody_cancels_is_told_of(slurm: Slurm) -> None:
    end = ended_by(slurm, lambda job: slurm.run("scancel", str(job)), SlurmSettings())
    assert (end.verdict, end.failure_class, end.is_over) == (
        Verdict.FAILED,
        FailureClass.ALLOCATION_CANCELLED,
        True,
    )
    assert "JobState=CANCELLED" in end.evidence
    assert slurm.jobs() == {}


def test_one_job_is_kept_for_all_rounds_that_fit_where_that_is_asked(slurm: Slurm) -> None:
    one = replace(make_case(("h1",), name="toy:pytorch:X1:1:1:1"), hosts=())
    one = replace(one, settings=replace(one.settings, nnodes=1))

    async def scenario() -> None:
        hosts = hosts_of(SlurmSettings(hold=True))
        async with hosts.acquire(one) as first:
            assert [host.name for host in first.hosts] == ["n1"]
            assert first.tenure is not None
            job = (await first.tenure.record()).job
        assert slurm.jobs() == {int(job): "RUNNING"}
        async with hosts.acquire(TWO) as second:
            assert [host.name for host in second.hosts] == ["n1", "n2"]
            assert second.tenure is not None
            assert (await second.tenure.record()).job == job
            slurm.run("scancel", job)
        async with hosts.acquire(TWO) as third:
            assert third.tenure is not None
            assert (await third.tenure.record()).job != job
        await hosts.close()

    in_time(scenario())
    assert slurm.jobs() == {}


def test_a_node_by_whose_fault_a_round_failed_is_not_asked_for_again(slurm: Slurm) -> None:
    async def scenario() -> None:
        hosts = hosts_of(SlurmSettings())
        hosts.avoid("n1")
        async with hosts.acquire(TWO) as allocation:
            assert [host.name for host in allocation.hosts] == ["n2", "n3"]

    in_time(scenario())


@pytest.fixture
def drained(slurm: Slurm) -> Iterator[str]:
    """A node that is to have no jobs."""
    slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=test")
    yield "n3"
    slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")


def test_of_nodes_that_are_avoided_the_oldest_comes_back_where_others_are_too_few(
    slurm: Slurm, warnings: list[str]
) -> None:

    async def scenario() -> None:
        hosts = hosts_of(SlurmSettings())
        for node in ("n1", "n2", "n1"):
            hosts.avoid(node)
        async with hosts.acquire(TWO) as allocation:
            assert [host.name for host in allocation.hosts] == ["n2", "n3"]

    in_time(scenario())
    assert warnings == ["Slurm has too few nodes for the job without n2, which is not avoided any more"]


def test_no_node_is_avoided_where_the_job_would_wait_for_one_that_is_drained(
    slurm: Slurm, drained: str
) -> None:
    async def scenario() -> None:
        hosts = hosts_of(SlurmSettings())
        hosts.avoid("n1")
        async with hosts.acquire(TWO) as allocation:
            assert [host.name for host in allocation.hosts] == ["n1", "n2"]

    in_time(scenario())


def test_nodes_that_others_have_are_waited_for_rather_than_those_that_failed(
    slurm: Slurm, info: list[str], warnings: list[str]
) -> None:
    first = slurm.allocate("--nodelist=n3", "--exclusive")

    async def scenario() -> None:
        async def let_go() -> None:
            await until(lambda: any("waits in batch" in line for line in info))
            slurm.run("scancel", str(first))

        hosts = hosts_of(SlurmSettings())
        hosts.avoid("n1")
        letting_go = asyncio.create_task(let_go())
        async with hosts.acquire(TWO) as allocation:
            assert [host.name for host in allocation.hosts] == ["n2", "n3"]
        await letting_go

    in_time(scenario())
    assert warnings == []


def test_a_slurm_that_does_not_answer_takes_nothing_away(slurm: Slurm) -> None:
    async def scenario() -> None:
        async with hosts_of(SlurmSettings()).acquire(TWO) as allocation:
            assert allocation.tenure is not None
            ending = asyncio.create_task(allocation.tenure.end())
            slurm.stop_controller()
            await asyncio.sleep(2.0)
            slurm.start_controller()
            await until(lambda: "idle" in slurm.states().values())  # the third node
            assert not ending.done()
            ending.cancel()

    in_time(scenario())
    assert slurm.jobs() == {}


# Holds a job until it is killed: argv: run, abandoned_after.
CONTROLLER = """
import asyncio, sys
from dataclasses import replace
from run_benchmarks.plan.slurm import SlurmSettings
from tests.run_benchmarks.hosts.slurm.test_allocator import TWO, hosts_of

async def hold():
    async with hosts_of(SlurmSettings(abandoned_after=float(sys.argv[2])), run=sys.argv[1]).acquire(TWO):
        print("held", flush=True)
        await asyncio.sleep(300)

asyncio.run(hold())
"""


def kill_a_controller(run: str, abandoned_after: float) -> None:
    """Let one have a job, and kill it."""
    command = [sys.executable, "-c", CONTROLLER, run, str(abandoned_after)]
    controller = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/training"}, stdout=subprocess.PIPE
    )
    assert controller.stdout is not None and controller.stdout.readline() == b"held\n"
    controller.send_signal(signal.SIGKILL)
    controller.wait()


@pytest.mark.parametrize("gres", ["gpu:99", "tpu:1"])
def test_of_devices_that_no_node_has_it_is_said_what_there_is(slurm: Slurm, gres: str) -> None:
    async def scenario() -> None:
        async with hosts_of(SlurmSettings(options=(f"--gres={gres}",))).acquire(TWO):
            pass

    with pytest.raises(FlagPerfError) as refused:
        in_time(scenario())
    assert "correct gres" in refused.value.remedy and "%G" in refused.value.remedy, refused.value.message
    assert slurm.jobs() == {}


def test_a_round_that_is_taken_up_after_its_job_has_ended_says_by_what(slurm: Slurm) -> None:
    kill_a_controller(RUN, 600)
    (job,) = slurm.jobs()
    slurm.run("scancel", str(job))
    slurm.wait_for_no_job()

    async def scenario() -> None:
        async with hosts_of(SlurmSettings()).acquire(replace(TWO, hosts=("n1", "n2"))):
            pass

    with pytest.raises(AllocationError) as refused:
        in_time(scenario())
    assert refused.value.end is not None
    assert refused.value.end.failure_class is FailureClass.ALLOCATION_CANCELLED


def test_of_jobs_with_odd_names_none_hides_the_others_or_is_taken_for_one(slurm: Slurm) -> None:
    """Slurm takes any characters: a name may be blank, or hold a line that says there is a job."""
    names = ("flagperf-run1-round1", "\x0b", "x\nflagperf-run2-round1 7 RUNNING\ny", "x\n7 RUNNING")
    jobs = [slurm.submit("true", "--hold", f"--job-name={name}") for name in names]
    try:
        left = asyncio.run(Jobs().names("flagperf-"))
        assert left == {names[0]: [(f"job {jobs[0]}", "PENDING")]}
        asyncio.run(Jobs().end(names[0]))
        assert asyncio.run(Jobs().names("flagperf-")) == {}
    finally:
        slurm.run("scancel", *map(str, jobs))


def test_a_search_without_a_node_that_failed_is_taken_up_on_the_others(slurm: Slurm) -> None:
    async def scenario() -> None:
        search = replace(TWO, roles=("controller", "worker"))
        async with hosts_of(SlurmSettings()).acquire(search) as first:
            names = tuple(host.name for host in first.hosts)
            await asyncio.to_thread(slurm.kill_node, names[1])
            await asyncio.to_thread(slurm.wait_for, {names[1]: "down*"})
            again = replace(search, hosts=names)
            (job,) = slurm.jobs()
            async with hosts_of(SlurmSettings()).acquire(again) as second:
                assert tuple(host.name for host in second.hosts) == names
                assert second.tenure and second.tenure.id == str(job)
                assert slurm.jobs() == {job: "RUNNING"}

    in_time(scenario())


def test_a_search_is_taken_up_without_a_node_that_slurm_knows_no_more(slurm: Slurm) -> None:
    async def scenario() -> None:
        search = replace(TWO, roles=("controller", "worker"))
        async with hosts_of(SlurmSettings()).acquire(search) as first:
            (job,) = slurm.jobs()
            names = (first.hosts[0].name, "removed")
            async with hosts_of(SlurmSettings()).acquire(replace(search, hosts=names)) as second:
                assert [(host.name, host.address) for host in second.hosts] == [
                    (names[0], "127.0.0.1"),
                    ("removed", "removed"),
                ]
                assert slurm.jobs() == {job: "RUNNING"}

    in_time(scenario())


def test_a_search_whose_first_node_failed_says_so_when_it_is_taken_up(slurm: Slurm) -> None:
    async def scenario() -> None:
        search = replace(TWO, roles=("controller", "worker"))
        async with hosts_of(SlurmSettings()).acquire(search) as first:
            names = tuple(host.name for host in first.hosts)
            await asyncio.to_thread(slurm.kill_node, names[0])
            await asyncio.to_thread(slurm.wait_for, {names[0]: "down*"})
            assert set(slurm.jobs().values()) == {"RUNNING"}
            async with hosts_of(SlurmSettings()).acquire(replace(search, hosts=names)):
                pass

    with pytest.raises(AllocationError, match=r"a node of the job failed \(n1, ") as refused:
        in_time(scenario())
    end = refused.value.end
    assert end and (end.failure_class, end.host) == (FailureClass.NODE_FAILED, "n1")


def test_a_search_goes_on_without_a_node_that_fails(slurm: Slurm, tmp_path: Path) -> None:
    """Also what is to be done on the others at the job's end waits there."""

    async def scenario() -> None:
        async with hosts_of(SlurmSettings()).acquire(
            replace(TWO, roles=("controller", "worker"))
        ) as allocation:
            assert allocation.tenure is not None
            job = (await allocation.tenure.record()).job
            allocation.tenure.at_end(f'touch "{tmp_path}/$SLURMD_NODENAME"')
            await until(lambda: sum(b"script=" in argv for argv in environments_of(job)) == 2)
            ending = asyncio.create_task(allocation.tenure.end())
            first, second = (host.name for host in allocation.hosts)
            await asyncio.to_thread(slurm.kill_node, second)
            await asyncio.to_thread(slurm.wait_for, {second: "down*"})
            assert slurm.jobs() == {int(job): "RUNNING"} and not ending.done()
            ending.cancel()
        assert [each.name for each in tmp_path.iterdir()] == [first]

    in_time(scenario())
    assert slurm.jobs() == {}
