"""A verdict is earned: what does not add up is INVALID, with both values; what adds up stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results import rank_logs
from run_benchmarks.results.judge import judge_logs
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import RoundResult
from tests.run_benchmarks.builders import (
    END_MS,
    FINISHED,
    START_MS,
    make_case,
    observed,
    training_events,
    with_own_script,
    write_rank_log,
)
from utils.events import Event, EventName, format_line, parse_line
from utils.records import FailureClass, Verdict

DRIVER = replace(make_case(), parameters={"target_mlm_accuracy": 0.3})
OWN = with_own_script(DRIVER)
MEASURE = replace(DRIVER, parameters={"case_kind": "measure"})
# What the driver reports beside what the builders' FINISHED holds.
WHOLE = {
    **FINISHED,
    "eval_time": 1.5,
    "checkpoint_time": 0.5,
    "data_wait_time": 3.0,
    "p_whole": 100.0,
    "p_train": 125.0,
    "p_core": 200.0,
}
NOTHING_DONE = {
    "converged": True,
    "metric": "accuracy",
    "final_accuracy": 0.0,
    "target": 0.92,
    "global_steps": 0,
}


def judged(
    folder: Path, events: Sequence[Event], case: Any = DRIVER, time_s: float = 21.5, continue_from: str = ""
) -> RoundResult:
    folders = [folder / "h1_noderank0", folder / "h2_noderank1"]
    write_rank_log(folders[0], events)
    seen = replace(observed(case), time_s=time_s, continue_from=continue_from)
    return judge_logs(planned(case), folders, seen)


def assert_refused(result: RoundResult, *words: str) -> None:
    assert result.verdict is Verdict.INVALID and result.failure is not None
    assert result.failure.failure_class is FailureClass.INCONSISTENT_RESULT
    assert result.failure.file.endswith("h1_noderank0/rank0.out.log")
    for word in words:
        assert word in result.failure.message


@pytest.mark.parametrize("case", [DRIVER, OWN], ids=["driver", "own script"])
@pytest.mark.parametrize("more", [{}, {"converged": True, "final_mlm_accuracy": 0.3, "time_to_target": 10.0}])
def test_what_adds_up_is_a_result(case: Any, more: dict[str, Any], tmp_path: Path) -> None:
    result = judged(tmp_path, training_events(**{**WHOLE, **more}), case)
    assert (result.verdict, result.failure, result.notes) == (Verdict.CONVERGED, None, ())


def test_a_finished_line_alone_earns_nothing_of_the_driver(tmp_path: Path) -> None:
    """The adversary's line: converged at accuracy 0 of 0.92, with no step taken."""
    case = replace(DRIVER, parameters={"target_accuracy": 0.92})
    result = judged(tmp_path, [Event(EventName.FINISHED, NOTHING_DONE, END_MS)], case)
    assert_refused(
        result, "global_steps is 0: nothing was trained", "accuracy is 0 and the plan's target 0.92"
    )


