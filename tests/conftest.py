"""Fixtures and hooks for the whole suite."""

import signal

pytest_plugins = ["tests.lab.fixtures", "tests.side_by_side", "tests.slow"]


def pytest_configure() -> None:
    """Let Ctrl-C mean what it means to a user: a shell starts what runs in its background with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
