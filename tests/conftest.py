"""Fixtures and hooks for the whole suite."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.browser",
    "tests.failure_places",
    "tests.lab.fixtures",
    "tests.run_benchmarks.faults.seen",
    "tests.slow",
    "tests.slurm.fixtures",
    "tests.small_parent",
    "tests.warm_python",
    "tests.side_by_side",  # which imports one of the others: what pytest loads before may be rewritten by it
]

# No timing decides a test: how slow a machine is says nothing of what is tested.
settings.register_profile(
    "untimed", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


def pytest_configure() -> None:
    """Let Ctrl-C mean what it means to a user: a shell starts what runs in its background with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def hangup_is_heeded() -> Iterator[None]:
    """What starts here must not inherit that SIGHUP is ignored: `nohup` may have begun the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