def test_nor_of_a_script_of_the_cases_own(tmp_path: Path) -> None:
    case = replace(OWN, parameters={"target_accuracy": 0.92})
    result = judged(tmp_path, [Event(EventName.FINISHED, NOTHING_DONE, END_MS)], case)
    assert_refused(result, "nothing was trained", "converged, but accuracy is 0 and the plan's target 0.92")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"final_mlm_accuracy": 0.1}, "mlm_accuracy is 0.1 and the plan's target 0.3"),
        ({"global_steps": 0}, "global_steps is 0: nothing was trained"),
        ({"num_trained_samples": -1000}, "num_trained_samples is -1000: nothing was trained"),
        ({"time_to_target": -3.0}, "time_to_target is -3, which is below 0"),
        ({"time_to_target": 11.0}, "time_to_target is 11 s, of 10 s of training"),
        ({"e2e_time": -1.0}, "e2e_time is -1, which is below 0"),
        ({"num_trained_tokens": -1}, "num_trained_tokens is -1, which is below 0"),
        ({"mem_reserved_bytes": -1}, "mem_reserved_bytes is -1, which is below 0"),
        (
            {"mem_allocated_bytes": 9e9, "mem_total_bytes": 8e9},
            "9000000000, but mem_total_bytes is 8000000000",
        ),
        (
            {"mem_reserved_bytes": 9e9, "mem_total_bytes": 8e9},
            "9000000000, but mem_total_bytes is 8000000000",
        ),
        ({"global_steps": 10.5}, "global_steps is 10.5, which is not a whole number"),
        (
            {"final_mlm_accuracy": -0.1, "converged": False, "time_to_target": None},
            "-0.1, and none is below 0",
        ),
        ({"no_eval_time": 12.0}, "no_eval_time is 12 s, but raw_train_time is 10 s"),
        ({"num_trained_samples": None, "pure_compute_time": 9.0}, "but no_eval_time is 8 s"),
        ({"raw_train_time": 18.0}, "raw_train_time is 18 s, but e2e_time is 15 s"),
        ({"e2e_time": 30.0}, "but the controller's time of the whole round is 21.5 s"),
        ({"raw_train_time": 1e-10, "no_eval_time": 1e-10}, "but TRAIN_START to TRAIN_END took 10 s"),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", [DRIVER, OWN], ids=["driver", "own script"])
def test_values_that_cannot_be_true(case: Any, values: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert_refused(judged(tmp_path, training_events(**values), case), message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"metric": "zeal", "final_zeal": 1.0}, "converged, but there is no target_zeal in the plan"),
        ({"final_mlm_accuracy": 7.0}, "mlm_accuracy is 7, more than all"),
        ({"final_mlm_accuracy": None}, "there is no final_mlm_accuracy"),
        ({"converged": False, "time_to_target": None}, "not converged, but mlm_accuracy is 0.33"),
        ({"global_steps": None}, "global_steps is not reported"),
        ({"num_trained_samples": None}, "num_trained_samples is not reported"),
        ({"raw_train_time": None, "time_to_target": 1e-9}, "raw_train_time is not reported"),
        ({"num_trained_samples": 20}, "global_steps is 50, of 20 samples"),
        ({"num_trained_samples": 1000.5}, "num_trained_samples is 1000.5, which is not a whole number"),
        ({"time_to_target": None}, "converged is True, and time_to_target None"),
        (
            {"eval_time": 5.0},
            "no_eval_time is 8 s, but raw_train_time - eval_time - checkpoint_time is 4.5 s",
        ),
        ({"data_wait_time": 0.0}, "pure_compute_time is 5 s, but no_eval_time - data_wait_time is 8 s"),
        ({"p_train": 1e6}, "p_train is 1e+06, but samples / no_eval_time is 125"),
    ],
    ids=str,
)
def test_what_the_driver_never_says(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert_refused(judged(tmp_path, training_events(**{**WHOLE, **values})), message)


def with_event(name: EventName, **values: Any) -> list[Event]:
    """A whole training, of which one event says something else."""
    return [
        replace(event, value={**event.value, **values}) if event.name == name else event
        for event in training_events(**WHOLE)
    ]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            with_event(EventName.EVALUATE, mlm_accuracy=0.31),
            "final_mlm_accuracy is 0.33, but the last EVALUATE",
        ),
        (with_event(EventName.EVALUATE, num_trained_samples=10), "num_trained_samples is 1000, but the last"),
        (with_event(EventName.TRAIN_END, global_steps=1), "global_steps is 50, but TRAIN_END says 1"),
    ],
    ids=["metric", "samples", "steps"],
)
def test_finished_repeats_the_last_evaluation(events: list[Event], message: str, tmp_path: Path) -> None:
    assert_refused(judged(tmp_path, events), message)


