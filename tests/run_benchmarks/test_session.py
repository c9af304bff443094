"""How a run is interrupted, and what it removes from its hosts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from run_benchmarks.names import RunId
from run_benchmarks.session import Interrupted, Session, remove_units, unless_interrupted
from run_benchmarks.transports.base import Transport, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.conftest import LogLines

RUN = RunId("run20260102030405", "run20260102030405-abcdef")


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_work_that_ends_gives_its_result() -> None:
    async def scenario() -> None:
        assert await unless_interrupted(asyncio.Event(), answer(7)) == 7
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_work_that_fails_raises_its_error() -> None:
    async def fail() -> None:
        raise TransportError("lost", where="h1")

    with pytest.raises(TransportError):
        asyncio.run(unless_interrupted(asyncio.Event(), fail()))


def test_an_interrupt_ends_the_work_and_awaits_its_own_clean_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        interrupt, begun, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                cleaned.set()

        async def press() -> None:
            await begun.wait()
            interrupt.set()

        pressing = asyncio.create_task(press())
        with pytest.raises(Interrupted):
            await unless_interrupted(interrupt, work())
        assert cleaned.is_set()
        await pressing

    asyncio.run(asyncio.wait_for(scenario(), timeout=30))


def test_after_an_interrupt_nothing_new_is_begun() -> None:
    async def scenario() -> None:
        interrupt = asyncio.Event()
        interrupt.set()
        with pytest.raises(Interrupted):
            await unless_interrupted(interrupt, asyncio.sleep(3600))

    asyncio.run(asyncio.wait_for(scenario(), timeout=30))


def test_a_cancelled_caller_cancels_the_work() -> None:
    async def scenario() -> None:
        whole = asyncio.create_task(unless_interrupted(asyncio.Event(), asyncio.sleep(3600)))
        await asyncio.sleep(0.01)
        whole.cancel()
        await asyncio.gather(whole, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_units_are_removed_from_every_host_that_is_reached(log_lines: LogLines) -> None:
    """A FAKE runtime: h2 is out of reach."""
    asked: list[tuple[str, str]] = []

    async def remove_all(transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        if transport.host == "h2":
            raise TransportError("no route to host", where="h2")
        asked.append((transport.host, run_id))
        return ("a unit",)

    session = SimpleNamespace(
        run=RUN,
        runtime=SimpleNamespace(remove_all=remove_all),
        transports={name: LocalTransport(name) for name in ("h1", "h2", "h3")},
    )
    failed = asyncio.run(remove_units(cast(Session, session), ["h1", "h2", "h3", "h1"]))
    assert failed == ["h2"]
    assert asked == [("h1", RUN.uid), ("h3", RUN.uid)]
    assert f"run.py cleanup {RUN.uid}" in log_lines.text
