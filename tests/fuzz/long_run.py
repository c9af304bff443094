"""How long a property is tried: a few examples in the suite, or for its part of FUZZ_SECONDS."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
FEW, MANY = 40, 100


_properties: list[Callable[..., None]] = []  # all that were collected; each gets as long as the others


def holds(**strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """A test that `check` holds of whatever the strategies make; as `given`, with the length of a run."""

    def decorated(check: Callable[..., None]) -> Callable[[], None]:
        chosen = settings(
            max_examples=MANY if SECONDS else FEW,
            derandomize=not SECONDS,
            deadline=None,
            phases=set(Phase) - {Phase.explain},
            suppress_health_check=list(HealthCheck),
        )
        once = chosen(given(**strategies)(check))

        def test() -> None:
            end = time.monotonic() + SECONDS / len(_properties)
            once()
            while time.monotonic() < end:
                once()

        _properties.append(check)
        test.__doc__ = check.__doc__
        return test

    return decorated
