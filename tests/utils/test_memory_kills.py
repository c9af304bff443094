"""The kernel's counters of those that it killed for want of memory, as both versions of control groups have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from utils.memory_kills import Kills, kills


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


V2 = "low 0\nhigh 0\nmax 31\noom 2\noom_kill 3\noom_group_kill 0\n"
V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
HOST = "nr_free_pages 1\noom_kill 7\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/memory.events": V2, "sys/memory.max": "max\n"}, Kills(3, 2)),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/a/b/memory.events": V2,
                "sys/a/b/memory.max": "62914560\n",
                "sys/a/b/memory.peak": "62910464\n",
            },
            Kills(3, 2, 62914560, 62910464),
        ),
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/1\n0::/\n",
                "sys/memory/memory.oom_control": V1,
                "sys/memory/memory.limit_in_bytes": "62914560\n",
                "sys/memory/memory.max_usage_in_bytes": "62910464\n",
            },
            Kills(3, 3, 62914560, 62910464),
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/user\n",
                "sys/memory/user/memory.oom_control": V1,
                "sys/memory/user/memory.limit_in_bytes": "9223372036854771712\n",
            },
            Kills(3, 0),
        ),
        ({"proc/self/cgroup": "0::/\n", "proc/vmstat": HOST}, Kills(7, 0)),
        ({"proc/self/cgroup": "nonsense\n"}, Kills(0, 0)),
        ({}, Kills(0, 0)),
    ],
    ids=["v2-own", "v2-path", "v1-limited", "v1-unlimited", "host", "odd", "nothing"],
)
def test_counters(files: dict[str, str], expected: Kills, tmp_path: Path) -> None:
    write(tmp_path, files)
    assert kills(tmp_path / "proc", tmp_path / "sys") == expected


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (Kills(1, 4), ""),
        (Kills(2, 4), "[MemoryKill] host\n"),
        (Kills(2, 5), "[MemoryKill] control group\n"),
        (Kills(2, 5, 7), "[MemoryKill] control group limit_bytes=7\n"),
        (Kills(2, 5, 7, 6), "[MemoryKill] control group limit_bytes=7 peak_bytes=6\n"),
    ],
)
def test_what_is_written_of_them(now: Kills, line: str) -> None:
    assert now.line_since(Kills(1, 4)) == line
