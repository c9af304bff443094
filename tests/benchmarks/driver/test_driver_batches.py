from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from benchmarks.driver.batches import Prefetcher


def test_items_come_in_order_and_end() -> None:
    assert list(Prefetcher(range(50), ahead=3)) == list(range(50))


def test_an_error_in_the_thread_is_raised_where_the_item_is_asked_for_and_again() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("cut off")

    items = Prefetcher(failing(), ahead=3)
    assert next(items) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="cut off"):
            next(items)


def test_close_ends_the_thread_of_an_endless_stream() -> None:
    before = set(threading.enumerate())  # those of earlier tests may end meanwhile
    items = Prefetcher(itertools.count(), ahead=2)
    assert next(items) == 0
    items.close()
    assert set(threading.enumerate()) <= before


def test_no_more_is_made_ahead_than_asked_for() -> None:
    made: list[int] = []
    reached = threading.Event()

    def counted() -> Iterator[int]:
        for number in itertools.count():
            made.append(number)
            if number == 2:
                reached.set()
            yield number

    items = Prefetcher(counted(), ahead=2)
    assert not reached.wait(timeout=0.1)  # two are ready: it waits for a taker
    assert made == [0, 1]
    assert next(items) == 0
    assert reached.wait(timeout=60)
    items.close()
