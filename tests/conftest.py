"""Fixtures and hooks for the whole suite."""

from tests.lab.fixtures import (
    lab,
    pytest_collection_modifyitems,
    pytest_runtest_setup,
    pytest_terminal_summary,
)

__all__ = ["lab", "pytest_collection_modifyitems", "pytest_runtest_setup", "pytest_terminal_summary"]
