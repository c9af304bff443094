"""A limit of time that loses no cancellation."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from run_benchmarks.transports.time_limit import within

LONG_S = 60.0


async def _cancelled_as_it_ends() -> bool:
    """Whether who waits is cancelled where the cancellation comes in the turn in which the work ends."""
    work = asyncio.get_running_loop().create_future()
    waiter = asyncio.ensure_future(within(work, LONG_S))
    await asyncio.sleep(0)
    work.set_result(1)
    await asyncio.sleep(0)  # the limit knows that the work is done, and has not gone on yet
    waiter.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiter
    return waiter.cancelled()


def test_a_cancellation_that_comes_with_the_result_is_kept() -> None:
    assert asyncio.run(_cancelled_as_it_ends())


def test_the_result_of_what_is_in_time() -> None:
    assert asyncio.run(within(asyncio.sleep(0, "done"), LONG_S)) == "done"
    assert asyncio.run(within(asyncio.sleep(0, "done"), None)) == "done"


def test_the_error_of_what_is_in_time() -> None:
    async def failing() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        asyncio.run(within(failing(), LONG_S))


@pytest.mark.parametrize("by_limit", [True, False])
def test_work_has_ended_before_its_end_is_reported(by_limit: bool) -> None:
    ended = []

    async def long() -> None:
        try:
            await asyncio.sleep(LONG_S)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    async def scenario() -> None:
        if by_limit:
            with pytest.raises(asyncio.TimeoutError):
                await within(long(), 0.01)
        else:
            waiter = asyncio.ensure_future(within(long(), None))
            await asyncio.sleep(0.01)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
        assert ended

    asyncio.run(scenario())


def test_an_error_while_it_is_ended_is_told() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(LONG_S)
        except asyncio.CancelledError:
            raise OSError("cannot be ended") from None

    with pytest.raises(OSError, match="cannot be ended"):
        asyncio.run(within(stubborn(), 0.01))
