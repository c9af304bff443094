"""From the collected logs to verdict and figures: what counts as a result, and what does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.results.judge import judge, judge_logs
from run_benchmarks.results.planned import planned
from run_benchmarks.results.rank_logs import read_rank_logs
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.shortfall import shortfall
from run_benchmarks.stages.watch import Ended, Outcome
from tests.run_benchmarks.builders import (
    FINISHED,
    judge_folders,
    make_case,
    observed,
    perf_log,
    training_events,
    with_own_script,
    write_rank_log,
)
from utils.events import Event, EventName
from utils.node import RankEnd
from utils.records import Failure, FailureClass, Stage, Verdict

CASE = make_case()


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "h1_noderank0", tmp_path / "h2_noderank1"]


def judged(folders: list[Path], **finished: Any) -> RoundResult:
    write_rank_log(folders[0], training_events(**finished))
    return judge_folders(CASE, folders)


@pytest.mark.parametrize(
    ("converged", "verdict"),
    [
        (True, Verdict.CONVERGED),
        ("True", Verdict.CONVERGED),  # older cases write their values as text
        ("true", Verdict.CONVERGED),
        (1, Verdict.CONVERGED),
        (False, Verdict.NOT_CONVERGED),
        ("False", Verdict.NOT_CONVERGED),
        (0, Verdict.NOT_CONVERGED),
        (None, Verdict.NOT_CONVERGED),
    ],
)
def test_the_case_says_whether_it_converged(converged: object, verdict: Verdict, folders: list[Path]) -> None:
    write_rank_log(folders[0], training_events(converged=converged))
    judgement = judge_folders(with_own_script(CASE), folders)
    assert (judgement.verdict, judgement.failure) == (verdict, None)


def test_the_quality_of_a_metric_that_falls_is_better_if_lower(folders: list[Path]) -> None:
    """By its name, or as the configuration says; the driver takes the larger for the better, whatever the name."""
    write_rank_log(folders[0], training_events(metric="wer", final_wer=0.05, target=0.058))
    own = with_own_script(replace(CASE, parameters={"target_wer": 0.058}))
    says = replace(own, parameters={"target_wer": 0.058, "metric_better": "higher"})
    for case, better in ((own, "lower"), (says, "higher"), (CASE, "higher")):
        assert judge_folders(case, folders).figures["acc"].better == better


def test_figures_come_from_finished(folders: list[Path]) -> None:
    figures = judged(folders).figures
    assert {name: figures[name].value for name in ("p_whole", "p_train", "p_core", "tokens_per_second")} == {
        "p_whole": 100.0,
        "p_train": 125.0,
        "p_core": 200.0,
        "tokens_per_second": 8000.0,
    }
    assert figures["e2e_time"].value == 15.0
    assert (figures["acc"].value, figures["acc"].unit) == (0.33, "mlm_accuracy")
    # 1e9 FLOPs a sample at 125 samples/s, on 2 chips of 1e14 FLOP/s
    assert figures["MFU"].value == pytest.approx(1e9 * 125 / 2e14)
    assert "2 x 1e+14 FLOP/s; X1, dense bf16: a data sheet" in figures["MFU"].source
    for figure in figures.values():
        assert figure.unit and figure.window and figure.source


def test_no_figure_of_a_stand_in_can_be_taken_for_the_chips(folders: list[Path]) -> None:
    first, *rest = training_events()
    ended = Event(EventName.INIT_END, {"stand_in": {"device": "npu"}})
    write_rank_log(folders[0], [first, ended, *rest])
    result = judge_folders(CASE, folders)
    assert (result.verdict, result.rules.stamp) == (Verdict.CONVERGED, "stand-in")
    assert "under the name npu" in result.notes[0]
    values = {name: each.value for name, each in result.figures.items() if name != "round_time"}
    assert "p_train" in values and set(values.values()) == {None}
    assert result.figures["MFU"].source == result.notes[0]


@pytest.mark.parametrize(("seed", "stamp"), [(43, "closed"), (42, "open")])
def test_a_rounds_own_seed_is_the_plans(seed: int, stamp: str, folders: list[Path]) -> None:
    case = planned(replace(CASE, parameters={**CASE.parameters, "seed": 42, "seed_step": 1}))
    config = {"seed": seed, "seed_step": 1}
    hooks = {"in_force": {}, "files": {}, "differs": [], "unchecked": [], "flops": {}}
    begun = [Event(EventName.INIT_START, {"config": config, "changed": []}), Event(EventName.HOOKS, hooks)]
    write_rank_log(folders[0], [*begun, *training_events()[1:]])
    assert judge_logs(case, folders, replace(observed(CASE), round=2)).rules.stamp == stamp


def test_a_round_that_did_not_converge_says_what_ended_it_and_how_far_it_came(folders: list[Path]) -> None:
    short = {"converged": False, "final_mlm_accuracy": 0.25, "time_to_target": None, "baseline": 0.07}
    result = judged(folders, **short)
    assert result.shortfall == (
        "training ended after 50 steps: mlm_accuracy is 0.25, its target 0.3, "
        "after the first evaluation (step 50) it was 0.25, a trivial answer has 0.07"
    )
    for caps, end in (
        ({"max_steps": 50}, "its cap, max_steps = 50: "),
        (
            {"max_steps": 50, "max_samples_termination": 1000},
            "its cap, max_steps = 50 and max_samples_termination",
        ),
        ({"max_steps": 51, "max_samples_termination": 1000}, "its cap, max_samples_termination = 1000: "),
    ):
        case = replace(CASE, parameters={**CASE.parameters, **caps})
        assert f"training came to {end}" in judge_folders(case, folders).shortfall
    assert judged(folders).shortfall == "", "it converged"


def test_the_cap_of_a_continued_round_is_of_all_its_parts(folders: list[Path]) -> None:
    earlier = {"step": 40, "samples": 800, "file": "x", "train_time": 5.0}
    facts = {**FINISHED, "converged": False, "final_mlm_accuracy": 0.2, "continued": earlier}
    for steps, end in (
        (90, "training came to its cap, max_steps = 90"),
        (91, "training ended after 50 steps"),
    ):
        case = replace(CASE, parameters={**CASE.parameters, "max_steps": steps})
        assert shortfall(planned(case), [], facts).startswith(end)


def test_of_a_script_that_says_little_little_is_said() -> None:
    assert shortfall(planned(with_own_script(CASE)), [], {"converged": False}) == "training ended"


def test_code_is_named_as_the_checkout_has_it(tmp_path: Path) -> None:
    """In a container the tree may lie where data and results lie too."""
    lines = 'File "/fp/benchmarks/toy/case.py", line 3\nno /fp/data/x, /mnt/fp/a.py, /fp2/b.py\n-> mend /fp/acme/v.sh:3'
    write_rank_log(tmp_path / "h1_noderank0", [], tail=lines)
    end = RankEnd(0, 0, 1, False).line()
    (tmp_path / "h1_noderank0" / "start_pytorch_task.log").write_text(end + "\n")
    seen = observed(CASE, outcome=Outcome({0: Ended(1, 1.0)}, False, {}))
    for tree, case_file, script in (
        ("/fp", "training/benchmarks/toy/case.py", "training/acme/v.sh:3"),
        ("", "/fp/benchmarks/toy/case.py", "/fp/acme/v.sh:3"),
    ):
        failure = judge(planned(CASE), replace(seen, tree=tree), tmp_path, str).failure
        assert failure is not None
        assert f'File "{case_file}", line 3\nno /fp/data/x, /mnt/fp/a.py, /fp2/b.py' in failure.evidence
        assert f"says: mend {script}; see" in failure.remedy


def test_a_last_loss_that_is_no_number_is_a_note_of_a_round_that_failed(folders: list[Path]) -> None:
    """A script of a case's own may end for it without a word; one that has diverged by its own words needs none."""
    failed = Failure(Verdict.FAILED, Stage.TRAIN, FailureClass.RANK_FAILED, "h1", "exit code 1")
    for loss, kind, notes in (
        (float("nan"), FailureClass.RANK_FAILED, 1),
        (0.5, FailureClass.RANK_FAILED, 0),
        (float("nan"), FailureClass.DIVERGED, 0),
    ):
        steps = [Event(EventName.STEP_END, {"global_steps": n, "loss": loss}, n) for n in (19, 20)]
        write_rank_log(folders[0], steps)
        seen = observed(CASE, failure=replace(failed, failure_class=kind))
        said = [note for note in judge_logs(planned(CASE), folders, seen).notes if "no finite number" in note]
        assert len(said) == notes
        assert all("(step 20)" in note for note in said)


