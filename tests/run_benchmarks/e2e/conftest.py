"""Fixtures of the end-to-end tests: real images, real data, real hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench
from tests.run_benchmarks.e2e.searching import make_search_image
from tests.run_benchmarks.e2e.setup import BASE_IMAGE, DATA_ROOT, machine_plan, make_data, make_image


@pytest.fixture(scope="session")
def data() -> Path:
    """A small data set of real text, where the lab's hosts see it too."""
    return make_data()


@pytest.fixture(scope="session")
def image(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cpu vendor's image, on this machine's engine."""
    folder = tmp_path_factory.mktemp("image")
    return make_image(machine_plan(folder / "config", data), folder)


@pytest.fixture(scope="session")
def search_image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of a search, likewise."""
    return make_search_image(tmp_path_factory.mktemp("search_image"))


@pytest.fixture
def two_hosts(lab: LabFactory, image: str) -> Lab:
    """Two hosts that have the image, and the one that it is built on."""
    return lab(hosts=2, images=[image, BASE_IMAGE])


@pytest.fixture
def bench(tmp_path: Path, data: Path) -> Callable[..., Bench]:
    """Makes a bench for hosts."""

    def make(hosts: list[str], **env: str) -> Bench:
        return Bench(tmp_path, hosts, env)

    assert data.is_relative_to(DATA_ROOT)
    return make
