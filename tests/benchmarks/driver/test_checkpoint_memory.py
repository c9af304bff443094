"""A checkpoint that no memory holds costs no round: the one before it is gone on from."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.driver import checkpoint_files, run_state
from benchmarks.driver.checkpoint_files import COPIES, read_newest, write_checkpoint
from benchmarks.driver.counters import TrainingCounters
from benchmarks.driver.free_memory import free_memory
from benchmarks.driver.run_state import Saver, restore
from tests.benchmarks.driver.engines import engine_starter
from tests.benchmarks.driver.ranks import environment
from utils.checkpoints import CONTINUE_FROM
from utils.errors import FlagPerfError
from utils.manifest import sha256_of

OLDER, NEWER = "step00000001.ckpt", "step00000002.ckpt"
ALTERED = f"{NEWER} is cut off or altered: its SHA-256 is not the one beside it"
MIB = 1 << 20
# It may have 128 MiB more than it has.
READER = """
import resource, sys
from pathlib import Path
from benchmarks.driver.checkpoint_files import read_newest
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (128 << 20),) * 2)
path, data, skipped = read_newest(Path(sys.argv[1]))
print(path.name, data.decode(), *skipped, sep="\\n")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With two checkpoints."""
    for step in (1, 2):
        write_checkpoint(tmp_path, step, lambda path: [path.write_bytes(b"whole"), None][1])
    return tmp_path


def read_with_little_memory(folder: Path) -> list[str]:
    command = [sys.executable, "-c", READER, str(folder)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_does_not_match_its_checksum_is_never_held_in_memory(folder: Path) -> None:
    os.truncate(folder / NEWER, 512 * MIB)
    assert read_with_little_memory(folder) == [OLDER, "whole", ALTERED]


def test_what_matches_and_does_not_fit_is_passed_over(folder: Path) -> None:
    os.truncate(folder / NEWER, 512 * MIB)
    (folder / f"{NEWER}.sha256").write_text(f"{sha256_of(folder / NEWER)}  {NEWER}\n")
    why = f"{NEWER} does not fit into the memory that this process may have"
    assert read_with_little_memory(folder) == [OLDER, "whole", why]


def test_a_checksum_of_any_size_fills_no_memory(folder: Path) -> None:
    os.truncate(folder / f"{NEWER}.sha256", 512 * MIB)
    path, data, why = read_with_little_memory(folder)
    assert (path, data, len(why) < 2000) == (OLDER, "whole", True)
    assert why.startswith(f"{NEWER} may be of another step: {NEWER}.sha256 is the checksum of ")


def test_what_is_larger_than_the_memory_is_not_even_hashed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with holes may be of any size, and hashing it takes hours."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    os.truncate(folder / NEWER, 2 * memory)

    def hashed(path: Path) -> str:
        assert path.name == OLDER
        return sha256_of(path)

    monkeypatch.setattr(checkpoint_files, "sha256_of", hashed)
    path, _, (why,) = read_newest(folder, free_memory())
    assert path.name == OLDER
    assert why.startswith(
        f"{NEWER} takes {2 * memory / 2**30:.1f} GiB, 2 times in each rank as it is loaded, "
    )
    assert why.endswith(" of memory are free for a rank")


def test_what_changes_once_it_is_hashed_is_not_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hashed(path: Path) -> str:
        digest = sha256_of(path)
        if path.name == NEWER:
            path.write_bytes(b"other")
        return digest

    monkeypatch.setattr(checkpoint_files, "sha256_of", hashed)
    path, data, skipped = read_newest(folder)
    assert (path.name, data, skipped) == (OLDER, b"whole", (ALTERED,))


class Bytes(bytes):
    """Tells when it is gone."""

    gone: ClassVar[list[int]] = []

    def __del__(self) -> None:
        self.gone.append(len(self))


@pytest.fixture(params=["pytorch", "paddle"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, data_dir: Path) -> Any:
    return engine_starter(request.param, tmp_path / "case", data_dir).start()


def restored(engine: Any, folder: Path) -> Any:
    environment = {CONTINUE_FROM: str(folder)}
    return restore(engine, engine.settings, {}, environment, "")


def save(engine: Any, folder: Path) -> int:
    """The size of a checkpoint of the engine's state."""
    Saver(engine, folder, {}, 1).save(TrainingCounters(1, 8), 1.0)
    (path,) = folder.glob("*.ckpt")
    return path.stat().st_size


def test_a_rank_has_no_more_than_two_copies_of_a_checkpoint_at_once(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are gone before what was read from them is moved to where it belongs."""
    size, contents = save(engine, tmp_path / "saved"), []
    broadcast, load_state, loaded = engine.group.broadcast, engine.load_state, []

    def sent(data: bytes) -> Any:
        contents.append(weakref.ref(content := broadcast(data)))
        return content

    def newest(folder: Path, share: float) -> Any:
        path, data, skipped = read_newest(folder, share)
        return path, Bytes(data), skipped

    def moved(state: Any) -> None:
        gc.collect()
        assert Bytes.gone == [size] and contents[0]() is None
        loaded.append(load_state(state))

    Bytes.gone.clear()
    monkeypatch.setattr(run_state, "read_newest", newest)
    monkeypatch.setattr(engine.group, "broadcast", sent)
    monkeypatch.setattr(engine, "load_state", moved)
    assert restored(engine, tmp_path / "saved").counters.steps == 1
    assert len(loaded) == 1


@pytest.mark.parametrize("lacks", [0, 1])
def test_the_memory_of_the_scarcest_host_must_hold_the_copies_of_all_of_its_ranks(
    lacks: int, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = save(engine, tmp_path / "saved")
    monkeypatch.setattr(run_state, "free_memory", lambda: 1 << 50)
    monkeypatch.setattr(engine.group, "local_world_size", 8)
    shares: list[float] = []

    def gathered(own: float) -> list[float]:
        shares.append(own)
        return [own, COPIES * size - lacks, own]

    monkeypatch.setattr(engine.group, "gather", gathered)
    if lacks:
        with pytest.raises(
            FlagPerfError, match=r"2 times in each rank as it is loaded, and .* are free for a rank"
        ):
            restored(engine, tmp_path / "saved")
    else:
        assert restored(engine, tmp_path / "saved").counters.steps == 1
    assert shares == [(1 << 50) / 8]


MEMINFO = "MemTotal: 4000 kB\nMemAvailable:    2000 kB\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, float("inf")),
        ({"proc/meminfo": MEMINFO}, 2_048_000),
        ({"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n", "sys/memory.max": "max\n"}, 2_048_000),
        ({"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n", "sys/memory.max": "4096000\n"}, 2_048_000),
        ({"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n", "sys/memory.max": "4096\n"}, 4096),
        (  # of a job, in whose step there is no limit
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "0::/job/step\n",
                "sys/job/memory.max": "8192\n",
                "sys/job/step/memory.max": "max\n",
                "memory.max": "1\n",
            },
            8192,
        ),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "4:memory:/docker/1\n0::/\n",
                "sys/memory/docker/1/memory.limit_in_bytes": "12288\n",
                "sys/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            12288,
        ),
    ],
    ids=["untold", "machine", "no limit", "high limit", "limit", "limit above", "version 1"],
)
def test_free_memory_is_the_machines_or_what_a_control_group_leaves_of_it(
    files: dict[str, str], expected: float, tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert free_memory(tmp_path / "proc", tmp_path / "sys") == expected
    assert 0 < free_memory() < float("inf"), "this machine tells it"
