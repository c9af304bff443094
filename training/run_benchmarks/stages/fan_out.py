"""Do the same on many hosts at once: nothing raised, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from run_benchmarks.unforeseen import contained
from utils.errors import FlagPerfError

# With more hosts at once this machine would be so slow to listen to each that their commands ran out of time.
MOST_AT_ONCE = 256

T = TypeVar("T")
K = TypeVar("K")


async def on_all(keys: Sequence[K], work: Callable[[K], Awaitable[T]]) -> dict[K, T | FlagPerfError]:
    """Do `work(key)` for all keys, MOST_AT_ONCE at a time; the map holds each one's result or its error.

    What nobody foresaw is the error of the one key too: an odd answer of a host loses no other host.
    """
    places = asyncio.Semaphore(MOST_AT_ONCE)

    async def placed(key: K) -> T:
        async with places:
            return await work(key)

    outcomes = await asyncio.gather(*map(placed, keys), return_exceptions=True)
    results: dict[K, T | FlagPerfError] = {}
    for key, outcome in zip(keys, outcomes, strict=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
            raise outcome
        results[key] = contained(outcome) if isinstance(outcome, Exception) else outcome
    return results


async def all_of(keys: Sequence[K], work: Callable[[K], Awaitable[T]]) -> dict[K, T]:
    """As `on_all`, but the first error is raised, once all have ended."""
    results = await on_all(keys, work)
    raise_first(results.values())
    return values_of(results)


def errors_of(results: Mapping[K, T | FlagPerfError]) -> dict[K, FlagPerfError]:
    """Those keys whose work failed."""
    return {key: value for key, value in results.items() if isinstance(value, FlagPerfError)}


def values_of(results: Mapping[K, T | FlagPerfError]) -> dict[K, T]:
    """Those keys whose work succeeded."""
    return {key: value for key, value in results.items() if not isinstance(value, FlagPerfError)}


def raise_first(outcomes: Iterable[object]) -> None:
    """Raise the first error among what gather() gave, once all have ended."""
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
