"""A disk is full: on a node, on the controller; file systems in memory, of a few MB, that are really full."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import containers
from tests.run_benchmarks.faults.pairs import Pair, made_in_rank
from tests.run_benchmarks.faults.seen import Seen, fault

WORK = "/var/lib/flagperf-test"
MB = 2**20
STEPS = 30
# Rank `rank` writes so much at its second step.
WRITES = """\
if rank == {rank} and step == 2:
    fault()
    for _ in range({megabytes}):
        print("x" * 2**20, flush=True)
"""


@pytest.fixture
def small_disk(two_hosts: Lab) -> Iterator[Callable[[int, str], None]]:
    """Gives FlagPerf's folder on a host a file system of its own, of a size in tmpfs' notation."""
    with ExitStack() as mounted:

        def mount(host: int, size: str) -> None:
            script = f"mkdir -p {WORK} && mount -t tmpfs -o size={size} tmpfs {WORK}"
            two_hosts.ssh(host, "sh", "-c", script)
            mounted.callback(lambda: two_hosts.ssh(host, "umount", "--lazy", WORK))

        yield mount


@contextmanager
def small_result_disk(pair: Pair, size: str) -> Iterator[Path]:
    """The controller's log path is a file system of its own."""
    folder = pair.bench.folder / "result"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@fault("full-deploy")
def test_a_node_has_no_room_for_the_code(
    pair: Pair, small_disk: Callable[[int, str], None], seen: Seen
) -> None:
    pair.configure(STEPS, MIN_FREE_DISK_GIB=1e-6)
    small_disk(2, "200k")
    seen.made()
    ended = pair.bench.run()

    seen.run(ended.folder)
    assert "df -h" in pair.assert_in_order(ended)["failure"]["remedy"]


@fault("full-training")
def test_a_nodes_disk_fills_up_in_training(
    pair: Pair, small_disk: Callable[[int, str], None], seen: Seen
) -> None:
    pair.configure(STEPS, WRITES.format(rank=1, megabytes=64), MIN_FREE_DISK_GIB=1e-6)
    small_disk(2, "24m")
    ended = pair.bench.run()
    assert ended.folder, ended.output

    made_in_rank(seen, ended.folder)
    seen.run(ended.folder)
    assert "df -h" in pair.assert_in_order(ended)["failure"]["remedy"]


@fault("full-collect")
def test_the_controller_has_no_room_for_a_log(pair: Pair, seen: Seen) -> None:
    """Rank 0's events were followed while it trained; the log itself stays on the host."""
    pair.configure(STEPS, WRITES.format(rank=0, megabytes=64))
    with small_result_disk(pair, "24m"):
        seen.made()
        ended = pair.bench.run()

        seen.run(ended.folder)
        assert ended.folder is not None
        (result,) = ended.rounds()
        assert any("no room for it on the controller" in note for note in result["notes"]), result["notes"]


@fault("full-controller")
def test_the_controllers_disk_fills_up_in_training(pair: Pair, seen: Seen) -> None:
    """Nothing is believed that could not be written; once there is room, the run is taken up and nothing is lost."""
    pair.configure(100)
    with small_result_disk(pair, "8m") as folder:
        with pair.training() as process:
            subprocess.run(["dd", "if=/dev/zero", f"of={folder}/filler", "bs=4k"], capture_output=True)
            seen.made()
        ended = pair.bench.ended(process)
        assert ended.code == 1 and ended.output.count("cannot be written; the run goes on") == 1, ended.output
        assert [containers(pair.lab, host) for host in (1, 2)] == ["", ""]
        (folder / "filler").unlink()
        ended = pair.bench.run("resume")
        seen.run(ended.folder)
        pair.assert_whole(ended, 100)