def test_what_auto_came_to_is_a_note_also_of_a_round_that_failed_later(folders: list[Path]) -> None:
    settled = {"precision": "fp32", "precision_reason": "bf16 would be emulated"}
    begun = [Event(EventName.INIT_START, {}, 1), Event(EventName.INIT_END, settled, 2)]
    write_rank_log(folders[0], begun)
    assert 'precision = "auto" is fp32 here: bf16 would be emulated' in judge_folders(CASE, folders).notes
    named = Event(EventName.INIT_END, {"precision": "fp32", "precision_reason": None}, 2)
    write_rank_log(folders[0], [named])
    assert not any("auto" in note for note in judge_folders(CASE, folders).notes)


def test_facts_are_the_raw_values(folders: list[Path]) -> None:
    assert judged(folders).facts == FINISHED


def test_values_that_are_too_large_for_a_result_stay_in_the_log(folders: list[Path]) -> None:
    """Three such lines a round made a run's summary larger than its readers take."""
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    result = judged(
        folders, long="x" * 2**16, many=[0] * 6_000, deep=deep, short="y" * 40_000, other="z" * 40_000
    )
    assert result.verdict is Verdict.CONVERGED
    assert result.facts["short"] and result.facts["converged"] is True
    assert not {"long", "many", "deep", "other"} & set(result.facts)
    (note,) = [note for note in result.notes if note.startswith("FINISHED")]
    assert note == "FINISHED: 4 values too large for a result: rank 0's log has long, many, deep, other"


