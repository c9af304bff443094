"""Whether what a case may take ends before those limits do that the user has set for it."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.slurm import SlurmSettings
from utils.numbers import duration

_HOUR_S = 3600


def search_misfit(seconds: object, deadline_hours: float, slurm: SlurmSettings | None) -> UnfitError | None:
    """Why a search of so long would be lost: by its case's deadline, or by the job that is asked for it."""
    if not isinstance(seconds, (int, float)):  # which is told of elsewhere
        return None
    if seconds >= deadline_hours * _HOUR_S:
        message = f"is not below the deadline of the case, {deadline_hours:g} h"
        return UnfitError(message, "raise CASE_DEADLINE_HOURS in test_conf.py")
    if slurm and slurm.usable_s is not None and seconds >= slurm.usable_s:
        message = (
            f'does not fit in slurm(time="{slurm.time}"), which leaves a round {duration(slurm.usable_s)}'
        )
        return UnfitError(
            message, "raise time in cluster_conf.py: there is the start beside it, and the logs"
        )
    return None


def deadline_notes(cases: Sequence[CasePlan], slurm: SlurmSettings | None) -> list[str]:
    """A line for each deadline that the job may not live to see, though what it is for may well be done by then."""
    if slurm is None or slurm.usable_s is None:
        return []
    usable_s, kept = slurm.usable_s, ", of all rounds together as hold is set" if slurm.hold else ""
    return [
        f'cluster_conf.py: slurm(time="{slurm.time}"): CASE_DEADLINE_HOURS gives a round {deadline_s / _HOUR_S:g} h, '
        f"but it is ended {duration(usable_s)} after the start of its job{kept}, and does not count then"
        for deadline_s in sorted({case.deadline_s for case in cases})
        if deadline_s > usable_s
    ]
