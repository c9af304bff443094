"""What the task's control group uses, of trees as both versions of cgroups have them. Of real ones see the rounds."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from run_benchmarks.results.telemetry_file import read_telemetry
from utils.control_groups import IDENTITY_FILE, identity, read_identity, write_identity
from utils.monitors import task
from utils.monitors.schedule import run_monitors
from utils.monitors.source import SourceUnavailableError
from utils.monitors.task import TaskUse

UNIFIED = {
    "cpu.stat": "usage_usec 12500000\nuser_usec 1\nnr_throttled 4\nthrottled_usec 250000\n",
    "memory.current": "1073741824\n",
    "memory.peak": "2147483648\n",
    "memory.max": "max\n",
    "memory.events": "low 0\noom 2\noom_kill 1\n",
    "io.stat": "259:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=7\n253:0 rbytes=4096 wbytes=8192\n259:1 rbytes=1\n",
}
SEPARATE = {
    "cpu/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 250000000\n",
    "cpuacct/cpuacct.usage": "12500000000\n",
    "memory/memory.usage_in_bytes": "1073741824\n",
    "memory/memory.max_usage_in_bytes": "2147483648\n",
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    "blkio/blkio.throttle.io_service_bytes_recursive": (
        "259:0 Read 4096\n259:0 Write 8192\n259:0 Total 12288\n253:0 Read 1\nTotal 12288\n"
    ),
}
GROUP = "system.slice/docker-0123.scope"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def sys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /sys with two disks and one that is built of them; the monitor's group is none of its."""
    monkeypatch.setattr(task, "identity", dict)
    for name, number in (("nvme0n1", "259:0"), ("nvme1n1", "259:1"), ("dm-0", "253:0")):
        write(tmp_path / "sys/class/block" / name / "dev", f"{number}\n")
    for name in ("nvme0n1", "nvme1n1"):
        (tmp_path / "sys/class/block" / name / "device").mkdir()
    return tmp_path / "sys"


def unified(sys: Path) -> Path:
    """Groups of version 2; the folder of the task's."""
    write(sys / "fs/cgroup/cgroup.controllers", "cpu io memory\n")
    for name, text in UNIFIED.items():
        write(sys / "fs/cgroup" / GROUP / name, text)
    (sys / "fs/cgroup/user.slice/user-0.slice").mkdir(parents=True)
    return sys / "fs/cgroup" / GROUP


def separate(sys: Path) -> dict[str, int]:
    """Groups of version 1; what the task's launcher says of its own."""
    for name, text in SEPARATE.items():
        hierarchy, _, file = name.partition("/")
        write(sys / "fs/cgroup" / hierarchy / GROUP / file, text)
    return {
        name: (sys / "fs/cgroup" / name / GROUP).stat().st_ino
        for name in ("cpu", "cpuacct", "memory", "blkio")
    }


def opened(sys: Path, folder: Path, identity: Mapping[str, object] | None) -> TaskUse:
    if identity is not None:
        (folder / IDENTITY_FILE).write_text(json.dumps(identity))
    source = TaskUse(folder, sys)
    source.open()
    return source


@pytest.mark.parametrize("version", [1, 2])
def test_the_accounts_of_both_versions_are_the_same_readings(sys: Path, tmp_path: Path, version: int) -> None:
    groups = separate(sys) if version == 1 else {".": unified(sys).stat().st_ino}
    (sample,) = opened(sys, tmp_path, groups).sample(1_000)
    assert (sample.cpu_s, sample.cpu_limited_s, sample.memory_kills) == (12.5, 0.25, 1)
    assert (sample.memory_used_mib, sample.memory_peak_mib, sample.memory_total_mib) == (1024, 2048, None)
    assert (sample.read_bytes, sample.written_bytes) == (4096 + (version == 2), 8192), "no disk counts twice"


def test_there_is_nothing_to_say_before_the_task_and_after_it(sys: Path, tmp_path: Path) -> None:
    group = unified(sys)
    source = opened(sys, tmp_path, None)
    assert list(source.sample(1_000)) == []
    opened(sys, tmp_path, {".": group.stat().st_ino})
    assert len(source.sample(2_000)) == 1
    group.rename(sys / "gone")
    assert list(source.sample(3_000)) == []


def test_a_group_that_the_monitor_is_in_too_is_not_the_tasks(
    sys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = unified(sys)
    inside = group / "below"
    inside.mkdir()
    for own in (group, inside):
        monkeypatch.setattr(task, "identity", lambda own=own: {".": own.stat().st_ino})
        with pytest.raises(SourceUnavailableError, match=r"no control group of its own.*`process`"):
            opened(sys, tmp_path, {".": group.stat().st_ino}).sample(1_000)


def test_the_last_word_on_a_source_that_turns_out_to_be_none_is_why(sys: Path, tmp_path: Path) -> None:
    unified(sys)
    source = opened(sys, tmp_path, {".": 1})
    (sampler,) = run_monitors([(source, 0.01)], tmp_path, threading.Event(), ticks=5)
    info = read_telemetry(tmp_path / "telemetry.jsonl").info("task")
    assert info and info.reason == f"the task's control group is none of those below {sys}/fs/cgroup"
    assert (sampler.counts.sampled, sampler.counts.failed) == (0, 0)


def test_a_task_chooses_among_the_hosts_groups_and_no_link_leads_out(sys: Path, tmp_path: Path) -> None:
    unified(sys)
    outside = tmp_path / "outside"
    write(outside / "cpu.stat", "usage_usec 1\n")
    (sys / "fs/cgroup/link").symlink_to(outside)
    with pytest.raises(SourceUnavailableError, match="none of those below"):
        opened(sys, tmp_path, {".": outside.stat().st_ino, "../../..": 1, "memory": 2}).sample(1_000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nonsense",
        '{".": "1"}',
        '{".": true}',
        '{".": 1.5}',
        "{" * 4096,
        " " * 5000 + "{}",
        "\udcff",
    ],
)
def test_a_word_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / IDENTITY_FILE).write_text(text, errors="surrogateescape")
    with pytest.raises(ValueError, match=r"."):
        read_identity(tmp_path)


def test_a_word_is_a_file_and_neither_a_link_nor_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / IDENTITY_FILE).symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        read_identity(tmp_path)
    (tmp_path / IDENTITY_FILE).unlink()
    os.mkfifo(tmp_path / IDENTITY_FILE)
    with pytest.raises(ValueError, match="is no file"):
        read_identity(tmp_path)


def test_a_process_leaves_word_of_its_own_groups(tmp_path: Path) -> None:
    write_identity(tmp_path)
    groups = read_identity(tmp_path)
    assert groups == identity() and groups
    assert not list(tmp_path.glob("*.new"))


def test_without_control_groups_the_reason_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=f"no control groups below {tmp_path}"):
        TaskUse(tmp_path, tmp_path).open()
