"""What Slurm's commands print is read at one place, and what it means for a round follows from it alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from run_benchmarks.hosts.slurm import tenure, visit
from run_benchmarks.hosts.slurm.ends import about_to_end, ended, waits_for_ever
from run_benchmarks.hosts.slurm.holder import ABANDONED, sbatch_argv, script
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.record import (
    LONGEST_FIELD,
    LONGEST_RECORD,
    Job,
    SlurmError,
    UnreadableError,
    energy_in,
    job_in,
)
from run_benchmarks.hosts.slurm.tenure import JobTenure
from run_benchmarks.plan.host_ranges import MOST_HOSTS
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.transports.base import ByteSink, ByteSource, Transport
from utils.records import FailureClass, Verdict

# As Slurm 22.05 printed it, but that the comment has become somebody's attempt.
RECORD = (
    "JobId=17 JobName=flagperf-run20260102030405-abcdef UserId=root(0) GroupId=root(0) Account=(null) QOS=(null) "
    "JobState=RUNNING Reason=None Dependency=(null) Requeue=0 ExitCode=0:0 RunTime=00:00:04 TimeLimit=01:00:00 "
    "SubmitTime=2026-11-28T00:22:20 StartTime=2026-11-28T00:22:25 EndTime=2026-11-28T01:22:25 PreemptTime=None "
    "Partition=batch NodeList=n[1-2] BatchHost=n1 NumNodes=2 TRES=cpu=8,node=2,billing=8 "
    "Comment=JobState=CANCELLED NodeList=evil TresPerNode=gres:gpu:2"
)
# MADE UP after what sacct 22.05 prints (test_accounting.py), with an extern step and energy that none counts here.
SACCT = [
    ["17", "CANCELLED by 1000", "0:0", "00:10:00", "2", ""],
    ["17.batch", "CANCELLED", "0:15", "00:10:00", "1", "60000"],
    ["17.extern", "COMPLETED", "0:0", "00:10:00", "2", "121000"],
    ["17.0", "COMPLETED", "0:0", "00:09:00", "2", "115000"],
]


def job(**fields: str) -> Job:
    return Job("17", fields.pop("JobState", "PENDING"), ("n1", "n2"), "the record", fields)


def test_a_job_is_read_by_the_first_of_its_fields() -> None:
    read = job_in(RECORD)
    assert (read.id, read.state, read.nodes, read.is_live) == ("17", "RUNNING", ("n1", "n2"), True)
    assert read.fields["TRES"] == "cpu=8,node=2,billing=8"
    assert "Account" not in read.fields and "PreemptTime" not in read.fields
    assert read.time("PreemptTime") is None
    assert read.time("EndTime") == (read.time("StartTime") or 0) + 3600


@pytest.mark.parametrize(
    "text", ["", "JobId=1", "JobId=1 JobState=RUNNING NodeList=n[1-", "NodeList=n[1-99999]"]
)
def test_what_is_no_job_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableError, match="cannot be read") as error:
        job_in(text)
    assert "scontrol show job" in error.value.remedy


def test_what_cannot_be_read_is_shown() -> None:
    with pytest.raises(UnreadableError, match=r"NodeList of job 17, 'n\[1-': has a bracket without"):
        job_in(RECORD.replace("n[1-2]", "n[1-"))
    with pytest.raises(UnreadableError, match="there is no JobState: 'JobId=17"):
        job_in(RECORD.replace("JobState", "State"))


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("BadConstraints", "sinfo"),
        ("PartitionDown", "sinfo"),
        ("PartitionTimeLimit", "sinfo"),
        ("JobHeldUser", "scontrol release 17"),
        ("JobHeldAdmin", "scontrol release 17"),
        ("DependencyNeverSatisfied", "HOSTS"),
        ("AssocMaxNodePerJobLimit", "sacctmgr"),
        ("QOSMaxWallDurationPerJobLimit", "sacctmgr"),
        ("AssocGrpCPUMinutesLimit", "sacctmgr"),
        ("InvalidAccount", "sacctmgr"),
    ],
)
def test_reasons_that_no_waiting_ends_have_a_remedy(reason: str, word: str) -> None:
    assert word in waits_for_ever(job(Reason=reason))


@pytest.mark.parametrize(
    "reason",
    ["", "Resources", "Priority", "Dependency", "BeginTime", "Reservation", "Licenses", "QOSMaxJobsPerUserLimit",
     "AssocGrpNodeLimit", "AssocGrpCPURunMinutesLimit", "PartitionConfig",
     "ReqNodeNotAvail,_UnavailableNodes:n1", "ReqNodeNotAvail,_May_be_reserved_for_other_job",
     "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"],
)  # fmt: skip
def test_reasons_that_pass_are_waited_for(reason: str) -> None:
    assert waits_for_ever(job(Reason=reason)) == ""


@pytest.mark.parametrize(
    ("state", "verdict", "kind"),
    [
        ("NODE_FAIL", Verdict.UNREACHABLE, FailureClass.NODE_FAILED),
        ("PREEMPTED", Verdict.FAILED, FailureClass.ALLOCATION_PREEMPTED),
        ("TIMEOUT", Verdict.TIMED_OUT, FailureClass.ALLOCATION_TIME_LIMIT),
        ("OUT_OF_MEMORY", Verdict.FAILED, FailureClass.ALLOCATION_OUT_OF_MEMORY),
        ("CANCELLED", Verdict.FAILED, FailureClass.ALLOCATION_CANCELLED),
        ("BOOT_FAIL", Verdict.FAILED, FailureClass.ALLOCATION_ENDED),
    ],
)
def test_a_state_that_a_job_ends_in_is_a_class_with_its_evidence(
    state: str, verdict: Verdict, kind: FailureClass
) -> None:
    end = ended("17", job(JobState=state), [])
    assert (end.verdict, end.failure_class, end.is_over) == (verdict, kind, True)
    assert (
        state in end.message
        and "the record" in end.evidence
        and f"docs/failures.md, {kind.value}" in end.remedy
    )


def test_a_job_that_ended_itself_for_want_of_a_controller_says_so() -> None:
    end = ended("17", job(JobState="FAILED", ExitCode=f"{ABANDONED}:0"), [])
    assert end.failure_class is FailureClass.ALLOCATION_ENDED
    assert "heard of no controller" in end.message and "abandoned_after" in end.remedy


def test_a_node_that_is_down_is_whose_fault_a_failed_node_is() -> None:
    assert ended("17", job(JobState="NODE_FAIL"), [], ["n2"]).host == "n2"
    assert ended("17", job(JobState="CANCELLED"), [], ["n2"]).host == ""


def test_accounting_names_who_cancelled_a_job_that_slurm_has_forgotten() -> None:
    end = ended("17", None, SACCT)
    assert end.failure_class is FailureClass.ALLOCATION_CANCELLED
    assert "CANCELLED by 1000" in end.message and "17.extern|COMPLETED" in end.evidence
    assert ended("17", None, []).failure_class is FailureClass.ALLOCATION_ENDED


def test_a_preemption_with_grace_is_told_from_a_time_limit() -> None:
    times = {"EndTime": "2026-11-28T01:22:25", "TimeLimit": "01:00:00"}
    assert about_to_end(job(JobState="RUNNING", **times)).failure_class is FailureClass.ALLOCATION_TIME_LIMIT
    preempted = about_to_end(job(JobState="RUNNING", PreemptTime="2026-11-28T01:21:25", **times))
    assert preempted.failure_class is FailureClass.ALLOCATION_PREEMPTED and not preempted.is_over


def test_energy_is_of_the_step_that_is_on_all_nodes_for_all_of_the_time() -> None:
    assert energy_in(SACCT, 2) == 121000.0
    assert energy_in(SACCT, 3) is None  # a step on fewer nodes is not all of it
    assert energy_in([line for line in SACCT if "extern" not in line[0]], 2) is None
    for energy in ("0", "", "9" * 5000):
        assert energy_in([["17.extern", "COMPLETED", "0:0", "1", "2", energy]], 2) is None


def test_a_node_of_its_own_has_all_of_its_memory_unless_the_user_says_so() -> None:
    assert "--mem=0" in sbatch_argv(SlurmSettings(), "name", 2)
    assert "--mem=0" not in sbatch_argv(SlurmSettings(options=("--mem-per-cpu=4G",)), "name", 2)
    assert "--mem=0" not in sbatch_argv(SlurmSettings(exclusive=False), "name", 2)


def test_nodes_to_be_avoided_are_added_to_those_of_the_user() -> None:
    argv = sbatch_argv(SlurmSettings(options=("--exclude=n9",)), "name", 2, {"n2", "n1"})
    assert argv[-1] == "--exclude=n9,n1,n2"


def test_a_job_waits_without_the_token_that_it_was_asked_for_with(tmp_path: Path) -> None:
    """FAKES: a `sleep` that does not, and a `squeue` that shows the variables of the script which calls it."""
    programs = {"sleep": "", "squeue": f"cat /proc/$PPID/environ >{tmp_path}/shown; echo beat"}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "job").write_text(script(SlurmSettings()))
    variables = {"PATH": f"{tmp_path}:{os.defpath}", "SLURM_JWT": "hunter2", "SLURM_JOB_ID": "17"}
    assert subprocess.run(["sh", tmp_path / "job"], env=variables).returncode == ABANDONED
    assert b"SLURM_JOB_ID=17" in (tmp_path / "shown").read_bytes()
    assert b"hunter2" not in (tmp_path / "shown").read_bytes()


def test_a_visit_waits_without_that_token_too(tmp_path: Path) -> None:
    """A FAKE `sleep` shows its variables."""
    (tmp_path / "sleep").write_text(f"#!/bin/sh\nenv >{tmp_path}/shown\n")
    (tmp_path / "sleep").chmod(0o755)
    (tmp_path / "job").write_text(visit.SCRIPT)
    variables = {"PATH": f"{tmp_path}:{os.defpath}", "SLURM_JWT": "hunter2", "SLURM_JOB_ID": "17"}
    assert subprocess.run(["sh", tmp_path / "job"], env=variables).returncode == 0
    assert "SLURM_JOB_ID=17" in (tmp_path / "shown").read_text()
    assert "hunter2" not in (tmp_path / "shown").read_text()


def test_of_the_shell_a_job_has_its_rights_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rights = {"SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_WCKEY"}
    others = {"SBATCH_EXPORT", "SBATCH_ARRAY_INX", "SBATCH_WAIT", "SBATCH_GRES", "SBATCH_ACCTG_FREQ"}
    for name in rights | others:
        monkeypatch.setenv(name, "x")
    argv = ("sh", "-c", f"env >{tmp_path}/shown; echo 17")
    assert asyncio.run(Slurm().submit(argv, "")) == "17"
    lines = (tmp_path / "shown").read_text().splitlines()
    assert {line.removesuffix("=x") for line in lines if line.startswith("SBATCH_")} == rights


class Answering(Transport):
    """FAKE: a machine on which Slurm's commands print what the test says."""

    def __init__(self, code: int, out: str = "", err: str = "") -> None:
        super().__init__("here")
        self.answer = (code, out, err)

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        code, out, err = self.answer
        await stdout(out.encode())
        return code, err