def test_what_differs_is_bounded_too_and_stays_open(folders: list[Path]) -> None:
    started, *others = training_events()
    value = {"changed": ["x"], "config": {"x": "y" * 2**17}}
    write_rank_log(folders[0], [replace(started, value=value), *others])
    result = judge_folders(CASE, folders)
    assert (result.rules.stamp, result.rules.differs) == ("open", {})
    assert "what differs: 1 value too large for a result: rank 0's log has x" in result.notes


def test_what_was_not_measured_is_null_and_never_0(folders: list[Path]) -> None:
    """A case that reports next to nothing still has every figure, with the reason why there is none."""
    write_rank_log(folders[0], [Event(EventName.FINISHED, {"converged": True})])
    judgement = judge_folders(with_own_script(CASE), folders)
    assert judgement.verdict is Verdict.CONVERGED
    assert set(judgement.figures) == set(judged(folders).figures)
    assert {figure.value for name, figure in judgement.figures.items() if name != "round_time"} == {None}
    assert all(figure.source for figure in judgement.figures.values())


@pytest.mark.parametrize(
    ("chip", "precision"), [(None, "bf16"), (CASE.chip, "fp32"), (CASE.chip, None)], ids=str
)
def test_without_a_known_peak_there_is_no_mfu(chip: Any, precision: str | None, folders: list[Path]) -> None:
    write_rank_log(folders[0], training_events(precision=precision))
    figure = judge_folders(make_case(chip=chip), folders).figures["MFU"]
    assert figure.value is None
    assert "peak FLOP/s is not known" in figure.source
    assert ("the case reports no precision" in figure.source) == (precision is None)


@pytest.mark.parametrize("times", [0, 2])
def test_finished_stands_once(times: int, folders: list[Path]) -> None:
    *before, finished = training_events()
    write_rank_log(folders[0], [*before, *([finished] * times)])
    judgement = judge_folders(CASE, folders)
    assert judgement.verdict is Verdict.INVALID
    assert judgement.failure is not None
    assert judgement.failure.failure_class is FailureClass.NO_RESULT
    assert (judgement.failure.stage, judgement.failure.host) == (Stage.JUDGE, "h1")
    assert ("2 times" if times else "not reported") in judgement.failure.message


def test_finished_from_a_second_rank_is_no_result(folders: list[Path]) -> None:
    write_rank_log(folders[0], training_events())
    write_rank_log(folders[1], training_events(converged=False), rank=1)
    judgement = judge_folders(CASE, folders)
    assert judgement.verdict is Verdict.INVALID and judgement.failure is not None
    assert judgement.failure.failure_class is FailureClass.NO_RESULT
    assert judgement.failure.message == "FINISHED was reported 2 times: by rank 0, rank 1"
    write_rank_log(folders[1], [*training_events(), *training_events()], rank=1)
    failure = judge_folders(CASE, folders).failure
    assert failure and failure.message == "FINISHED was reported 3 times: by rank 0, rank 1 (2 times)"