INIT, TRAIN_START, STEP, EVALUATE, TRAIN_END, LAST = training_events(**WHOLE)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((INIT, STEP, TRAIN_START, EVALUATE, TRAIN_END, LAST), "TRAIN_START stands behind STEP_END"),
        ((INIT, TRAIN_START, STEP, TRAIN_END, EVALUATE, LAST), "EVALUATE stands behind TRAIN_END"),
        ((INIT, TRAIN_START, STEP, EVALUATE, LAST, TRAIN_END), "TRAIN_END stands behind FINISHED"),
        ((TRAIN_START, INIT, EVALUATE, TRAIN_END, LAST), "INIT_START stands behind TRAIN_START"),
        ((INIT, TRAIN_START, TRAIN_START, EVALUATE, TRAIN_END, LAST), "TRAIN_START stands more than once"),
        ((INIT, TRAIN_START, EVALUATE, TRAIN_END, TRAIN_END, LAST), "TRAIN_END stands more than once"),
        ((INIT, TRAIN_START, TRAIN_END, LAST), "there is no EVALUATE before FINISHED"),
        ((INIT, EVALUATE, TRAIN_END, LAST), "there is no TRAIN_START before FINISHED"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_drivers_events_stand_in_their_order(
    events: Sequence[Event], message: str, tmp_path: Path
) -> None:
    assert_refused(judged(tmp_path, events), message)


def test_a_script_of_the_cases_own_may_begin_the_training_anew(tmp_path: Path) -> None:
    again = (INIT, TRAIN_START, TRAIN_END, TRAIN_START, STEP, EVALUATE, TRAIN_END, LAST)
    assert judged(tmp_path, again, OWN).verdict is Verdict.CONVERGED
    assert_refused(
        judged(tmp_path, (TRAIN_END, TRAIN_START, LAST), OWN), "TRAIN_START stands behind TRAIN_END"
    )


@pytest.mark.parametrize(
    ("name", "parameters", "reached", "verdict"),
    [
        ("val_loss", {"target_val_loss": 0.48}, 0.47, Verdict.CONVERGED),  # met from above, by its name
        ("val_loss", {"target_val_loss": 0.48}, 3.0, Verdict.INVALID),
        ("val_loss", {"target_val_loss": -5.72}, -5.75, Verdict.CONVERGED),
        ("distance", {"target_distance": 4.0, "metric_better": "lower"}, 3.0, Verdict.CONVERGED),
        ("distance", {"target_distance": 4.0}, 3.0, Verdict.INVALID),
        ("acc1", {"target_acc1": 75.9}, 76.2, Verdict.CONVERGED),  # per cent
        ("acc1", {"target_acc1": 75.9}, 75.85, Verdict.CONVERGED),  # a log that rounds
        ("acc1", {"target_acc1": 75.9}, 0.76, Verdict.INVALID),
        ("acc1", {"target_acc1": 0.4}, 1.5, Verdict.CONVERGED),  # a trial, in per cent
        ("acc1", {"target_acc1": 0.92}, 7.0, Verdict.INVALID),
        ("acc1", {"target_acc1": 0.5}, 7.0, Verdict.INVALID),
        ("acc1", {}, 0.0, Verdict.CONVERGED),  # nobody can tell
        ("neg_loss", {"target_neg_loss": -3.0}, -2.5, Verdict.CONVERGED),
        ("negative_log_loss", {"target_negative_log_loss": 3.0}, 2.5, Verdict.CONVERGED),
        ("val_nll", {"target_val_nll": 2.0}, 1.5, Verdict.CONVERGED),
        ("psnr", {"target_psnr": 0.9}, 31.0, Verdict.CONVERGED),  # a trial
        ("ctc_loss_accuracy", {"target_ctc_loss_accuracy": 0.9}, 0.95, Verdict.CONVERGED),
        ("err_free_rate", {"target_err_free_rate": 0.9}, 0.95, Verdict.CONVERGED),
        ("mse_reduction", {"target_mse_reduction": 0.9}, 0.95, Verdict.CONVERGED),
        ("word_error_rate", {"target_word_error_rate": 0.1}, 0.95, Verdict.INVALID),
        ("wer", {"target_wer": 0.1}, -5.0, Verdict.INVALID),  # no share of words is below none
        ("wer", {"target_wer": 0.1}, 0.0, Verdict.CONVERGED),
        ("val_ppl", {}, -1.0, Verdict.INVALID),
        ("log_ppl", {"target_log_ppl": 0.1, "metric_better": "lower"}, -0.5, Verdict.CONVERGED),
        ("neg_mse", {"target_neg_mse": -0.2}, -0.1, Verdict.CONVERGED),
        ("r2", {}, -0.3, Verdict.CONVERGED),
    ],
)
def test_a_script_of_the_cases_own_meets_its_target_from_its_side(
    name: str, parameters: Mapping[str, Any], reached: float, verdict: Verdict, tmp_path: Path
) -> None:
    case = replace(OWN, parameters=parameters)
    finished = Event(EventName.FINISHED, {"converged": True, f"final_{name}": reached}, END_MS)
    result = judged(tmp_path, [finished], case)
    assert result.verdict is verdict
    if (
        result.failure is not None
        and "converged" in result.failure.message
        and "metric_better" not in parameters
    ):
        assert "set metric_better" in result.failure.message


@pytest.mark.parametrize(("target", "is_doubted"), [(0.3, True), (0.49, True), (7.0, False)])
def test_an_accuracy_above_all_has_no_stamp(target: float, is_doubted: bool, tmp_path: Path) -> None:
    """7 % of a script that counts in per cent meet no 30 %, which the plan writes as 0.3."""
    case = replace(OWN, parameters={"target_acc1": target})
    finished = {"final_mlm_accuracy": None, "mlm_accuracy": None, "metric": "acc1", "final_acc1": 7.0}
    result = judged(tmp_path, training_events(**{**WHOLE, **finished}), case)
    units = f"acc1 is 7, and its target {target:g}: are both of the same unit?"
    assert result.verdict is Verdict.CONVERGED and result.rules is not None
    assert [note for note in result.notes if "unit" in note] == [units] * is_doubted
    assert (units in result.rules.doubt) is is_doubted


def as_metric(name: str, value: float) -> list[Event]:
    """A whole training of the driver that met the target of another metric."""
    without = {"mlm_accuracy": None, "final_mlm_accuracy": None}
    values = {EventName.EVALUATE: {name: value, "metric": name}}
    values[EventName.FINISHED] = {f"final_{name}": value, "metric": name}
    return [
        replace(event, value={**event.value, **without, **values[event.name]})
        if event.name in values
        else event
        for event in training_events(**WHOLE)
    ]


@pytest.mark.parametrize(
    ("name", "target", "reached", "note"),
    [
        ("neg_loss", -3.0, -2.5, ""),
        ("negative_wer", -0.1, -0.05, ""),
        (
            "val_loss",
            0.3,
            0.5,
            "",
        ),  # the plan says beforehand that the driver takes the larger for the better
        ("bleu", 0.5, 3.2, "bleu is 3.2, and its target 0.5"),  # per cent, in a trial
        ("reward", 1.0, 1.5, "reward is 1.5, and its target 1"),
    ],
)
def test_to_the_driver_the_larger_metric_is_the_better_one(
    name: str, target: float, reached: float, note: str, tmp_path: Path
) -> None:
    case = replace(DRIVER, parameters={f"target_{name}": target})
    result = judged(tmp_path, as_metric(name, reached), case)
    assert (result.verdict, result.failure) == (Verdict.CONVERGED, None)
    assert [text.partition(": are")[0] for text in result.notes] == [note] * bool(note)


@pytest.mark.parametrize("set_by_s", [-10_000, -7, -1.5, 2, 15, 10_000])
def test_a_wall_clock_that_was_set_loses_no_result(set_by_s: float, tmp_path: Path) -> None:
    events = [
        replace(event, time_ms=event.time_ms + int(1000 * set_by_s)) if event.name == "TRAIN_END" else event
        for event in training_events()
    ]
    result = judged(tmp_path, events)
    assert result.verdict is Verdict.CONVERGED
    said_so = ["by the wall clock" in note for note in result.notes]
    assert said_so == ([True] if set_by_s in (-10_000, -7, 15, 10_000) else [])
    assert bool(result.rules and result.rules.doubt) == (set_by_s == -10_000)


@pytest.mark.parametrize("took", [0.0, 1e-9, 7.5])
def test_the_driver_trains_until_its_target_is_met_and_no_longer(took: float, tmp_path: Path) -> None:
    assert_refused(judged(tmp_path, training_events(time_to_target=took)), "which ends when it is met")
    result = judged(tmp_path, training_events(time_to_target=took), OWN)
    assert result.verdict is Verdict.CONVERGED and result.rules is not None
    assert bool(result.rules.doubt) == (took < 1), (
        "a script may train on, but meets no target before it looks"
    )


def test_logs_that_round_lose_no_result(tmp_path: Path) -> None:
    rounded = {
        "raw_train_time": 10.0,
        "no_eval_time": 10.004,
        "pure_compute_time": 10.01,
        "time_to_target": 10.01,
    }
    assert judged(tmp_path, training_events(**rounded)).verdict is Verdict.CONVERGED
    assert judged(tmp_path, training_events(e2e_time=21.6), time_s=21.0).verdict is Verdict.CONVERGED


def test_a_part_of_a_run_counts_from_where_it_began(tmp_path: Path) -> None:
    continued = {
        "step": 40,
        "samples": 800,
        "train_time": 7.5,
        "file": "/ck/step00000040.ckpt",
        "skipped": [],
        "other_code": False,
    }
    events = training_events(continued=continued, time_to_target=16.5)
    counted = {"num_trained_samples": 1800, "global_steps": 90}
    events = [replace(e, value={**e.value, **counted}) if e.name == "EVALUATE" else e for e in events]
    for other in ({}, {"continued": {**continued, "train_time": 3600.0}}):
        begun = Event(EventName.INIT_END, other, events[0].time_ms + 1)
        refused = judged(tmp_path, [events[0], begun, *events[1:]])
        assert_refused(refused, "train_time is", "in INIT_END and 7.5 in FINISHED")
    for other in (False, True):  # a stamp is of all parts
        begun = Event(EventName.INIT_END, {"continued": {**continued, "other_hooks": other}}, START_MS - 1)
        result = judged(tmp_path, [events[0], begun, *events[1:]], continue_from="run1")
        assert result.verdict is Verdict.CONVERGED and result.rules is not None
        assert ("other code of the vendor" in result.rules.doubt) is other
    for told, doubt in (
        ({"other_code": True}, True),
        ({"other_code": False}, False),
        ({}, True),
    ):
        value = {**{name: each for name, each in continued.items() if name != "other_code"}, **told}
        begun = Event(EventName.INIT_END, {"continued": value}, START_MS - 1)
        rules = judged(tmp_path, [events[0], begun, *events[1:]], continue_from="run1").rules
        assert rules and ("other code of the case" in rules.doubt) is doubt
    for other in (False, True):
        begun = Event(EventName.INIT_END, {"continued": {**continued, "other_data": other}}, START_MS - 1)
        rules = judged(tmp_path, [events[0], begun, *events[1:]], continue_from="run1").rules
        assert rules and ("was trained on other data" in rules.doubt) is other
    events.insert(1, Event(EventName.INIT_END, {"continued": continued}, START_MS - 1))
    result = judged(tmp_path, events, continue_from="run1")
    assert (result.verdict, result.rules.doubt, result.notes) == (Verdict.CONVERGED, "", ())
    # nobody has asked for it: what it says of an earlier part is its word alone
    for case in (DRIVER, OWN):
        begun_anew = judged(tmp_path, events, case)
        assert begun_anew.verdict is Verdict.CONVERGED and begun_anew.rules.stamp is None
        assert "that it goes on from step 40 of an earlier part is not proved" in begun_anew.notes[0]
    early = [
        replace(e, value={**e.value, "time_to_target": 5.0}) if e.name == "FINISHED" else e for e in events
    ]
    assert_refused(judged(tmp_path, early), "time_to_target is 5 s, less than the 7.5 s of the part before")


def test_a_metric_that_is_no_number_has_not_converged(tmp_path: Path) -> None:
    values = {"converged": False, "final_mlm_accuracy": None, "time_to_target": None}
    assert judged(tmp_path, training_events(**values)).verdict is Verdict.NOT_CONVERGED


def test_a_case_that_measures_owes_no_training(tmp_path: Path) -> None:
    rate = {"value": 2.5, "unit": "GB/s", "window": "all", "better": None, "definition": "a rate"}
    finished = {"e2e_time": 3.0, "init_time": 1.0, "measure_time": 1.5, "figures": {"rate": rate}}
    assert judged(tmp_path, [INIT, Event(EventName.FINISHED, finished)], MEASURE).verdict is Verdict.MEASURED
    finished["measure_time"] = -1.5
    assert_refused(
        judged(tmp_path, [INIT, Event(EventName.FINISHED, finished)], MEASURE), "measure_time is -1.5"
    )


# ---- rank 0 on node 0 only


def test_another_node_can_not_report_for_rank_0(tmp_path: Path) -> None:
    write_rank_log(tmp_path / "h2_noderank1", training_events(), rank=0)
    result = judged(tmp_path, training_events()[:-1])
    assert result.verdict is Verdict.INVALID and result.failure is not None
    assert result.failure.message == "FINISHED was not reported by global rank 0"
    assert "rank 0 does not run on node 1: its log does not count" in result.failure.evidence


@pytest.mark.parametrize("case", [DRIVER, OWN], ids=["driver", "own script"])
def test_another_node_cannot_move_the_window_of_energy(case: Any, tmp_path: Path) -> None:
    late = [Event(EventName.TRAIN_END, {}, START_MS + 1000), Event(EventName.FINISHED, {}, START_MS + 1000)]
    write_rank_log(tmp_path / "h2_noderank1", late, rank=0)
    result = judged(tmp_path, training_events(), case)
    assert result.verdict is Verdict.CONVERGED
    (note,) = result.notes
    assert "h2_noderank1/rank0.out.log: rank 0 does not run on node 1" in note


def test_what_another_rank_wrote_into_rank_0s_log_does_not_count(tmp_path: Path) -> None:
    *before, finished = training_events()
    other = [replace(finished, rank=1), replace(before[-1], time_ms=START_MS + 1, rank=3)]
    result = judged(tmp_path, [*before, *other, finished])
    assert result.verdict is Verdict.CONVERGED
    assert "2 event(s) that another rank than 0 wrote are left out" in result.notes[0]
    assert judged(tmp_path, [*before, other[0]]).verdict is Verdict.INVALID
    # an earlier script names its local rank, or none
    assert judged(tmp_path, [*before, replace(finished, rank=-1)], OWN).verdict is Verdict.CONVERGED


def test_events_that_share_a_line_count_each(tmp_path: Path) -> None:
    """Two threads wrote at the same moment; what looks like an event in the text of one is none."""
    *before, last, finished = training_events()
    quoted = Event("NOTE", {"text": format_line(finished)}, time_ms=START_MS + 1, rank=0)
    log = write_rank_log(tmp_path / "h1_noderank0", [*before, quoted])
    with log.open("a") as file:
        file.write(f"{format_line(last)}{format_line(finished)}\n")
    result = judge_logs(planned(DRIVER), [log.parent, tmp_path / "h2_noderank1"], observed(DRIVER))
    assert (result.verdict, result.notes) == (Verdict.CONVERGED, ())


def test_a_log_is_rank_0s_by_its_whole_name(tmp_path: Path) -> None:
    other = write_rank_log(tmp_path / "h1_noderank0", training_events())
    other.rename(other.with_name("rank00.out.log"))
    assert judged(tmp_path, training_events()).verdict is Verdict.CONVERGED


def test_lines_that_hold_no_event_are_counted(tmp_path: Path) -> None:
    log = write_rank_log(tmp_path / "h1_noderank0", training_events())
    deep = f'[PerfLog] {{"event": "EVALUATE", "value": {"[" * 200_000}\n'
    log.write_text("[PerfLog] no JSON\n" + deep + log.read_text() + '\n[PerfLog] {"event": "FINI')
    folders = [log.parent, tmp_path / "h2_noderank1"]
    result = judge_logs(planned(DRIVER), folders, observed(DRIVER))
    assert (result.verdict, result.notes) == (
        Verdict.CONVERGED,
        (f"{log}: 2 line(s) with [PerfLog] that hold no event are left out",),
    )


def flooded(folder: Path, *lines: str) -> RoundResult:
    """The result of a whole training between whose first and last events these lines stand a hundred times."""
    log = write_rank_log(folder / "h1_noderank0", training_events())
    head, step, tail = log.read_text().partition('[PerfLog] {"event": "STEP_END"')
    log.write_text(head + "".join(f"{line}\n" for line in lines) * 100 + step + tail)
    return judge_logs(planned(DRIVER), [log.parent, folder / "h2_noderank1"], observed(DRIVER))


FOREIGN = '[PerfLog] {"event": "MINE", "value": {}}'
NO_NAME = '[PerfLog] {"event": 0, "value": {}}'
NO_EVENT = "[PerfLog] no JSON"
STEP_LINE = format_line(Event(EventName.STEP_END, {"loss": 1.0}, START_MS))
EVALUATE_LINE = format_line(Event(EventName.EVALUATE, {"mlm_accuracy": 0.1}, START_MS))


def test_whatever_stands_in_a_log_the_first_events_and_the_last_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(rank_logs, "MOST_WORK", 10 * rank_logs.LINE_WORK)
    monkeypatch.setattr(rank_logs, "parse_line", lambda line: parsed.append(line) or parse_line(line))
    result = flooded(tmp_path, FOREIGN, NO_NAME, NO_EVENT, STEP_LINE, EVALUATE_LINE)
    assert result.verdict is Verdict.CONVERGED
    counts = {
        "line(s) with [PerfLog] that hold no event": 9,  # of 10 and the last 8, every other one
        "EVALUATE between the first and the last": 101 - 8 - 8,
        "line(s) with [PerfLog] that do not begin with an event's name": 200 - 10 - 8,
    }
    log = tmp_path / "h1_noderank0" / "rank0.out.log"
    assert result.notes == tuple(f"{log}: {count} {what} are left out" for what, count in counts.items())
    assert len(parsed) < 100 and FOREIGN not in parsed


def test_of_too_many_lines_the_beginning_and_the_end_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_logs, "MOST_LINES", 50)
    monkeypatch.setattr(rank_logs, "END_BYTES", 4000)
    result = flooded(tmp_path, FOREIGN, NO_NAME)
    assert result.verdict is Verdict.CONVERGED
    (note,) = result.notes
    assert "byte(s) behind 50 lines with [PerfLog], before the end, are left out" in note
    monkeypatch.setattr(rank_logs, "END_BYTES", 2**20)
    assert flooded(tmp_path, FOREIGN, NO_NAME).notes == ()