def test_a_machine_without_slurm_is_told_so() -> None:
    with pytest.raises(SlurmError, match="there is no sbatch on this machine") as error:
        asyncio.run(Slurm(Answering(127)).submit(("sbatch",), ""))
    assert "log in" in error.value.remedy or "login" in error.value.remedy


@pytest.mark.parametrize("printed", ["", "Submitted\n", "12 34 --partition\n", "0x7\n"])
def test_what_sbatch_prints_becomes_no_word_of_a_command_unless_it_is_a_number(printed: str) -> None:
    with pytest.raises(SlurmError, match="printed no job ID"):
        asyncio.run(Slurm(Answering(0, printed)).submit(("sbatch",), ""))
    assert asyncio.run(Slurm(Answering(0, "17;cluster\n")).submit(("sbatch",), "")) == "17"


def test_a_record_is_read_whole_and_shown_in_part() -> None:
    names = [f"{number:x}{'-of-a-rack' * 18}" for number in range(MOST_HOSTS)]
    record = RECORD.replace("n[1-2]", ",".join(names))
    read = asyncio.run(Slurm(Answering(0, record)).look("17"))
    assert read and read.nodes == tuple(names) and read.fields["NumNodes"] == "2"
    assert len(read.text) < LONGEST_RECORD + 100 and len(read.fields["NodeList"]) < LONGEST_FIELD + 100