def test_finished_from_another_rank_alone_is_no_result(folders: list[Path]) -> None:
    write_rank_log(folders[1], training_events(), rank=1)
    failure = judge_folders(CASE, folders).failure
    assert failure is not None
    assert failure.message == "FINISHED was not reported by global rank 0, but by rank 1"


def test_of_a_script_that_is_started_once_a_node_it_is_said_that_it_reports_none(folders: list[Path]) -> None:
    folders[0].mkdir(parents=True)
    (folders[0] / "rank0.out.log").write_text("System tokens per second:  -4194304.0\nMFU:  -0.2\n")
    case = replace(CASE, settings=replace(CASE.settings, framework="megatron_core060"))
    judgement = judge_folders(with_own_script(case), folders)
    assert judgement.verdict is Verdict.INVALID and judgement.failure is not None
    assert "they print rates that nobody can check" in judgement.failure.remedy
    assert {figure.value for name, figure in judgement.figures.items() if name != "round_time"} == {None}


def test_of_a_script_of_the_cases_own_only_global_rank_0_counts(folders: list[Path]) -> None:
    """Cases of earlier versions log FINISHED from every node or rank, each into its own file."""
    write_rank_log(folders[0], training_events())
    write_rank_log(folders[1], training_events(converged=False), rank=1)
    own = with_own_script(CASE)
    judgement = judge_folders(own, folders)
    assert judgement.verdict is Verdict.CONVERGED
    assert judgement.notes == ("FINISHED was reported by rank 1 too; global rank 0's counts",)
    write_rank_log(folders[0], [*training_events(), *training_events()])
    assert judge_folders(own, folders).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ({"baseline": 0.8}, "a trivial answer's mlm_accuracy is 0.8"),
        ({"mlm_accuracy": 0.72}, "the initial mlm_accuracy is 0.72"),
        ({"baseline": 0.1, "mlm_accuracy": 0.2}, ""),
        ({"baseline": None, "mlm_accuracy": "x"}, ""),
    ],
)
def test_a_target_that_was_met_before_training_is_noted(
    before: dict[str, Any], words: str, folders: list[Path]
) -> None:
    """A metric that falls, or a target too low: the untrained model has it."""
    start, *rest = training_events(target=0.72)
    write_rank_log(folders[0], [start, Event(EventName.INIT_EVALUATION, before, start.time_ms + 1), *rest])
    notes = [note for note in judge_folders(CASE, folders).notes if "before training" in note]
    assert notes == ([f"the target, 0.72, was met before training: {words}"] if words else [])


def test_a_log_that_cannot_be_read_is_not_taken_for_one_without_a_result(folders: list[Path]) -> None:
    (folders[0] / "rank0.out.log").mkdir(parents=True)
    failure = judge_folders(CASE, folders).failure
    assert failure is not None and failure.failure_class is FailureClass.NO_RESULT
    assert "cannot be read" in failure.message
    assert failure.evidence == f"{folders[0]}/rank0.out.log: is no file"


def test_what_cannot_be_read_beside_a_result_is_noted(folders: list[Path]) -> None:
    write_rank_log(folders[0], training_events())
    (folders[1] / "rank1.out.log").mkdir(parents=True)
    judgement = judge_folders(CASE, [*folders, folders[0] / "rank0.out.log"])
    assert judgement.verdict is Verdict.CONVERGED
    assert judgement.notes == (
        f"{folders[1]}/rank1.out.log: is no file",
        f"{folders[0]}/rank0.out.log: cannot be listed: Not a directory",
    )


@pytest.mark.parametrize(
    "times",
    [
        {"no_eval_time": 11.0},  # more without the evaluations than with them
        {"pure_compute_time": 9.0},
        {"no_eval_time": None, "pure_compute_time": 11.0},
    ],
    ids=str,
)
def test_rates_in_the_wrong_order_are_no_result(times: dict[str, Any], folders: list[Path]) -> None:
    judgement = judged(folders, **times)
    assert judgement.verdict is Verdict.INVALID
    assert judgement.failure is not None
    assert judgement.failure.failure_class is FailureClass.INCONSISTENT_RESULT
    assert "p_whole <= p_train <= p_core" in judgement.failure.message
    assert judgement.figures["p_whole"].value == 100.0  # for whoever looks into it


