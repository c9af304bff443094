"""Times of several clocks put on that of rank 0's node, as docs/results.md says it: see recomputation.py."""

from __future__ import annotations

from typing import Any

Clock = dict[str, Any]  # of `clocks` in round.json
Points = list[tuple[float, float]]  # time -> how far the node's clock is ahead of the controller's then, in s


def on_the_time_line(time_ms: float, rank: int | None, clocks: list[Clock]) -> float:
    """The time by the clock of rank 0's node. rank: by whose clock it is given; None for the controller's."""
    first = readings(clocks, 0)
    own = readings(clocks, rank) if rank is not None else None
    if rank == 0 or not first or own == []:
        return time_ms
    seconds = time_ms / 1000
    if own:
        seconds -= offset([(time + ahead, ahead) for time, ahead in own], seconds)
    return float(round(1000 * (seconds + offset(first, seconds))))


def readings(clocks: list[Clock], rank: int) -> Points:
    """What was read of a node's clock, at none, one or both ends of the round."""
    ends = [clocks[rank][end] for end in ("begin", "end") if clocks[rank][end]] if rank < len(clocks) else []
    points = [(each["time_s"], each["offset_s"]) for each in ends]
    return points[:1] if points and points[-1][0] <= points[0][0] else points


def offset(points: Points, seconds: float) -> float:
    """Linear between the readings, and that of the nearer one beyond them."""
    (begin, first), (end, last) = points[0], points[-1]
    if seconds <= begin or end <= begin:
        return first
    return first + min(1.0, (seconds - begin) / (end - begin)) * (last - first)
