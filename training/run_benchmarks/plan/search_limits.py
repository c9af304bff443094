"""Whether a search fits its case: how many ranks it has, and how long it and its job may last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.slurm import SlurmSettings
from utils.numbers import duration
from utils.parameters import SEARCH_SECONDS
from utils.parameters.settings import AUTO

RANKS_PER_WORKER = "ranks_per_worker"
_HOUR_S = 3600


def search_misfits(
    parameters: Mapping[str, Any], nproc: int, deadline_hours: float, slurm: SlurmSettings | None
) -> Iterator[tuple[str, UnfitError]]:
    """The settings of a search by which it would be lost, and why; values of a wrong type are told of elsewhere."""
    ranks = parameters.get(RANKS_PER_WORKER)
    if isinstance(ranks, int) and ranks and nproc % ranks:
        message = f"does not divide the {nproc} processes of a host (nproc)"
        yield (
            RANKS_PER_WORKER,
            UnfitError(message, "write a divisor, or 0: one worker of all a host's processes"),
        )
    if parameters.get("precision") == AUTO:
        message = "would be what the first worker comes to, and shut out those whose chips come to another"
        yield "precision", UnfitError(message, 'name one: "fp32", "bf16" or "fp16"')
    seconds = parameters.get(SEARCH_SECONDS)
    misfit = _time_misfit(seconds, deadline_hours, slurm) if isinstance(seconds, (int, float)) else None
    if misfit:
        yield SEARCH_SECONDS, misfit


def _time_misfit(seconds: float, deadline_hours: float, slurm: SlurmSettings | None) -> UnfitError | None:
    """Why a search of so long would be lost: by its case's deadline, or by the job that is asked for it."""
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
