"""MONITORS of test_conf.py: what the monitors of the nodes, and the meters outside them, sample otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from run_benchmarks.plan.problems import UnfitError
from utils.monitors.registry import LEAST_INTERVAL_S, SOURCES

LONGEST_INTERVAL_S = 3600.0
# What this machine reads of meters outside the nodes, and how often, in seconds: BMCs are slow, and a call of ipmitool
# takes some 35 ms of a processor.
METERS = {"redfish": 2.0, "ipmi": 5.0}
# Without which nobody can say that nothing disturbed a round: see results/disturbances.py.
SHOW_DISTURBANCES = ("cpu", "cores", "task", "accelerators")


def check_monitors(value: Any) -> Any:
    """See that it is a dict: source -> False where it is not sampled, or its interval in seconds.

    Raises:
        UnfitError: it is none.
    """
    example = 'e.g. MONITORS = {"cores": False, "rapl": 0.1}'
    if not isinstance(value, dict):
        raise UnfitError("has the wrong type: it is no dict", f"write what is to be other, {example}")
    for name, choice in value.items():
        if name not in (*SOURCES, *METERS):
            sources = ", ".join((*SOURCES, *METERS))
            raise UnfitError(f"has {name!r}, which is no source", f"sources are {sources}")
        is_time = type(choice) in (int, float) and 0 < choice <= LONGEST_INTERVAL_S
        if choice is not False and not is_time:
            remedy = f"write False, or its interval in seconds, {example}"
            raise UnfitError(f"has {choice!r} for {name!r}", remedy)
    return value


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
