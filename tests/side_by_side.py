"""Tests side by side: which of them share a worker of pytest-xdist, and how many threads each worker has.

`./test.sh` starts the workers. Tests of one file share one, for they share what is dear to set up. Each worker has a
lab of its own. Tests that have Podman as a parameter share a worker, for it cannot list its images while another
process removes some.

What takes long comes first, for the workers are to end together: a group with many slow tests (slow.py) before one
with few. The lab's tests, which wait a lot, alternate with others, which compute: so the cores are always busy.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Mapping
from itertools import zip_longest

import pytest

from tests.lab.place import NUMBER_VARIABLE
from tests.slow import is_slow

PODMAN_GROUP, LAB = "podman", "lab-"


def pytest_configure(config: pytest.Config) -> None:
    """Give a worker its share of the cores, before any framework is imported, and a lab's number."""
    if is_worker(config):
        number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
        os.environ.setdefault(NUMBER_VARIABLE, str(number + 1))
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
    groups = {item: _group_of(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    slow_tests = dict.fromkeys(groups.values(), 0)
    for item, group in groups.items():
        slow_tests[group] += _needs_lab(item) or is_slow(item)
    place = {group: number for number, group in enumerate(in_order(slow_tests))}
    items.sort(key=lambda item: place[groups[item]])


def in_order(slow_tests: Mapping[str, int]) -> list[str]:
    """The groups, each with the number of its slow tests: those with many first, the lab's and others by turns."""
    by_size = sorted(slow_tests, key=lambda group: -slow_tests[group])
    of_lab = [group for group in by_size if group.startswith(LAB)]
    others = [group for group in by_size if not group.startswith(LAB)]
    return [group for pair in zip_longest(of_lab, others) for group in pair if group]


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a part of the tests only."""
    return hasattr(config, "workerinput")


def _group_of(item: pytest.Item) -> str:
    if _needs_lab(item):
        return f"{LAB}{item.path.stem}"
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return PODMAN_GROUP if PODMAN_GROUP in parameters.values() else item.path.stem


def _needs_lab(item: pytest.Item) -> bool:
    return item.get_closest_marker("lab") is not None or "lab" in getattr(item, "fixturenames", ())
