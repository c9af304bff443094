"""What a search comes to: its figures by hand, the rules that it must meet, and what cannot have been."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.reading import parsed
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.search.figures import LEAST_POINTS, STEP_S, search_figures, series_of
from run_benchmarks.results.search.log import read_search
from run_benchmarks.results.search.of_round import search_of
from run_benchmarks.results.search.rules import remarks
from tests.run_benchmarks.results.search.searched import (
    judged_folders,
    judged_search,
    search_case,
    write_round,
)
from tests.search_log import (
    BOTH,
    FORWARD,
    TRAINING,
    VALIDATION,
    LongSearch,
    account_of,
    end,
    epoch,
    start,
    trial,
    two_trials,
    worker,
    write_search,
)
from utils.events import Event, format_line
from utils.figures import Figure
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.search.events import (
    CONTROLLER_LOG,
    MOST_EDITS,
    NO_MORE_TRIALS,
    Epoch,
    SearchEnd,
    SearchRecord,
    SearchResumed,
    TrialStart,
    Worker,
)

FIRST = TRAINING * BOTH + VALIDATION * FORWARD  # operations of an epoch of trial 1
LONG = LongSearch().records()
DEMO: dict[str, Any] = {"search_seconds": 600}
Records = list[SearchRecord]


def values_of(result: RoundResult) -> dict[str, float | None]:
    return {name: figure.value for name, figure in result.figures.items()}


def test_the_figures_by_hand(tmp_path: Path) -> None:
    result = judged_search(tmp_path, two_trials(), **DEMO)
    assert result.failure is None and result.verdict is Verdict.MEASURED
    values = values_of(result)
    assert result.figures["score"].caveat == ""
    assert values["score"] == pytest.approx(6 * FIRST / 400 / 1e12)
    assert (values["accuracy"], values["search_time"]) == (0.9, 400.0)
    assert values["error"] == pytest.approx(10.0)
    assert values["regulated_score"] == pytest.approx(6 * FIRST / 400 / 1e12 * math.log(10))
    assert values["waiting"] == pytest.approx(220 / 820)
    assert (values["trials"], values["epochs"], values["lost_trials"], values["failed_trials"]) == (
        2,
        4,
        0,
        0,
    )
    assert (
        values["score_per_watt"] is None and "there is no energy" in result.figures["score_per_watt"].source
    )
    assert result.figures["score"].unit == "TOP/s"


def test_operations_per_joule_are_of_all_nodes() -> None:
    energy = Figure(500.0, "J/node", "", "counters", scope="accelerator", coverage=0.995, caveat="a doubt")
    figure = search_figures(account_of(two_trials()), energy, 2)["score_per_watt"]
    assert figure.value == pytest.approx(6 * FIRST / 1e12 / 1000)
    assert (figure.unit, figure.scope, figure.caveat) == ("TOP/J", "accelerator", "a doubt")
    part = search_figures(account_of(two_trials()), replace(energy, coverage=0.7), 2)["score_per_watt"]
    assert part.value is None and "only 70.0% of the search was sampled" in part.source


def test_the_series_is_every_tenth_of_an_hour_and_at_the_end() -> None:
    account = account_of(LongSearch(hours=4.0).records())
    points = series_of(account)
    assert [point.seconds for point in points[:-1]] == [STEP_S * n for n in range(1, len(points))]
    assert points[-1].score == account.score
    first = sum(
        (TRAINING * BOTH + VALIDATION * FORWARD) * each.trial
        for each in LongSearch(hours=4.0).records()
        if isinstance(each, Epoch) and each.time_s - (account.begun_s or 0) <= STEP_S
    )
    assert points[0].score == pytest.approx(first / STEP_S)
    assert len(series_of(account_of(two_trials()))) == LEAST_POINTS


def test_stability_is_of_the_last_third() -> None:
    account = account_of(two_trials())
    last = [point.score for point in series_of(account) if point.seconds >= 400 * 2 / 3]
    mean = sum(last) / len(last)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in last) / (len(last) - 1))
    value = search_figures(account, None, 2)["stability"].value
    assert value == pytest.approx(deviation / mean)


def test_what_stands_beside_the_figures(tmp_path: Path) -> None:
    result = judged_search(tmp_path, LONG)
    assert (result.verdict, result.failure) == (Verdict.MEASURED, None)
    search = result.search
    assert search is not None and search.best is not None
    assert (search.workers, search.ranks, search.precision, search.starts) == (2, 8, "fp16", 1)
    assert search.broken_rules == () and not search.is_trial_run
    assert search.best.accuracy == values_of(result)["accuracy"]
    assert search.best.ancestors > 0
    assert parsed(RoundResult, result.as_dict(), "result.json") == result
    assert "it searched for 2 h; 12 h are advised" in result.notes
    assert not any("ended without" in note for note in result.notes), "who came back was not missed"
    assert result.rules.doubt == "", "that rank 0 was started twice is no doubt"


def test_which_workers_a_search_had_to_do_without_is_said() -> None:
    *before, end, first, second = two_trials()
    away = replace(second, time_s=300.0, state="left", reason="20 trials failed one after the other")
    account = account_of([*before[:9], away, *before[9:], end, first])
    (note,) = (note for note in remarks(account, {}, 3) if "ended without" in note)
    assert note == (
        "it ended without 2 of 3 workers: worker 1 was there until 300 s (20 trials failed one after the other); "
        "worker 2 never came"
    )
    (note,) = (note for note in remarks(account, {}, 10**12) if "ended without" in note)
    assert note.endswith("worker 3 never came; worker 4 never came; and 999999999995 more")
    in_order = account_of([*before, replace(second, reason=NO_MORE_TRIALS), end, first])
    assert not any("ended without" in note for note in remarks(in_order, {}, 2))


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda each: each, ["it searched for 410 s, and one counts from 3600 s on"]),
        (
            lambda each: replace(each, precision="fp8") if isinstance(each, Worker) else each,
            ["it searched for 410 s", "it trained in fp8, and one counts in FP16 or better"],
        ),
        (
            lambda each: replace(each, accuracy=0.7) if hasattr(each, "accuracy") else each,
            ["it searched for 410 s", "its best accuracy is 0.7000, and one counts above 0.70"],
        ),
    ],
)
def test_a_search_that_does_not_meet_the_rules_is_none(
    tmp_path: Path, change: Callable[[SearchRecord], SearchRecord], broken: list[str]
) -> None:
    records = [change(each) for each in two_trials()]
    counts = [start(search_seconds=7200.0), *records[1:]]
    failure = judged_search(tmp_path / "counts", counts).failure
    assert failure is not None
    assert (failure.verdict, failure.failure_class) == (Verdict.INVALID, FailureClass.SEARCH_NOT_VALID)
    assert all(rule in failure.message for rule in broken)
    assert failure.message.count("one counts") == len(broken)
    trial_run = judged_search(tmp_path / "trial", records, **DEMO)
    assert trial_run.verdict is Verdict.MEASURED and trial_run.search
    assert len(trial_run.search.broken_rules) == len(broken) and trial_run.search.is_trial_run
    (note,) = (note for note in trial_run.notes if "a trial run" in note)
    assert "not comparable" in note and all(rule in note for rule in broken)
    assert trial_run.rules.stamp == "open" and trial_run.rules.differs == {"search_seconds": 600}


def _changed(number: int, **other: Any) -> Records:
    """Two trials, an event of which is another."""
    records = two_trials()
    records[number] = replace(records[number], **other)
    return records


def _without(*numbers: int) -> Records:
    return [each for number, each in enumerate(two_trials()) if number not in numbers]


def _with(number: int, record: SearchRecord) -> Records:
    records = two_trials()
    records.insert(number, record)
    return records


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (_changed(5, time_s=20.0), "an epoch of trial 1 took 100 s, of 10 s that passed"),
        (_changed(5, seconds=0.0), "an epoch of trial 1 took no time"),
        (_changed(5, training_samples=999), "has 999 and 100 samples, which are not the data's"),
        (_changed(5, epoch=2), "epoch 2 of trial 1 is behind 0 of 2"),
        (_changed(5, attempt=2), "epoch 1 is of trial 1, attempt 2, which does not run there"),
        (_changed(5, worker=1), "epoch 1 is of trial 1, attempt 1, which does not run there"),
        (_with(6, epoch(112.0, 1, 0, 1, 0.5)), "epoch 1 of trial 1 is behind 1 of 2"),
        (_with(6, epoch(112.0, 7, 0, 1, 0.5)), "epoch 1 is of trial 7, attempt 1, which does not run there"),
        (_changed(2, data_digest="sha256:ee"), "worker 1 has other data than worker 0"),
        (_changed(12, waited_s=9999.0), "worker 0 has waited"),
        (_with(5, SearchResumed(110.0, 100.0)), "no controller was there for 10 s of 0 s"),
        (_with(5, SearchResumed(10.0, 100.0)), "no controller was there for -90 s of 0 s"),
        (_changed(4, trial=5), "trial 5, attempt 1, is behind 1 trials"),
        (_changed(4, parent=2), "trial 2 is made of trial 2, which was not handed out before"),
        (_changed(4, worker=7), "trial 2 goes to worker 7, which is not there or has another"),
        (_changed(4, worker=0), "trial 2 goes to worker 0, which is not there or has another"),
        (_changed(4, trial=1, attempt=2, parent=None), "trial 1 is handed out again, and was not lost"),
        (_changed(3, training_operations=FORWARD), "operations forward of"),
        (_changed(8, epochs=3), "trial 2 ends with 3 epochs"),
        (_changed(8, accuracy=0.95), "and an accuracy of 0.95, but had 2 and 0.9"),
        (_without(8), "it ends while 1 trials run"),
        (_changed(11, trials=3), "it ends with 3 trials and 4 epochs, but the log has 2 and 4"),
        (_without(11), "there is no SEARCH_END"),
        (_with(12, trial(420.0, 3, 0)), "TRIAL_START: it stands behind SEARCH_END"),
        (_changed(9, time_s=150.0), "time goes back from 210 s to 150 s"),
        (_changed(0, search_seconds=1.0)[:4] + _changed(0)[4:], "EPOCH"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_have_been_is_no_result(tmp_path: Path, records: Records, message: str) -> None:
    if message == "EPOCH":
        records = [start(search_seconds=100.0), *two_trials()[1:], trial(500.0, 3, 0)]
        message = "trial 3 begins behind the search's 100 s"
    failure = judged_search(tmp_path, records, **DEMO).failure
    assert failure is not None
    assert (failure.verdict, failure.failure_class) == (Verdict.INVALID, FailureClass.INCONSISTENT_RESULT)
    assert message in failure.message
    assert failure.file.endswith(CONTROLLER_LOG)


@pytest.mark.parametrize(
    ("other", "parameters", "message"),
    [
        ({"search_seconds": 999_999.0}, {}, "search_seconds is 999999.0, and by the plan 600"),
        ({"workers": 7}, {}, "workers is 7, and by the plan 2"),
        ({"max_trials": 3}, {"max_trials": 0}, "max_trials is 3, and by the plan 0"),
        ({"max_trials": 3}, {"max_trials": 2}, "max_trials is 3, and by the plan 2"),
        (
            {"epochs": (999,)},
            {"epochs_by_round": (2, 4)},
            "epochs_by_round is (999,), and by the plan (2, 4)",
        ),
    ],
)
def test_a_search_is_what_the_plan_says(
    tmp_path: Path, other: dict[str, Any], parameters: dict[str, Any], message: str
) -> None:
    failure = judged_search(tmp_path / "other", _changed(0, **other), **DEMO, **parameters).failure
    assert failure is not None and f"SEARCH_START: {message}" in failure.message
    assert failure.failure_class is FailureClass.INCONSISTENT_RESULT
    own = {name: parameters[name] or None for name in ("max_trials",) if name in parameters}
    assert judged_search(tmp_path / "own", _changed(0, **own), **DEMO, **parameters).failure is None


def _workers(**other: Any) -> Records:
    """Two trials, the workers of which say something else."""
    return [replace(each, **other) if isinstance(each, Worker) else each for each in two_trials()]


@pytest.mark.parametrize(
    ("records", "parameters", "message"),
    [
        (_workers(ranks=2**31 - 1), {}, "worker 0 has 2147483647 ranks, and by the plan 4"),
        (_workers(ranks=1), {}, "worker 0 has 1 ranks, and by the plan 4"),
        (_changed(12, ranks=8), {}, "worker 0 has 8 ranks, and by the plan 4"),
        (two_trials(), {"ranks_per_worker": 2}, "worker 0 has 4 ranks, and by the plan 2"),
        (_workers(ranks=2), {"ranks_per_worker": 2}, "worker 1 is on node 1, and by the plan on 0"),
        (_workers(node_rank=0), {}, "worker 1 is on node 0, and by the plan on 1"),
        (_with(3, worker(0.0, 2)), {}, "worker 2 is none of the plan's 2"),
        (_changed(2, precision="bf16"), {}, "worker 1 trains in bf16, worker 0 in fp16"),
        (_workers(precision="bf16"), {"precision": "fp16"}, "precision is bf16, and the plan's fp16"),
    ],
)
def test_chips_and_precision_of_workers_are_the_plans(
    tmp_path: Path, records: Records, parameters: dict[str, Any], message: str
) -> None:
    result = judged_search(tmp_path, records, **DEMO, **parameters)
    assert result.failure is not None and message in result.failure.message
    assert result.failure.failure_class is FailureClass.INCONSISTENT_RESULT
    assert result.search is not None
    assert result.search.ranks == result.search.workers * parameters.get("ranks_per_worker", 4)


def test_workers_that_share_a_node_are_numbered_from_node_to_node(tmp_path: Path) -> None:
    records = [
        replace(each, ranks=2, node_rank=each.worker // 2) if isinstance(each, Worker) else each
        for each in LongSearch(workers=4).records()
    ]
    result = judged_search(tmp_path, records, ranks_per_worker=2)
    assert result.failure is None and result.search
    assert (result.search.workers, result.search.ranks, result.facts["world_size"]) == (4, 8, 8)


def test_no_chip_is_faster_than_its_peak(tmp_path: Path) -> None:
    """The chip's peak in bf16 is 1e14 operations a second."""
    fast = 10**14 * 4 * 100 // TRAINING + 1

    def faster(each: SearchRecord) -> SearchRecord:
        if isinstance(each, TrialStart):
            return replace(each, training_operations=fast, forward_operations=1)
        return replace(each, precision="bf16") if isinstance(each, Worker) else each

    failure = judged_search(tmp_path, map(faster, two_trials()), **DEMO).failure
    assert failure is not None and "is faster than the chips" in failure.message


