"""How a run is interrupted."""

from __future__ import annotations

import asyncio

import pytest

from run_benchmarks.session import BrokenOffError, Interrupted, unless_interrupted
from run_benchmarks.transports.base import TransportError


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


def test_work_that_is_cancelled_from_within_raises_an_error_like_any_other() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(BrokenOffError):
        asyncio.run(unless_interrupted(asyncio.Event(), cancelled()))


def test_an_interrupt_ends_the_work_and_awaits_its_own_clean_up() -> None:
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
