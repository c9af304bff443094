"""What tests of faults share: two real hosts, and a case whose ranks only talk to each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.conftest import bench, data, image, search_image, two_hosts
from tests.run_benchmarks.e2e.harness import Bench
from tests.run_benchmarks.faults.pairs import Pair

__all__ = [
    "bench",
    "data",
    "image",
    "pair",
    "search_image",
    "two_hosts",
]  # pytest takes the fixtures by their names here


@pytest.fixture
def pair(two_hosts: Lab, bench: Callable[..., Bench], data: Path) -> Pair:
    """A run of the pair on the two hosts."""
    return Pair(two_hosts, bench(["h1", "h2"], **two_hosts.env), data)


@pytest.fixture
def home(pair: Pair, tmp_path: Path) -> Path:
    """A home folder of the run's own, whose ssh settings know the hosts as the lab's do."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    for path in (pair.lab.home / ".ssh").iterdir():
        if path.is_file():
            text = path.read_bytes().replace(str(pair.lab.home).encode(), str(home).encode())
            (home / ".ssh" / path.name).write_bytes(text)
            (home / ".ssh" / path.name).chmod(0o600)
    pair.bench.env["HOME"] = str(home)
    return home
