"""From a round's plan, what the controller saw of it and its collected logs to its result.

Pure: whatever it needs stands in the run's folder, so that any old run can be judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.frameworks import open_framework
from run_benchmarks.names import decisive_log, node_folder_name
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.results.case_figures import case_figures
from run_benchmarks.results.checkout import in_checkout
from run_benchmarks.results.clocks import clock_notes
from run_benchmarks.results.consistency import doubts
from run_benchmarks.results.cut_off import cut_off_figures
from run_benchmarks.results.doubts import doubtful, suspension_notes, suspension_of, told_apart
from run_benchmarks.results.evaluations import Evaluations, evaluation_notes, evaluation_that_met
from run_benchmarks.results.evidence import NodeLogs, below_run
from run_benchmarks.results.faults import LONGEST_PROBLEM, fault_of, notes_on_logs
from run_benchmarks.results.followed import with_log
from run_benchmarks.results.hang import explained
from run_benchmarks.results.legacy_figures import in_present_names, legacy_rates, legacy_times, with_numbers
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.power_limits import limit_notes
from run_benchmarks.results.provenance import provenance_of
from run_benchmarks.results.quality import (
    Evaluated,
    better_of,
    is_true,
    loss_notes,
    met_untrained,
)
from run_benchmarks.results.rank_logs import RankLogs, read_rank_logs
from run_benchmarks.results.reported import within_bounds
from run_benchmarks.results.round_result import (
    MEASURE,
    Observation,
    RoundResult,
    continuation_notes,
    few,
    precision_notes,
    saving_notes,
)
from run_benchmarks.results.round_telemetry import NAMES as OF_TELEMETRY
from run_benchmarks.results.round_telemetry import outcome_or_why
from run_benchmarks.results.rules import WRITABLE, rules_of
from run_benchmarks.results.search.of_round import search_of
from run_benchmarks.results.shortfall import shortfall
from run_benchmarks.results.stragglers import stragglers
from run_benchmarks.results.unproved import unproved_in
from run_benchmarks.results.unwatched import refused
from run_benchmarks.results.wall_clock import clock_of, doubted_times, short_of_ranks, unproved_times
from run_benchmarks.stages.watch_first import went_without
from utils.checkpoints import continued_of
from utils.events import Event, EventName
from utils.figures import DEFINITIONS, Figure, Peak, figures_from_finished, of_this_part, unwatched_part
from utils.records import FailureClass, Verdict
from utils.search.events import CONTROLLER_LOG
from utils.text_files import shortened_to_words

LONGEST_NOTE = 2_000  # characters


def judge(case: PlannedCase, seen: Observation, folder: Path, hide: Callable[[str], str]) -> RoundResult:
    """The result of a round.

    Args:
        seen: what the controller saw; a failure in it is not undone by what the logs say.
        folder: the round's, with the nodes' folders in it; one that was not collected does not exist.
        hide: what takes the run's secrets out of a text, before that is cut.
    """
    nodes = [
        NodeLogs(
            rank, host, folder / node_folder_name(host, rank), hide, CONTROLLER_LOG if case.roles else ""
        )
        for rank, host in enumerate(seen.hosts)
    ]
    decisive = nodes[:1] if case.roles else nodes
    seen, followed = with_log(case, seen, folder)
    failure, notes = seen.failure, list(seen.notes)
    if failure is None and seen.outcome is not None:
        explanation = explained(
            decisive, seen.outcome, open_framework(case.settings.framework), case.deadline_s
        )
        failure = explanation.failure and told_apart(in_checkout(explanation.failure, seen.tree), seen)
        notes += [explanation.note] if explanation.note else []
    result = judge_logs(
        case, [node.folder for node in nodes], replace(seen, failure=failure, notes=tuple(notes)), followed
    )
    continued = result.continued and {**result.continued, "run": seen.continue_from}
    attempts = (attempt.note for attempt in seen.attempts)
    about = (
        *_went_without(nodes, seen),
        *clock_notes(seen.hosts, seen.clocks),
        *continuation_notes(continued),
        *saving_notes(result.facts),
    )
    return replace(result, continued=continued, notes=(*result.notes, *_brief((*attempts, *about))))


def without_secrets(case: PlannedCase, seen: Observation, folder: Path, secrets: Secrets) -> RoundResult:
    """The result of a round, in which no text has one of these."""
    return secrets.hide_in(judge(case, seen, folder, secrets.hide))


def _went_without(nodes: Sequence[NodeLogs], seen: Observation) -> list[str]:
    """The nodes that the round could do without, and did."""
    ended = seen.outcome.dispensable if seen.outcome else {}
    reasons = {node.host: went_without(ended[node.rank]) for node in nodes if node.rank in ended}
    return [f"{host}: the search went on without it: {why}" for host, why in reasons.items() if why]


def judge_logs(
    case: PlannedCase, folders: Sequence[Path], seen: Observation, followed: Path | None = None
) -> RoundResult:
    """Judge a round by its node folders, whose failure is explained; `followed` stands in for rank 0's log."""
    own_script, evaluations = not case.uses_driver, Evaluations(case)
    logs = read_rank_logs(
        folders, case.ranks_of_node, own_script=own_script, meets=evaluations.meets, followed=followed
    )
    search = search_of(case, folders, followed)
    if search:
        logs = search.in_place_of(logs)
    finished = [event for event in logs.events if event.name == EventName.FINISHED]
    facts: Mapping[str, Any] = finished[0].value if finished else {}
    values = facts if case.uses_driver else with_numbers(facts)
    continued = _continued(logs.events)
    own, figure_notes = case_figures(facts, case.chip)
    late = stragglers(facts, case.settings.nproc) if case.uses_driver else []
    best = evaluations.best(in_present_names(values, case.parameters))
    met = evaluation_that_met(case, logs.events, logs.met, best, facts)
    told = (logs.events, logs.phases, seen.clocks, met)
    sampled = outcome_or_why(folders, *told, case.energy_factors)
    if search:
        own = search.figures(sampled.figures, len(folders), seen.failure)
    figures = {**_training_figures(case, values, logs, met), **sampled.figures, **own}
    cut_off = {} if finished or case.kind == MEASURE else cut_off_figures(logs.events)
    figures |= cut_off
    figures["acc"] = replace(figures["acc"], better=better_of(case, figures["acc"].unit))
    if continued:
        of_part = (name for name in cut_off if not DEFINITIONS[name].of_all_parts)
        figures |= {name: of_this_part(figures[name], continued) for name in (*OF_TELEMETRY, *own, *of_part)}
    failure = seen.failure or fault_of(case, logs, values, figures, own, figure_notes, seen)
    if search and not failure:
        failure = search.fault(next(iter(seen.hosts), ""), _peak(case, facts))
    if case.undisturbed:
        failure = failure or refused(
            sampled.disturbances, sampled.watches, seen.hosts, unwatched_part(continued)
        )
    if failure and failure.failure_class is FailureClass.INCONSISTENT_RESULT and folders:
        failure = replace(failure, file=below_run(folders[0] / decisive_log(case.roles)))
    if case.kind == MEASURE:  # it owes none of training's figures: only those that it has are its own
        figures = {name: each for name, each in figures.items() if name in own or each.value is not None}
    times = doubted_times(case, clock_of(logs.events, met, sampled.clock, seen), figures, own)
    unproved = "" if failure else _unproved(case, logs, values, times, seen, best)
    rules = rules_of(
        logs.events,
        search.differs if search else case.differs,
        case.extern,
        own_script=own_script,
        vendors_case=case.vendors_folder,
        parameters=case.parameters_of(seen.round),
        doubt="; ".join(filter(None, (unproved, suspension_of(seen), WRITABLE if case.writable else ""))),
    )
    rules = replace(rules, environment=case.environment)
    if "MFU" in figures and rules.has_another_model:
        reason = "a hook of the vendor changed the model: the FLOPs that the case counts are not this model's"
        figures["MFU"] = DEFINITIONS["MFU"].figure(None, reason)
    if rules.stand_in:
        figures = {name: replace(each, value=None, source=rules.stand_in) for name, each in figures.items()}
    doubted = (
        loss_notes(logs.events, failure)
        if failure
        else [*doubts(case, logs.events, values), *short_of_ranks(case, figures, seen)]
    )
    provenance = provenance_of(seen.origin, seen.hosts, folders, logs.events, case.parameters)
    nodes = sampled.telemetry.nodes if sampled.telemetry else ()
    of_logs = (
        *filter(None, [rules.stand_in, unproved]),
        *suspension_notes(seen),
        *doubted,
        *met_untrained(logs.events, facts),
        *evaluation_notes(best),
        *precision_notes(logs.events),
        *notes_on_logs(logs, figure_notes, failure),
        *(search.notes() if search and not failure else ()),
        *sampled.notes,
        *limit_notes(nodes, provenance.hosts if provenance else (), seen.hosts),
        *(each.note(seen.hosts) for each in sampled.disturbances),
        *(sampled.unread if case.undisturbed else ()),
        *(each.note(seen.hosts) for each in late),
    )
    notes = (*seen.notes, *_brief(of_logs))
    shared = {**seen.shared(), "failure": failure, "notes": notes}
    verdict = failure.verdict if failure else _verdict(case, facts)
    why = shortfall(case, logs.events, values) if verdict is Verdict.NOT_CONVERGED else ""
    result = RoundResult(
        **shared,
        kind=case.kind,
        verdict=verdict,
        shortfall=shortened_to_words(why, LONGEST_NOTE),
        rules=rules,
        figures={
            name: _brief_figure(each)
            for name, each in doubtful({**figures, "round_time": seen.round_time()}, seen, times).items()
        },
        continued=continued,
        facts=facts,
        telemetry=sampled.telemetry,
        disturbances=sampled.disturbances,
        stragglers=tuple(late),
        search=search.summary() if search else None,
        provenance=provenance,
    )
    return within_bounds(result)


