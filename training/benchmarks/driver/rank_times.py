"""How long a rank works before it meets the others: by its forward pass, its optimizer, its data.

All ranks of a synchronous training end each step together, whoever was late. What a rank does between two meetings is
its own: a straggler takes longer for it, the others wait.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.driver.device import Device
from utils.errors import raised

FORWARD, OPTIMIZER, DATA = "forward", "optimizer", "data"
PARTS = (FORWARD, OPTIMIZER)
SPREAD = "spread"
DIGITS = 4  # significant ones that are told


class RankTimer:
    """Times the parts of those steps that are logged, for which the driver waits for the device anyway.

    On a device by its own events, for which nothing waits before the step has ended; on a CPU by the monotonic clock.
    Collectives are in none of the parts, nor is the backward pass, in which gradients are averaged.
    """

    def __init__(self, device: Device[Any]) -> None:
        self._device = device
        self._is_on = False
        self._refused = ""  # why the device cannot tell times
        self._marks: list[tuple[str, Any, Any]] = []
        self._seconds = {part: array("d") for part in PARTS}

    def begin(self) -> None:
        """The next step is one of those."""
        self._is_on, self._marks = not self._refused, []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """A piece of the step: of micro-batches a part has several."""
        if not self._is_on:
            yield
            return
        start = self._mark()
        yield
        if self._is_on:
            self._marks.append((name, start, self._mark()))

    def end(self) -> None:
        """The device has finished the step."""
        if self._is_on:
            of_step = dict.fromkeys(PARTS, 0.0)
            with self._whatever_it_can():
                for name, start, end in self._marks:
                    of_step[name] += self._device.seconds_between(start, end)
            for part, seconds in of_step.items() if self._is_on else ():
                self._seconds[part].append(seconds)
        self._is_on, self._marks = False, []

    def _mark(self) -> Any:
        with self._whatever_it_can():
            return self._device.time_mark()
        return None  # the vendor's events refused

    @contextmanager
    def _whatever_it_can(self) -> Iterator[None]:
        """A vendor's events may not tell times: training goes on without them."""
        try:
            yield
        except Exception as error:
            self._is_on, self._refused = False, raised(error)
            print(f"the parts of a step are not timed: {self._refused}", flush=True)

    @property
    def steps(self) -> int:
        """How many were timed."""
        return len(self._seconds[FORWARD])

    def medians(self) -> dict[str, float | None]:
        """Seconds a step: of each part the median, which the first steps and single pauses do not shift.

        SPREAD: the median distance of single steps from the median of all parts together.
        """
        if not self.steps:
            return dict.fromkeys((*PARTS, SPREAD))
        whole = [sum(parts) for parts in zip(*self._seconds.values(), strict=True)]
        middle = statistics.median(whole)
        values = {part: statistics.median(seconds) for part, seconds in self._seconds.items()}
        values[SPREAD] = statistics.median(abs(seconds - middle) for seconds in whole)
        return {name: rounded(seconds) for name, seconds in values.items()}


def rounded(seconds: float) -> float:
    """With as many digits as mean something: thousands of ranks stand in one event."""
    return float(f"{seconds:.{DIGITS}g}")
