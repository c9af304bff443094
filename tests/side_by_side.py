"""Tests side by side: which of them share a worker of pytest-xdist, and how many threads each worker has.

`./test.sh` starts the workers. Tests of one file share one, for they share what is dear to set up, and all tests of
the lab share one too: there is one lab on a machine. It comes first, for nothing else takes as long. Tests that have
Podman as a parameter share one, for it cannot list its images while another process removes some.
"""

from __future__ import annotations

import gc
import os
import signal

import pytest

LAB_GROUP = "lab"
PODMAN_GROUP = "podman"


def pytest_configure(config: pytest.Config) -> None:
    """Give a worker its share of the cores, before any framework is imported."""
    if is_worker(config):
        workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        threads = max(1, len(os.sched_getaffinity(0)) // workers)
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    elif config.getoption("numprocesses", None):
        # By default it would end this process alone, and the workers' hosts and containers would stay.
        signal.signal(signal.SIGTERM, lambda *_: pytest.exit("SIGTERM", returncode=143))
    gc.disable()  # what the frameworks make while they are imported stays for good: nothing to look through


def pytest_collection_finish() -> None:
    """Let the collector do its work again, but for what the imports made."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say which tests share a worker."""
    if not is_worker(config):
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group_of(item)))
    items.sort(key=lambda item: not _needs_lab(item))


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a part of the tests only."""
    return hasattr(config, "workerinput")


def _group_of(item: pytest.Item) -> str:
    if _needs_lab(item):
        return LAB_GROUP
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return PODMAN_GROUP if PODMAN_GROUP in parameters.values() else item.path.stem


def _needs_lab(item: pytest.Item) -> bool:
    return item.get_closest_marker("lab") is not None or "lab" in getattr(item, "fixturenames", ())
