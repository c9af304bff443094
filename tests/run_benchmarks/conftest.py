"""What the controller's tests share: the run's log, read and put back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from run_benchmarks import host_log
from run_benchmarks.run_log import LOGGER, log_warnings
from tests.run_benchmarks.small_disk import small_disk

if TYPE_CHECKING:
    from loguru import Message


@pytest.fixture(autouse=True)
def log_put_back() -> Iterator[None]:
    """Every test leaves the log as verbs have it that run nothing."""
    yield
    log_warnings()
    host_log.flush()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of results, which has 2 MB."""
    with small_disk(tmp_path / "result", "2m") as result:
        yield result


class LogLines:
    """The messages that were logged, of every level, and what goes to the file alone."""

    def __init__(self) -> None:
        self.logged: list[str] = []
        self.levels: list[str] = []
        self.details: list[str] = []

    @property
    def messages(self) -> list[str]:
        """All of them, also what a loop that has ended left to be logged."""
        host_log.flush()
        return self.logged

    @property
    def text(self) -> str:
        return "\n".join(self.messages)


@pytest.fixture
def log_lines() -> LogLines:
    """What the test logs."""
    lines = LogLines()

    def take(message: Message) -> None:
        lines.logged.append(message.record["message"])
        lines.levels.append(message.record["level"].name)
        lines.details += [message.record["extra"]["detail"]] if "detail" in message.record["extra"] else []

    LOGGER.add(take, level="DEBUG")
    return lines
