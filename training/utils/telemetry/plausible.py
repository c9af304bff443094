"""What readings of power and of counters of energy can be: one rule for monitors, figures and charts.

A sensor that is not there tells a number too, and so does a counter that was reset.
"""

from __future__ import annotations

from collections.abc import Mapping

from utils.telemetry.records import Scope

# The least and the most that something draws which is on, in W. The largest processors draw 0.5 kW, the largest chip (a
# whole wafer) 23 kW, a rack of machines 0.2 MW; where there is no sensor, tools say 0, 32767 or 65535 W. Power of a
# package is made of its counter, which need not have grown between two readings; less than 1 mW is not kept.
PLAUSIBLE_W: Mapping[Scope, tuple[float, float]] = {
    Scope.PACKAGE: (0.0, 2e3),
    Scope.ACCELERATOR: (1e-3, 3e4),
    Scope.MACHINE: (1e-3, 1e6),
    Scope.CHASSIS: (1e-3, 1e6),
}
POWERS = ("power_w", "power_instant_w")
# A counter is updated up to 100 ms late, and a busy host reads it late: what it shows may be of so much more time.
LATE_MS = 1_000


def is_plausible(watts: float, scope: Scope) -> bool:
    """Whether something of the scope that is on can draw so much."""
    least, most = PLAUSIBLE_W.get(scope, (float("-inf"), float("inf")))
    return least <= watts <= most


def clear_ms(range_mj: float | None, most_w: float) -> float:
    """How far apart two readings may be between which a counter wraps once at most, of what draws `most_w` at most.

    Args:
        range_mj: where it starts again at 0; None: nowhere.
    """
    return float("inf") if range_mj is None else range_mj / most_w - LATE_MS  # mJ / W is ms


def growth_mj(
    first: float, last: float, passed_ms: float, range_mj: float | None, most_w: float
) -> float | None:
    """By how much a counter grew from one reading to the next, at most `clear_ms` later; a wrap is a part of it.

    None where what draws `most_w` at most cannot have made it grow so: it was reset, or one of the readings is wrong.
    """
    growth = last - first + (range_mj or 0.0) * (last < first)
    return growth if 0 <= growth <= most_w * (passed_ms + LATE_MS) else None