def test_no_chip_is_faster_than_its_peak_by_the_controllers_clock(tmp_path: Path) -> None:
    """Epochs that say half a second each, and follow each other within milliseconds."""
    begin = [*_workers(precision="bf16")[:3], trial(10.0, 1, 0, epochs=100)]
    begin[3] = replace(trial(10.0, 1, 0, epochs=100), training_operations=10**11)  # of an epoch's 1e14
    epochs = [epoch(10.0 + number / 1000, 1, 0, number, seconds=0.5) for number in range(1, 101)]
    tail = [end(20.0, 1, 0, 100, 0.8), SearchEnd(20.0, "deadline", 1, 100)]
    failure = judged_search(tmp_path, [*begin, *epochs, *tail], **DEMO).failure
    assert failure is not None and "EPOCH: trial 1 is faster than the chips" in failure.message


def test_energy_of_another_time_is_none_of_the_searchs(tmp_path: Path) -> None:
    """The host's clock was set back by three minutes while it searched."""
    folders = write_round(tmp_path, two_trials())
    path = folders[0] / CONTROLLER_LOG
    path.write_text(path.read_text().replace("1700000410000", "1700000230000"))
    case = planned(search_case(**DEMO))
    search = search_of(case, folders, None)
    assert search is not None
    energy = Figure(500.0, "J/node", "", "counters", scope="accelerator", coverage=1.0)
    figures = search.figures({"energy": energy}, 2, None)
    doubt = "the wall clock says 220 s of training, FINISHED 400 s"
    assert figures["score_per_watt"].value is None and doubt in figures["score_per_watt"].source
    assert figures["score"].caveat == doubt, "nobody can tell which of the clocks is right"


