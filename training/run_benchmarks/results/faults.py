"""Why the logs of a round in which nothing went wrong bear no result, if they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from run_benchmarks.frameworks import FRAMEWORKS
from run_benchmarks.names import decisive_log
from run_benchmarks.results.consistency import contradictions
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.rank_logs import RankLogs
from run_benchmarks.results.round_result import MEASURE, Observation
from utils.figures import Figure
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.text_files import shortened_to_words

MOST_CONTRADICTIONS = 5  # that are named; the others are as many signs of the same
LONGEST_PROBLEM = 400


def fault_of(
    case: PlannedCase,
    logs: RankLogs,
    facts: Mapping[str, Any],
    figures: Mapping[str, Figure],
    own: Mapping[str, Figure],
    figure_notes: Sequence[str],
    seen: Observation,
) -> Failure | None:
    """Why logs of a round in which nothing went wrong bear no result, if they do not."""
    host = next(iter(seen.hosts), "")
    message = _not_once(case, logs)
    if message:
        why = _why_no_finished(case, logs) or "global rank 0 reports FINISHED once, and no other rank does"
        remedy = f"read {decisive_log(case.roles)}: {why}"
        evidence = "\n".join((*logs.errors, *logs.left_out))
        return _invalid(FailureClass.NO_RESULT, host, message, evidence, remedy)
    if case.kind == MEASURE and not own:
        message = "the case is to measure, but its FINISHED event has no valid figure"
        remedy = (
            "let global rank 0 report `figures` with FINISHED, in the form that docs/results.md describes"
        )
        return _invalid(FailureClass.NO_RESULT, host, message, "\n".join(figure_notes), remedy)
    problems = contradictions(case, logs.events, facts, figures, seen.time_s)
    if problems:
        more = len(problems) - MOST_CONTRADICTIONS
        named = (shortened_to_words(problem, LONGEST_PROBLEM) for problem in problems[:MOST_CONTRADICTIONS])
        message = "; ".join(named) + (f"; and {more} more" if more > 0 else "")
        remedy = (
            "FINISHED does not add up: see what reports it, and whether the host's files are the controller's"
        )
        return _invalid(FailureClass.INCONSISTENT_RESULT, host, message, "", remedy)
    return None


def _invalid(kind: FailureClass, host: str, message: str, evidence: str, remedy: str) -> Failure:
    return Failure(Verdict.INVALID, Stage.JUDGE, kind, host, message, evidence, remedy)


def _not_once(case: PlannedCase, logs: RankLogs) -> str:
    """What is wrong with how often FINISHED was reported; empty: rank 0 did so once, and nobody else.

    Existing cases' own scripts may report it on each node, or each rank: global rank 0's counts.
    """
    of_rank_0 = logs.finished.get(0, 0)
    if of_rank_0 == 0 and logs.errors:
        return "whether FINISHED was reported is not known: a log cannot be read"
    if of_rank_0 == 0:
        others = f", but by {_ranks(logs)}" if logs.finished else ""
        return f"FINISHED was not reported by global rank 0{others}"
    if of_rank_0 > 1 or (len(logs.finished) > 1 and case.uses_driver):
        return f"FINISHED was reported {sum(logs.finished.values())} times: by {_ranks(logs)}"
    return ""


def _why_no_finished(case: PlannedCase, logs: RankLogs) -> str:
    """What is known of scripts of the case's framework, where nothing reported FINISHED."""
    framework = FRAMEWORKS.get(case.settings.framework.partition("_")[0])  # a stranger's result may name any
    return framework.without_finished if framework and not logs.finished else ""


def _ranks(logs: RankLogs) -> str:
    counts = [f"rank {rank}" + (f" ({n} times)" if n > 1 else "") for rank, n in logs.finished.items()]
    return shortened_to_words(", ".join(counts), LONGEST_PROBLEM)


def notes_on_logs(logs: RankLogs, of_figures: Sequence[str], failure: Failure | None) -> tuple[str, ...]:
    """What was left out of the logs and of a case's figures."""
    if failure is not None and failure.failure_class is FailureClass.NO_RESULT:
        return ()  # they are its evidence
    others = [f"rank {rank}" for rank in logs.finished if rank]
    only_first = (
        [f"FINISHED was reported by {', '.join(others)} too; global rank 0's counts"] if others else []
    )
    return (*logs.errors, *logs.left_out, *only_first, *of_figures)
