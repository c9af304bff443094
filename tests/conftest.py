"""Fixtures and hooks for the whole suite."""

import signal

from tests.lab.fixtures import (
    lab,
    pytest_collection_modifyitems,
    pytest_runtest_setup,
    pytest_terminal_summary,
)

__all__ = ["lab", "pytest_collection_modifyitems", "pytest_runtest_setup", "pytest_terminal_summary"]


def pytest_configure() -> None:
    """Let Ctrl-C mean what it means to a user: a shell starts what runs in its background with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