@pytest.mark.parametrize(
    ("text", "other", "message"),
    [
        (
            '"time_ms": 1700000410000',
            '"time_ms": 1700036410000',
            "by its own clock it took 400 s, by that of its host 36400 s",
        ),
        (
            '"accuracy": 0.6',
            '"accuracy": 1.6',
            "an event is none: EPOCH: it: Value error, accuracy is above 1",
        ),
        (
            '"trials": 2, "epochs": 4, "operations"',
            '"trials": 3, "epochs": 4, "operations"',
            "trials of FINISHED is 3",
        ),
        (
            '"precision": "fp16", "trials"',
            '"precision": "bf16", "trials"',
            "precision of FINISHED is bf16, but the events come to fp16",
        ),
        (
            '"precision": "fp16", "trials"',
            '"precision": "fp16", "score": 1.0, "trials"',
            "but the events come to",
        ),
    ],
)
def test_a_log_that_was_changed_is_no_result(tmp_path: Path, text: str, other: str, message: str) -> None:
    folders = write_round(tmp_path, two_trials())
    path = folders[0] / CONTROLLER_LOG
    written = path.read_text().replace('"score"', '"was"') if "score" in other else path.read_text()
    assert text in written
    path.write_text(written.replace(text, other))
    failure = judged_folders(folders, **DEMO).failure
    assert failure is not None and message in failure.message
    assert failure.failure_class is FailureClass.INCONSISTENT_RESULT