@pytest.mark.parametrize(
    "times",
    [
        {"no_eval_time": 10.0, "pure_compute_time": 10.0},
        {"no_eval_time": 10.004},  # rounding in a log
        {"no_eval_time": None, "pure_compute_time": None},
    ],
    ids=str,
)
def test_rates_that_are_equal_or_not_known_are_in_order(times: dict[str, Any], folders: list[Path]) -> None:
    assert judged(folders, **times).verdict is Verdict.CONVERGED


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"final_mlm_accuracy": 0.1}, "mlm_accuracy is 0.1 and the plan's target 0.3"),
        ({"num_trained_samples": 100_000}, "num_trained_samples is 100000, but the last EVALUATE says 1000"),
        ({"time_to_target": 11.0}, "time_to_target is 11 s, of 10 s of training"),
        ({"time_to_target": -1.0}, "time_to_target is -1, which is below 0"),
    ],
    ids=str,
)
def test_a_result_that_contradicts_plan_or_events_is_none(
    values: dict[str, Any], message: str, folders: list[Path]
) -> None:
    *events, finished = training_events(**values)
    evaluated = Event(EventName.EVALUATE, {"num_trained_samples": 1000}, finished.time_ms - 20)
    write_rank_log(folders[0], [*events, evaluated, finished])
    files = replace(CASE.files, script=DRIVER_SCRIPT)
    case = replace(CASE, files=files, parameters={"target_mlm_accuracy": 0.3})
    failure = judge_folders(case, folders).failure
    assert failure is not None and failure.failure_class is FailureClass.INCONSISTENT_RESULT
    assert message in failure.message


def test_a_number_that_overflows_is_not_measured(folders: list[Path]) -> None:
    figures = judged(folders, num_trained_samples=1e99, no_eval_time=1e-3, pure_compute_time=1e-3).figures
    assert figures["p_train"].value is None and "1e+102 is no figure" in figures["p_train"].source


def test_more_than_the_peak_is_marked(folders: list[Path]) -> None:
    assert "more than the chips' peak" in judged(folders, model_flops_per_sample=1e15).figures["MFU"].caveat


def test_a_result_does_not_undo_a_failure(folders: list[Path]) -> None:
    """Rank 0 had finished, but another rank was killed while it saved its checkpoint."""
    write_rank_log(folders[0], training_events())
    failure = Failure(Verdict.FAILED, Stage.TRAIN, FailureClass.RANK_KILLED, "h2", "rank 1 was killed")
    judgement = judge_folders(CASE, folders, failure)
    assert (judgement.verdict, judgement.failure) == (Verdict.FAILED, failure)
    assert judgement.figures["p_train"].value == 125.0


def test_logs_that_were_not_collected_are_no_result(folders: list[Path]) -> None:
    judgement = judge_folders(CASE, folders)
    assert judgement.verdict is Verdict.INVALID
    assert {figure.value for name, figure in judgement.figures.items() if name != "round_time"} == {None}


def test_events_among_other_output_and_half_a_line_are_read(folders: list[Path]) -> None:
    log = write_rank_log(folders[0], training_events())
    noise = b'\xff\xfe\n[PerfLog] {"event": "STEP_END", "val\n[PerfLog] not JSON\n'
    log.write_bytes(noise + log.read_bytes().replace(b"[PerfLog]", b"[rank0]: [PerfLog]", 1) + noise)
    assert judge_folders(CASE, folders).verdict is Verdict.CONVERGED


def test_values_that_another_code_wrote_do_no_harm(folders: list[Path]) -> None:
    """NaN, infinity, text and nothing, where numbers are expected."""
    odd = '{"converged": true, "final_loss": NaN, "raw_train_time": Infinity, "num_trained_samples": "many"}'
    lines = [
        perf_log("TRAIN_START", "null", time_ms="soon", rank="zero"),
        perf_log("TRAIN_END", "[1, 2]", time_ms=None),
        perf_log("FINISHED", odd, time_ms=1, rank=0, lineno="x"),
    ]
    folders[0].mkdir(parents=True)
    (folders[0] / "rank0.out.log").write_text("\n".join(lines))
    judgement = judge_folders(with_own_script(CASE), folders)
    assert judgement.verdict is Verdict.CONVERGED
    assert judgement.figures["final_loss"].value is None
    assert judgement.figures["p_whole"].value is None