def test_a_finished_among_very_many_lines_counts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_logs, "MOST_WORK", 10 * rank_logs.LINE_WORK)
    finished = format_line(training_events()[-1])
    result = flooded(tmp_path, STEP_LINE, EVALUATE_LINE, NO_NAME, finished)
    assert result.verdict is Verdict.INVALID and result.failure is not None
    assert result.failure.message.startswith("FINISHED was reported 1")


# ---- what a script's word is worth


WITH_TARGET = replace(OWN, parameters={"target_accuracy": 0.5}, differs={})


@pytest.mark.parametrize(
    ("finished", "lack"),
    [
        ({}, "FINISHED has no number of final_accuracy"),
        ({"final_accuracy": None}, "FINISHED has no number of final_accuracy"),
        ({"metric": "mlm", "final_mlm": 0.0}, "none for mlm, which FINISHED names"),
        ({"final_mlm": 0.0}, "none for mlm, which FINISHED names"),
    ],
    ids=str,
)
def test_that_a_script_converged_is_proved_by_the_metric_of_the_plans_target(
    finished: dict[str, Any], lack: str, tmp_path: Path
) -> None:
    result = judged(
        tmp_path, [Event(EventName.FINISHED, {"converged": True, **finished}, END_MS)], WITH_TARGET
    )
    assert (result.verdict, result.rules.stamp) == (Verdict.CONVERGED, None)
    assert lack in result.notes[0] and "target_accuracy = 0.5" in result.notes[0]
    assert result.rules.doubt == result.notes[0]