@pytest.mark.parametrize("program", ["scontrol", "squeue"])
def test_a_command_that_prints_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """FAKES of Slurm's commands, which never stop by themselves."""
    (tmp_path / program).write_text("#!/bin/sh\nexec yes JobId=17\n")
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    asked = Slurm().look("17") if program == "scontrol" else Slurm().named("x")
    with pytest.raises(UnreadableError, match=f"what `{program}` prints cannot be read: more than .* bytes"):
        asyncio.run(asked)


HOUR = timedelta(hours=1)


def lasting(begin: timedelta, end: timedelta) -> Job:
    """A job that runs from then to then, as seen from now."""
    now = datetime.now().replace(microsecond=0)
    return job(JobState="RUNNING", StartTime=(now + begin).isoformat(), EndTime=(now + end).isoformat())


@pytest.mark.parametrize(
    ("begin", "end", "is_near"),
    [
        (-HOUR, HOUR, False),
        (-HOUR, timedelta(seconds=90), True),
        (-HOUR, timedelta(seconds=-30), True),  # Slurm is about to end it
        (-10 * HOUR, -HOUR, False),
        (-HOUR, -2 * HOUR, False),
        (2 * HOUR, timedelta(seconds=90), False),
    ],
)
def test_an_end_that_cannot_be_is_none_and_told_once(
    begin: timedelta, end: timedelta, is_near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(tenure.LOGGER, "warning", warnings.append)
    seen = lasting(begin, end)
    kept = JobTenure(Slurm(), seen, save_before=120)
    assert [kept.is_near_end(seen) for _ in range(2)] == [is_near] * 2
    is_odd = not is_near and end < HOUR
    assert len(warnings) == is_odd
    assert not is_odd or f"has {seen.fields['EndTime']} as the end of job 17" in warnings[0]


def test_no_text_in_a_nodes_line_speaks_of_another_node() -> None:
    """MADE UP after what scontrol 22.05 prints: why a node was drained holds what looks like another's fields."""
    lines = (
        "NodeName=n1 Arch=x86_64 NodeAddr=10.0.0.1 NodeHostName=n1 OS=Linux 6.1 State=ALLOCATED",
        "NodeName=n2 Arch=x86_64 NodeAddr=10.0.0.2 NodeHostName=n2 OS=Linux 6.1 State=ALLOCATED "
        "Reason=checked: NodeName=n1 NodeAddr=10.6.6.6 State=DOWN [root@2026-11-28T00:22:20]",
        "NodeName=n9 NodeAddr=10.0.0.9 State=DOWN",
    )
    slurm = Slurm(Answering(0, "\n".join(lines)))
    assert asyncio.run(slurm.addresses(["n1", "n2"])) == {"n1": "10.0.0.1", "n2": "10.0.0.2"}
    assert asyncio.run(slurm.down(["n1", "n2"])) == []
