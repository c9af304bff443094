"""From a round's collected logs to its verdict and figures. Pure: an old run can be judged again."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.case_figures import case_figures
from run_benchmarks.results.legacy_figures import in_present_names, legacy_rates
from run_benchmarks.results.power import NAMES as POWER
from run_benchmarks.results.power import power_figures
from run_benchmarks.results.rank_logs import RankLogs, read_rank_logs
from run_benchmarks.results.round_result import CONVERGE, MEASURE
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
    finished = [event for event in logs.events if event.name == EventName.FINISHED]
    facts: Mapping[str, Any] = finished[0].value if finished else {}
    rules, continued = rules_of(logs.events, case.differs), _continued(logs.events)
    own, notes = case_figures(facts, case.chip)
    figures = {**_training_figures(case, folders, logs.events, facts), **own}
    if continued:
        figures |= {name: of_this_part(figures[name], continued) for name in (*POWER, *own)}
    failure = (
        failure or _no_result(case, logs) or _no_figures(case, own, notes) or _inconsistent(case, figures)
    )
    verdict = failure.verdict if failure else _verdict(case, facts)
    if kind_of(case) == MEASURE:  # it owes none of training's figures: only those that it has are its own
        figures = {name: each for name, each in figures.items() if name in own or each.value is not None}
    return Judgement(verdict, failure, figures, facts, rules, continued, _notes(logs, notes, failure))


def kind_of(case: CasePlan) -> str:
    """MEASURE for a case that does a fixed amount of work and reports figures of its own, else CONVERGE."""
    return str(case.parameters.get("case_kind", CONVERGE))


def _training_figures(
    case: CasePlan, folders: Sequence[Path], events: Sequence[Event], facts: Mapping[str, Any]
) -> dict[str, Figure]:
    figures = figures_from_finished(in_present_names(facts, case.parameters), _peak(case, facts))
    return {**figures, **legacy_rates(facts, figures), **power_figures(folders, events)}


def _verdict(case: CasePlan, facts: Mapping[str, Any]) -> Verdict:
    """Of a round in which nothing went wrong."""
    if kind_of(case) == MEASURE:
        return Verdict.MEASURED
    return Verdict.CONVERGED if _is_true(facts.get("converged")) else Verdict.NOT_CONVERGED


def _continued(events: Sequence[Event]) -> Mapping[str, Any] | None:
    """A round that fails later has continued all the same."""
    parts = (continued_of(event.value) for event in events if event.name == EventName.INIT_END)
    return next(filter(None, parts), None)


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


def _notes(logs: RankLogs, of_figures: Sequence[str], failure: Failure | None) -> tuple[str, ...]:
    if failure is not None and failure.failure_class is FailureClass.NO_RESULT:
        return ()  # they are its evidence
    others = [f"rank {rank}" for rank in logs.finished if rank]
    only_first = (
        [f"FINISHED was reported by {', '.join(others)} too; global rank 0's counts"] if others else []
    )
    return (*logs.errors, *only_first, *of_figures)


def _no_figures(case: CasePlan, own: Mapping[str, Figure], notes: Sequence[str]) -> Failure | None:
    if own or kind_of(case) != MEASURE:
        return None
    return Failure(
        Verdict.INVALID,
        Stage.JUDGE,
        FailureClass.NO_RESULT,
        case.hosts[0],
        "the case is to measure, but its FINISHED event has no valid figure",
        "\n".join(notes),
        "let global rank 0 report `figures` with FINISHED, in the form that docs/results.md describes",
    )


def _inconsistent(case: CasePlan, figures: Mapping[str, Figure]) -> Failure | None:
    rates = (figures[name].value for name in ("p_whole", "p_train", "p_core"))
    measured = [value for value in rates if value is not None]
    wrong = [f"{a:.6g} > {b:.6g}" for a, b in itertools.pairwise(measured) if a > b * ORDER_TOLERANCE]
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