@pytest.mark.parametrize("reached", ["0.7", " 7e-1 ", 0.7])
def test_a_number_that_a_script_wrote_as_text_is_one(reached: object, tmp_path: Path) -> None:
    facts = {"converged": True, "final_accuracy": reached, "final_loss": "1.5", "precision": "16"}
    result = judged(tmp_path, [Event(EventName.FINISHED, facts, END_MS)], WITH_TARGET)
    assert (result.verdict, result.rules.stamp, result.notes) == (Verdict.CONVERGED, "closed", ())
    assert (result.figures["acc"].value, result.figures["final_loss"].value) == (0.7, 1.5)
    assert result.facts == facts


def test_nor_is_a_target_missed_because_it_was_written_as_text(tmp_path: Path) -> None:
    facts = {"converged": True, "final_accuracy": "0.0", "final_x": 1}
    assert_refused(judged(tmp_path, [Event(EventName.FINISHED, facts, END_MS)], WITH_TARGET), "accuracy is 0")
    facts = {"converged": True, "final_loss": "3.0"}
    case = replace(OWN, parameters={"target_loss": 0.5})
    assert_refused(judged(tmp_path, [Event(EventName.FINISHED, facts, END_MS)], case), "loss is 3 and")


@pytest.mark.parametrize(
    ("planned_as", "settled", "reported", "message"),
    [
        ("bf16", None, "fp32", "precision is fp32, and the plan's bf16"),
        ("auto", "bf16", "fp32", "precision is fp32, and INIT_END's bf16"),
        ("auto", "bf16", "bf16", ""),
        ("bf16", "bf16", "bf16", ""),
        ("high", None, "fp32", ""),  # a word of a script's own
    ],
)
def test_the_precision_of_mfu_is_the_plans(
    planned_as: str, settled: str | None, reported: str, message: str, tmp_path: Path
) -> None:
    case = replace(DRIVER, parameters={**DRIVER.parameters, "precision": planned_as})
    first, *others = training_events(**{**WHOLE, "precision": reported})
    events = [first, Event(EventName.INIT_END, {"precision": settled}, first.time_ms), *others]
    result = judged(tmp_path, events, case)
    assert message in result.failure.message if result.failure else not message


@pytest.mark.parametrize(
    ("case", "settled", "stamp"),
    [(DRIVER, {}, None), (DRIVER, {"precision": "bf16"}, "closed"), (OWN, {}, "closed")],
    ids=["not settled", "settled", "a word of a script's own"],
)
def test_what_auto_came_to_is_proved_by_init_end(
    case: Any, settled: dict[str, Any], stamp: str | None, tmp_path: Path
) -> None:
    case = replace(case, parameters={**case.parameters, "precision": "auto"}, differs={})
    first, *others = training_events(**WHOLE)
    first = replace(first, value={"changed": []})
    hooks = Event(EventName.HOOKS, {"hooks": {}}, first.time_ms)
    result = judged(
        tmp_path, [first, hooks, Event(EventName.INIT_END, settled, first.time_ms), *others], case
    )
    assert (result.verdict, result.rules.stamp) == (Verdict.CONVERGED, stamp)
    doubt = 'that precision = "auto" came to bf16 is not proved: no INIT_END says so'
    assert (doubt in result.notes, result.rules.doubt) == (stamp is None, "" if stamp else doubt)
