"""What the controller's tests share: the run's log, read and put back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from run_benchmarks.run_log import LOGGER, log_warnings


@pytest.fixture(autouse=True)
def log_put_back() -> Iterator[None]:
    """Every test leaves the log as verbs have it that run nothing."""
    yield
    log_warnings()


class LogLines:
    """The messages that were logged, of every level."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.messages)


@pytest.fixture
def log_lines() -> LogLines:
    """What the test logs."""
    lines = LogLines()
    LOGGER.add(lambda message: lines.messages.append(message.record["message"]), level="DEBUG")
    return lines
