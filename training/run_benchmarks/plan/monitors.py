"""MONITORS of test_conf.py: what the monitors of the nodes, and the meters outside them, sample otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.values import Seconds
from utils.monitors.registry import LEAST_INTERVAL_S, SOURCES

LONGEST_INTERVAL_S = 3600.0
LEAST_SAMPLING_S = 0.001  # no source can be read more often
# What this machine reads of meters outside the nodes, and how often, in seconds: BMCs are slow, and a call of ipmitool
# takes some 35 ms of a processor.
METERS = {"redfish": 2.0, "ipmi": 5.0}
# Without which nobody can say that nothing disturbed a round: see results/unwatched.py.
SHOW_DISTURBANCES = ("cpu", "cores", "task", "accelerators")


EXAMPLE = 'e.g. MONITORS = {"cores": False, "rapl": 0.1}'


def check_monitors(value: Any) -> Any:
    """See that it is a dict; its entries are looked at one by one, so that all of their mistakes are told.

    Raises:
        UnfitError: it is none.
    """
    if not isinstance(value, dict):
        raise UnfitError("has the wrong type: it is no dict", f"write what is to be other, {EXAMPLE}")
    return value


def check_source(name: Any) -> Any:
    """See that it is what a monitor or a meter samples; raises UnfitError."""
    if name not in (*SOURCES, *METERS):
        raise UnfitError("has a key that is no source", f"sources are {', '.join((*SOURCES, *METERS))}")
    return name


def check_choice(choice: Any) -> Any:
    """See that it is False, or an interval in seconds; raises UnfitError."""
    is_time = type(choice) in (int, float) and LEAST_SAMPLING_S <= choice <= LONGEST_INTERVAL_S
    if choice is not False and not is_time:
        remedy = f"write False, or its interval in seconds, {LEAST_SAMPLING_S:g} to {LONGEST_INTERVAL_S:g}, {EXAMPLE}"
        raise UnfitError("is no interval", remedy)
    return choice


SamplingInterval = Annotated[Seconds, Field(ge=LEAST_SAMPLING_S)]
# Source -> False where it is not sampled, or its interval in seconds where that is not MONITOR_INTERVAL.
Monitors = Annotated[
    dict[
        Annotated[str, BeforeValidator(check_source)],
        Annotated[Literal[False] | float, BeforeValidator(check_choice)],
    ],
    BeforeValidator(check_monitors),
]


def intervals_of(monitors: Mapping[str, Literal[False] | float], default_s: float) -> dict[str, float]:
    """What the monitor of a node samples: source -> its interval in seconds."""
    intervals = {
        name: monitors.get(name, max(default_s, LEAST_INTERVAL_S.get(name, 0.0))) for name in SOURCES
    }
    return {name: float(interval) for name, interval in intervals.items() if interval is not False}


def meter_interval(monitors: Mapping[str, Literal[False] | float], kind: str) -> float | None:
    """How often a kind of meter is read, in seconds; None where it is left out."""
    interval = monitors.get(kind, METERS[kind])
    return None if interval is False else float(interval)
