"""The same on many hosts at once: a result or an error for each, nothing lost."""

from __future__ import annotations

import asyncio

from run_benchmarks.stages.fan_out import MOST_AT_ONCE, errors_of, on_all, values_of
from tests.run_benchmarks.conftest import LogLines
from utils.errors import FlagPerfError

HOSTS = [f"h{number}" for number in range(64)]


def test_every_host_has_its_result_or_its_error() -> None:
    async def work(host: str) -> str:
        if host in ("h3", "h60"):
            raise FlagPerfError("out of reach", where=host)
        return host.upper()

    results = asyncio.run(on_all(HOSTS, work))
    assert list(results) == HOSTS
    assert {host: error.where for host, error in errors_of(results).items()} == {"h3": "h3", "h60": "h60"}
    assert values_of(results) == {host: host.upper() for host in HOSTS if host not in ("h3", "h60")}


def test_all_hosts_are_worked_on_at_the_same_time() -> None:
    """No host's work ends before every host's has begun: one after the other this would never end."""

    async def scenario() -> None:
        waiting = 0
        all_are_here = asyncio.Event()

        async def work(_: str) -> None:
            nonlocal waiting
            waiting += 1
            if waiting == len(HOSTS):
                all_are_here.set()
            await all_are_here.wait()

        await asyncio.wait_for(on_all(HOSTS, work), timeout=30)

    asyncio.run(scenario())


def test_what_nobody_foresaw_is_the_error_of_its_host_alone(log_lines: LogLines) -> None:
    ended = []

    async def work(host: str) -> None:
        if host == "h0":
            raise ZeroDivisionError
        await asyncio.sleep(0)
        ended.append(host)

    errors = errors_of(asyncio.run(on_all(HOSTS, work)))
    assert list(errors) == ["h0"] and ended == HOSTS[1:]
    assert "not foreseen: ZeroDivisionError" in errors["h0"].message
    assert "Traceback" in log_lines.details[0]


def test_cancelling_the_whole_cancels_every_host() -> None:
    async def scenario() -> list[str]:
        cancelled = []
        begun = asyncio.Event()

        async def work(host: str) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(host)
                raise

        whole = asyncio.create_task(on_all(HOSTS, work))
        await begun.wait()
        await asyncio.sleep(0)
        whole.cancel()
        await asyncio.gather(whole, return_exceptions=True)
        assert whole.cancelled()
        return cancelled

    assert asyncio.run(scenario()) == HOSTS


def test_no_more_hosts_at_once_than_can_be_listened_to() -> None:
    now, most = 0, 0

    async def work(host: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return host

    hosts = range(2 * MOST_AT_ONCE + 1)
    assert list(asyncio.run(on_all(hosts, work)).values()) == list(hosts)
    assert most == MOST_AT_ONCE
