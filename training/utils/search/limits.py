"""What no chip can have done: a search's controller refuses it at once, and who judges the log holds it against it."""

from __future__ import annotations

from utils.figure_records import Peak
from utils.numbers import shown
from utils.search.account import Trial
from utils.search.events import Epoch, TrialStart

SLACK_S = 0.5  # of times of two clocks, and by messages that take their way


def too_fast(start: TrialStart, epoch: Epoch, operations: int, peak: Peak) -> str:
    """Why an epoch cannot have been: by its worker's seconds, or with those before it by the controller's clock.

    Empty where it can, or where nobody knows what the chips can do.

    Args:
        operations: of all epochs of the attempt until now, this one included. peak: of the worker's chips.
    """
    if epoch.seconds <= 0:
        return f"an epoch of trial {epoch.trial} took no time"
    passed_s = max(0.0, epoch.time_s - start.time_s + SLACK_S)
    of_epoch = ("an epoch of ", Trial(start).operations_of(epoch), epoch.seconds)
    for what, count, seconds in (of_epoch, ("", operations, passed_s)):
        if peak.flops and count > peak.flops * peak.chips * seconds:
            rate = f"{count:.4g} operations in {shown(seconds)} s on {peak.chips} chips of {peak.flops:.4g}/s"
            return f"{what}trial {epoch.trial} is faster than the chips: {rate} ({peak.source})"
    return ""
