"""What the controller saw beside a round, and what it did not see, that makes doubtful what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from run_benchmarks.plan.host_ranges import alike
from run_benchmarks.results.round_result import Observation
from run_benchmarks.stages.checks import named
from utils.figures import DEFINITIONS, Figure
from utils.numbers import shown
from utils.records import Failure, FailureClass

NOTHING: Mapping[str, str] = {}
# What other work on a host, or a standstill, does not change: what was learnt, and how much was counted.
_UNTOUCHED = ("final_loss", "samples", "steps", "mem_total")
_STANDS_STILL = (
    "its processes stood still, and what is none of the job's, as a container of Docker's, went on"
)


def doubtful(
    figures: Mapping[str, Figure], seen: Observation, times: Mapping[str, str] = NOTHING
) -> dict[str, Figure]:
    """The figures, marked where others on the hosts, or a standstill, may have changed them; and those of `times`.

    Args:
        times: see `doubted_times`.
    """
    shared = alike({host: f"shared with {named(runs)}" for host, runs in seen.neighbours.items()})
    caveat = "; ".join(filter(None, (*(f"{hosts}: {how}" for hosts, how in shared), suspension_of(seen))))
    of_clock = {name: _with(times.get(name, ""), each) for name, each in figures.items()}
    return {name: _with(caveat if _may_change(name) else "", each) for name, each in of_clock.items()}


def suspension_of(seen: Observation) -> str:
    """That the scheduler let the round stand still, and for how long; empty where it did not."""
    job = seen.allocation
    return f"job {job.job} was suspended for {shown(job.suspended_s)} s" if job and job.suspended_s else ""


def suspension_notes(seen: Observation) -> list[str]:
    """What a reader of such a round's figures must know."""
    what = suspension_of(seen)
    return [f"{what} while the round had it, figures are doubtful: {_STANDS_STILL}"] if what else []


def told_apart(failure: Failure, seen: Observation) -> Failure:
    """The failure of a round; who removed its task while the run had no controller is not known."""
    if not seen.unwatched_s or failure.failure_class is not FailureClass.TASK_REMOVED:
        return failure
    message = (
        "the task was removed while the run had no controller, or by the run itself when its controller ended"
    )
    return replace(failure, message=message)


def _may_change(name: str) -> bool:
    definition = DEFINITIONS.get(name)
    return name not in _UNTOUCHED and not (definition and definition.of_metric)


def _with(caveat: str, figure: Figure) -> Figure:
    both = filter(None, (figure.caveat, caveat))
    return figure if figure.value is None or not caveat else replace(figure, caveat="; ".join(both))
