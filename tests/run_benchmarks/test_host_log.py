"""What is said of many hosts within a moment stands in few lines."""

from __future__ import annotations

import asyncio

import pytest

from run_benchmarks import foreground
from run_benchmarks.host_log import LONGEST_SAID, MOMENT_S, log_of_host
from run_benchmarks.transports.backoff import with_backoff
from run_benchmarks.transports.base import PassingError
from tests.run_benchmarks.conftest import LogLines


def test_hosts_of_which_the_same_is_said_share_a_line(log_lines: LogLines) -> None:
    async def scenario() -> None:
        for number in range(1, 101):
            log_of_host("WARNING", f"node{number}", f"node{number} port 22 refuses connections")
        log_of_host("WARNING", "login", "contact is lost")
        log_of_host("INFO", "node7", "contact is back")

    asyncio.run(scenario())
    assert log_lines.messages == [
        "node[1-100]: <host> port 22 refuses connections",
        "login: contact is lost",
        "node7: contact is back",
    ]


def test_hosts_that_share_a_line_stand_in_order(log_lines: LogLines) -> None:
    async def scenario() -> None:
        for host in ("h2", "h1"):
            log_of_host("INFO", host, "deployed")

    asyncio.run(scenario())
    assert log_lines.messages == ["h1, h2: deployed"]


def test_all_that_is_said_within_a_moment_is_logged_at_its_end(log_lines: LogLines) -> None:
    """One that came later would be logged early by the moments of those before it."""
    timers: list[float] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later = lambda delay, *call: timers.append(delay)  # type: ignore[method-assign,assign]
        for number in range(1, 101):
            log_of_host("INFO", f"node{number}", "contact is lost")

    for _ in range(2):  # the moment of a loop that has ended never ends
        asyncio.run(scenario())
    assert timers == [MOMENT_S] * 2
    assert log_lines.messages == ["node[1-100]: contact is lost"]


def test_what_is_said_anew_of_a_host_does_not_replace_what_was_said(log_lines: LogLines) -> None:
    async def scenario() -> None:
        log_of_host("INFO", "node1", "one")
        log_of_host("INFO", "node1", "two")

    asyncio.run(scenario())
    assert log_lines.messages == ["node1: one", "node1: two"]


def test_what_a_host_prints_without_an_end_is_cut(log_lines: LogLines) -> None:
    async def scenario() -> None:
        log_of_host("WARNING", "node1", f"its engine says: {'no ' * 20_000}")

    asyncio.run(scenario())
    (line,) = log_lines.messages
    assert line.startswith("node1: its engine says: no no") and len(line) < 2 * LONGEST_SAID


def test_it_is_logged_while_the_loop_goes_on(log_lines: LogLines) -> None:
    async def scenario() -> list[str]:
        log_of_host("INFO", "node1", "one")
        await asyncio.sleep(2 * MOMENT_S)
        return list(log_lines.logged)

    assert asyncio.run(scenario()) == ["node1: one"]


def test_of_many_hosts_that_are_tried_again_each_try_is_a_line(
    log_lines: LogLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("run_benchmarks.transports.backoff.random.uniform", lambda low, high: 0.0)

    async def refused(host: str) -> None:
        async def work() -> None:
            raise PassingError(f"{host} port 22 refuses connections", where=host)

        with pytest.raises(PassingError):
            await with_backoff(work, (1.0, 2.0), lambda error: True)

    async def scenario() -> None:
        await asyncio.gather(*(refused(f"node{number:03d}") for number in range(1, 101)))

    asyncio.run(scenario())
    text = "node[001-100]: <host> port 22 refuses connections; trying again in about"
    assert [*zip(log_lines.levels, log_lines.messages, strict=True)] == [
        ("WARNING", f"{text} 1 s"),
        ("INFO", f"{text} 2 s"),
    ]


def test_what_waits_when_a_run_ends_is_logged_all_the_same(log_lines: LogLines) -> None:
    async def work() -> None:
        log_of_host("INFO", "node1", "the last word")

    foreground._to_its_end(work())
    assert log_lines.logged == ["node1: the last word"]
