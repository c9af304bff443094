"""From a round's collected logs to its verdict and figures. Pure: an old run can be judged again."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.earlier import in_present_names, rates_of_earlier_cases
from run_benchmarks.results.power import power_figures
from run_benchmarks.results.rank_logs import RankLogs, read_rank_logs
from run_benchmarks.results.rules import Rules, rules_of
from utils.events import Event, EventName
from utils.figures import Figure, Peak, continued_of, figures_from_finished, of_this_part
from utils.node import rank_log_name
from utils.records import Failure, FailureClass, Stage, Verdict

# Rates are of the same samples over shorter and shorter times; a thousandth allows for rounding in the logs.
ORDER_TOLERANCE = 1.001


@dataclass(frozen=True)
class Judgement:
    """What the logs say. `facts` are the raw values that FINISHED reported.

    continued: what the round went on from, as INIT_END says; None where it began anew.
    notes: what a reader of the result must know.
    """

    verdict: Verdict
    failure: Failure | None
    figures: Mapping[str, Figure]
    facts: Mapping[str, Any]
    rules: Rules
    continued: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()


def judge(case: CasePlan, folders: Sequence[Path], failure: Failure | None) -> Judgement:
    """Judge a round by the node folders that were collected.

    Args:
        folders: one a node, by node rank; a folder that was not collected does not exist.
        failure: what went wrong on the way, if anything; a result cannot undo it.
    """
    logs = read_rank_logs(folders)
    events = logs.events
    finished = [event for event in events if event.name == EventName.FINISHED]
    facts: Mapping[str, Any] = finished[0].value if finished else {}
    figures = figures_from_finished(in_present_names(facts, case.parameters), _peak(case, facts))
    figures.update(rates_of_earlier_cases(facts, figures))
    rules, continued = rules_of(events, case.differs), _continued(events)
    power = power_figures(folders, events)
    figures.update({name: of_this_part(power[name], continued) for name in power} if continued else power)
    failure = failure or _no_result(case, logs) or _inconsistent(case, figures)
    notes = _notes(case, logs, failure)
    if failure:
        return Judgement(failure.verdict, failure, figures, facts, rules, continued, notes)
    converged = facts.get("converged")
    verdict = Verdict.CONVERGED if _is_true(converged) else Verdict.NOT_CONVERGED
    return Judgement(verdict, None, figures, facts, rules, continued, notes)


def _continued(events: Sequence[Event]) -> Mapping[str, Any] | None:
    """A round that fails later has continued all the same."""
    found = (continued_of(event.value) for event in events if event.name == EventName.INIT_END)
    return next(filter(None, found), None)


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true") or value == 1


def _peak(case: CasePlan, facts: Mapping[str, Any]) -> Peak:
    chips = case.settings.nnodes * case.settings.nproc
    precision = str(facts.get("precision") or "")
    if case.chip is None:
        return Peak(chips, None, "the vendor describes no such chip")
    flops = case.chip.peak_flops.get(precision)
    if flops is None:
        return Peak(
            chips, None, f"{case.chip.name} in {precision or 'unknown precision'}: {case.chip.source}"
        )
    return Peak(chips, flops, f"{case.chip.name}, dense {precision}: {case.chip.source}")


def _no_result(case: CasePlan, logs: RankLogs) -> Failure | None:
    message = _not_once(case, logs)
    if not message:
        return None
    return Failure(
        Verdict.INVALID,
        Stage.JUDGE,
        FailureClass.NO_RESULT,
        case.hosts[0],
        message,
        "\n".join(logs.errors),
        f"read {rank_log_name(0)}: global rank 0 reports FINISHED once, and no other rank does",
    )


def _not_once(case: CasePlan, logs: RankLogs) -> str:
    """What is wrong with how often FINISHED was reported; empty: rank 0 did so once, and nobody else."""
    of_rank_0 = logs.finished.get(0, 0)
    if of_rank_0 == 0 and logs.errors:
        return "whether FINISHED was reported is not known: a log cannot be read"
    if of_rank_0 == 0:
        others = f", but by {_ranks(logs)}" if logs.finished else ""
        return f"FINISHED was not reported by global rank 0{others}"
    if of_rank_0 > 1 or (len(logs.finished) > 1 and not _may_finish_on_any_rank(case)):
        return f"FINISHED was reported {sum(logs.finished.values())} times: by {_ranks(logs)}"
    return ""


def _may_finish_on_any_rank(case: CasePlan) -> bool:
    """Existing cases' own scripts may report FINISHED on each node, or each rank: global rank 0's counts."""
    return case.files.script != DRIVER_SCRIPT


def _ranks(logs: RankLogs) -> str:
    counts = [f"rank {rank}" + (f" ({n} times)" if n > 1 else "") for rank, n in logs.finished.items()]
    return ", ".join(counts)


def _notes(case: CasePlan, logs: RankLogs, failure: Failure | None) -> tuple[str, ...]:
    in_failure = failure is not None and failure.failure_class is FailureClass.NO_RESULT
    if in_failure:
        return ()
    others = [f"rank {rank}" for rank in logs.finished if rank]
    only_first = (
        [f"FINISHED was reported by {', '.join(others)} too; global rank 0's counts"] if others else []
    )
    return (*logs.errors, *only_first)


def _inconsistent(case: CasePlan, figures: Mapping[str, Figure]) -> Failure | None:
    rates = [figures[name].value for name in ("p_whole", "p_train", "p_core")]
    known = [value for value in rates if value is not None]
    wrong = [f"{a:.6g} > {b:.6g}" for a, b in itertools.pairwise(known) if a > b * ORDER_TOLERANCE]
    if not wrong:
        return None
    return Failure(
        Verdict.INVALID,
        Stage.JUDGE,
        FailureClass.INCONSISTENT_RESULT,
        case.hosts[0],
        f"p_whole <= p_train <= p_core does not hold: {', '.join(wrong)}",
        remedy="the times in FINISHED do not add up; mend the case's clock",
    )