def test_without_its_last_word_there_is_no_result(tmp_path: Path) -> None:
    result = judged_search(tmp_path, two_trials(), finished=False, **DEMO)
    assert result.failure is not None
    assert result.failure.failure_class is FailureClass.NO_RESULT
    assert CONTROLLER_LOG in result.failure.remedy


def test_a_search_that_failed_says_what_it_had_come_to(tmp_path: Path) -> None:
    failed = Failure(Verdict.FAILED, Stage.TRAIN, FailureClass.RANK_FAILED, "h1", "it ended with exit code 3")
    result = judged_search(tmp_path, two_trials()[:8], finished=False, failure=failed)
    assert result.failure == failed
    assert values_of(result)["accuracy"] == 0.9
    assert result.figures["score"].caveat == "until the search was cut off"


def test_a_search_that_never_began_has_no_figures(tmp_path: Path) -> None:
    unfit = Failure(Verdict.FAILED, Stage.PREFLIGHT, FailureClass.HOST_NOT_HEALTHY, "h1", "no data")
    result = judged_folders((), failure=unfit)
    empty = judged_search(tmp_path, [], finished=False, failure=unfit)
    assert set(result.figures) == set(empty.figures) == {"round_time"}
    assert not any("cut off" in figure.caveat for figure in empty.figures.values())