def test_a_continued_round_says_so_also_where_it_fails(folders: list[Path]) -> None:
    continued = {
        "file": "/ck/step00000040.ckpt",
        "step": 40,
        "samples": 800,
        "train_time": 7.5,
        "skipped": [],
    }
    events = training_events(continued=continued, time_to_target=16.5)
    counted = {"num_trained_samples": 1800, "global_steps": 90}
    events = [replace(e, value={**e.value, **counted}) if e.name == "EVALUATE" else e for e in events]
    events.insert(1, Event(EventName.INIT_END, {"init_time": 2.0, "continued": continued}, 0))
    write_rank_log(folders[0], events)
    whole = judge_folders(CASE, folders)
    assert whole.continued == continued
    assert whole.figures["energy"].window.endswith("this part only, continued from step 40")
    write_rank_log(folders[0], events[:-1])
    failed = judge_folders(CASE, folders)
    assert (failed.verdict, failed.continued) == (Verdict.INVALID, continued)
    assert judged([folders[1]]).continued is None


def cut_off(folder: Path, *events: Event) -> RoundResult:
    """A round whose rank 0 was ended after these events and TRAIN_START."""
    write_rank_log(folder, [*training_events()[:2], *events])
    return judge_folders(CASE, [folder])


def evaluation(step: int, accuracy: float) -> Event:
    value = {"metric": "mlm_accuracy", "mlm_accuracy": accuracy, "global_steps": step}
    return Event(EventName.EVALUATE, {**value, "num_trained_samples": 20 * step}, 0)


def test_a_round_that_was_cut_off_keeps_what_its_events_say(folders: list[Path]) -> None:
    begun = Event(EventName.INIT_END, {"init_time": 2.5}, 0)
    step = Event(EventName.STEP_END, {"global_steps": 50, "num_trained_samples": 1000, "loss": 1.0}, 0)
    figures = cut_off(folders[0], begun, evaluation(20, 0.2), evaluation(40, 0.3), step).figures
    names = ("acc", "steps", "samples", "init_time", "p_whole", "final_loss")
    assert [figures[name].value for name in names] == [0.3, 50, 1000, 2.5, None, None]
    acc = figures["acc"]
    assert (acc.unit, acc.window) == ("mlm_accuracy", "last evaluation")
    assert acc.caveat == "of the last evaluation before the round was cut off, after step 40"
    assert figures["steps"].caveat and not figures["init_time"].caveat
    assert judged(folders).figures["acc"].caveat == ""


def test_what_is_cut_off_of_a_continued_round_is_of_its_own_part(folders: list[Path]) -> None:
    begun = Event(EventName.INIT_END, {"continued": {"step": 10, "samples": 200}}, 0)
    figures = cut_off(folders[0], begun, evaluation(40, 0.3)).figures
    assert [figures[name].value for name in ("acc", "steps", "samples")] == [0.3, 30, 600]
    assert figures["steps"].window.endswith("this part only, continued from step 10")
    assert figures["acc"].window == "last evaluation"  # of the weights, whichever part trained them


def test_a_log_of_any_length_is_read_and_events_that_are_too_long_are_told(folders: list[Path]) -> None:
    many = [evaluation(step, 0.3) for step in range(1000)]
    path = write_rank_log(folders[0], [*training_events()[:-1], *many, training_events()[-1]])
    events = read_rank_logs(folders).events
    names = [event.name for event in events]
    assert names == [
        *("INIT_START", "TRAIN_START", "STEP_END", "EVALUATE", "TRAIN_END", "EVALUATE", "FINISHED")
    ]
    assert [event.value["global_steps"] for event in events if event.name == "EVALUATE"] == [50, 999]
    text = path.read_text()
    path.write_text(text.replace('"FINISHED", "value": {', f'"FINISHED", "value": {{"x": "{"y" * 2**20}", '))
    result = judge_folders(CASE, folders)
    assert result.failure and "a log cannot be read" in result.failure.message
    assert "1 event(s) of more than 1048576 characters are left out" in result.failure.evidence
