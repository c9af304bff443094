"""What a job's time limit means for the deadlines of the cases in it."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.slurm import SlurmSettings
from utils.numbers import duration

_HOUR_S = 3600


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
