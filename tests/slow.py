"""Which tests are slow: those that were measured so, and all that need the lab.

`slow_tests.txt` names them: a test that takes SLOW_S or more with all its parameters together, or a file that takes
as long to set up. `./test.sh --measure` writes it; nobody does by hand. `./test.sh --quick` (pytest -m "not slow")
leaves them out.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SLOW_S = 0.5
SLOW_TESTS = Path(__file__).parent / "slow_tests.txt"
HEADER = "# Written by ./test.sh --measure: what takes 0.5 s or longer, without the lab's tests.\n"

_seconds: dict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--measure`, for a run of all tests."""
    text = f"write to {SLOW_TESTS.name} which tests take {SLOW_S:g} s or longer"
    parser.addoption("--measure", action="store_true", help=text)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    for item in items:
        if item.get_closest_marker("lab") or is_slow(item):
            item.add_marker("slow")


@cache
def _measured_as_slow() -> frozenset[str]:
    return frozenset(SLOW_TESTS.read_text(encoding="utf-8").splitlines())


def is_slow(item: pytest.Item) -> bool:
    """Whether the test was measured as slow."""
    name = _without_parameters(item.nodeid)
    return not _measured_as_slow().isdisjoint((name, name.partition("::")[0]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the time of a test with all its parameters; a file's set-up counts for the file."""
    if "lab" in report.keywords:
        return
    name = _without_parameters(report.nodeid)
    if report.when == "setup" and report.duration >= SLOW_S:
        name = name.partition("::")[0]
    _seconds[name] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down which were slow, where that was asked for."""
    if session.config.getoption("--measure") and not hasattr(session.config, "workerinput"):
        slow = sorted(name for name, seconds in _seconds.items() if seconds >= SLOW_S)
        SLOW_TESTS.write_text(HEADER + "".join(f"{name}\n" for name in slow), encoding="utf-8")


def _without_parameters(nodeid: str) -> str:
    """`tests/a.py::test_b` of `tests/a.py::test_b[c]` and, as a worker's name for it has it, `...@group`."""
    return nodeid.partition("[")[0].partition("@")[0]