def _unproved(
    case: PlannedCase,
    logs: RankLogs,
    facts: Mapping[str, Any],
    times: Mapping[str, str],
    seen: Observation,
    best: Evaluated | None,
) -> str:
    """What nobody can tell of a round in which nothing went wrong.

    times: those that its clock makes doubtful. best: of a script's evaluations.
    """
    present = in_present_names(facts, case.parameters)
    unproved = unproved_in(case, logs.events, present, seen.continue_from, best)
    return "; ".join(filter(None, (unproved, unproved_times(times))))


def _brief(notes: Sequence[str]) -> list[str]:
    """The notes, of which there are not too many and none is too long: what a rank writes stands in its log."""
    return few([shortened_to_words(note, LONGEST_NOTE) for note in notes])


def _brief_figure(figure: Figure) -> Figure:
    """The figure, whose words may be a rank's or a monitor's."""
    unit, source, caveat = (
        shortened_to_words(text, LONGEST_NOTE) for text in (figure.unit, figure.source, figure.caveat)
    )
    return replace(figure, unit=unit, source=source, caveat=caveat)


def _training_figures(
    case: PlannedCase, facts: Mapping[str, Any], logs: RankLogs, met: Event | None
) -> dict[str, Figure]:
    figures = figures_from_finished(in_present_names(facts, case.parameters), _peak(case, facts))
    figures |= legacy_rates(facts, figures)
    if case.uses_driver:
        return figures
    return {**figures, **legacy_times(logs.events, met, figures)}


def _verdict(case: PlannedCase, facts: Mapping[str, Any]) -> Verdict:
    """Of a round in which nothing went wrong."""
    if case.kind == MEASURE:
        return Verdict.MEASURED
    return Verdict.CONVERGED if is_true(facts.get("converged")) else Verdict.NOT_CONVERGED


def _continued(events: Sequence[Event]) -> Mapping[str, Any] | None:
    """A round that fails later has continued all the same."""
    parts = (continued_of(event.value) for event in events if event.name == EventName.INIT_END)
    return next(filter(None, parts), None)


def _peak(case: PlannedCase, facts: Mapping[str, Any]) -> Peak:
    chips, chip = case.settings.nnodes * case.settings.nproc, case.chip
    precision = shortened_to_words(str(facts.get("precision") or ""), LONGEST_PROBLEM)
    if chip is None:
        return Peak(chips, None, "the vendor describes no such chip")
    if not precision:
        return Peak(chips, None, f"{chip.name}: the case reports no precision")
    source = f"{chip.name}, dense {precision}: {chip.source_of_peaks()}"
    return Peak(chips, chip.peak_flops.get(precision), source)