def test_what_counts_of_a_log_begins_at_the_last_start(tmp_path: Path) -> None:
    again = [start(300.0, starts=2, away_s=30.0), *two_trials()[1:]]
    result = judged_search(tmp_path, [*two_trials()[:8], *again], **DEMO)
    assert result.verdict is Verdict.MEASURED
    assert values_of(result)["epochs"] == 4
    assert result.figures["score"].caveat == "for 30 s of its time it had no controller"
    assert result.search is not None and result.search.starts == 2


def test_a_trial_that_was_lost_and_handed_out_again(tmp_path: Path) -> None:
    records = [
        *two_trials()[:5],
        epoch(110.0, 1, 0, 1, 0.5),
        worker(150.0, 1, "lost"),
        end(150.0, 2, 1, 0, None, "lost"),
        epoch(210.0, 1, 0, 2, 0.8),
        end(210.0, 1, 0, 2, 0.8),
        replace(trial(211.0, 2, 0, parent=1, attempt=2)),
        epoch(311.0, 2, 0, 1, 0.9, attempt=2),
        end(311.0, 2, 0, 1, 0.9, "stopped", attempt=2),
        SearchEnd(320.0, "trials", 2, 3),
        worker(320.0, 0, "left"),
    ]
    result = judged_search(tmp_path, records, **DEMO)
    assert result.failure is None
    assert values_of(result)["lost_trials"] == 1 and values_of(result)["trials"] == 2


def test_the_log_of_a_night_is_read(tmp_path: Path) -> None:
    log = read_search(write_search(tmp_path, LONG))
    assert log.account.epochs == sum(isinstance(each, Epoch) for each in LONG)
    assert [told.record for told in log.told] == LONG
    assert len(log.finished) == 1 and log.wrong == []


def test_of_many_last_words_the_first_and_the_last_are_held(tmp_path: Path) -> None:
    path = write_search(tmp_path, two_trials())
    with path.open("a") as file:
        file.writelines(format_line(Event("FINISHED", {"x": number})) + "\n" for number in range(50))
    log = read_search(path)
    assert [each.value.get("x") for each in log.finished] == [None, 49]
    assert log.finishes == 51
    result = judged_search(tmp_path / "round", two_trials(), **DEMO)
    assert result.failure is None
    with (tmp_path / "round/h1_noderank0/controller.out.log").open("a") as file:
        file.write(format_line(log.finished[0]) + "\n")
        file.write(format_line(log.finished[0]) + "\n")
    failure = judged_folders(
        [tmp_path / "round/h1_noderank0", tmp_path / "round/h2_noderank1"], **DEMO
    ).failure
    assert failure is not None and "FINISHED was reported 3 times" in failure.message


def test_a_trial_of_more_edits_than_a_search_makes_is_none() -> None:
    longest = replace(trial(1.0, 1, 0), edits=("deepen relu_12",) * MOST_EDITS)
    with pytest.raises(ValueError, match="edits has too many items"):
        replace(longest, edits=(*longest.edits, "one more"))
