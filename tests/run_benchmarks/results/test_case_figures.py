"""A case's own figures are a stranger's data: what is not valid is left out with a note, the rest stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results.case_figures import MOST_FIGURES, MOST_NOTES, case_figures
from run_benchmarks.results.planned import PlannedChip
from run_benchmarks.results.round_result import RoundResult
from tests.run_benchmarks.builders import judge_folders, make_case, training_events, write_rank_log
from utils.events import Event, EventName
from utils.figures import Figure
from utils.records import FailureClass, Verdict

CHIP = PlannedChip("X1", {"bf16": 1e14}, {"": "a data sheet"})
RATE = {
    "value": 71.5,
    "unit": "TFLOP/s",
    "window": "25 windows of 0.2 s",
    "better": "higher",
    "definition": "median rate of one chip",
    "peak": "bf16",
}


def noted(name: str, entry: object) -> str:
    """The note on an entry that is left out."""
    figures, notes = case_figures({"figures": {name: entry}}, CHIP)
    assert figures == {}
    (note,) = notes
    return note


def judged(folder: Path, kind: str, **finished: Any) -> RoundResult:
    write_rank_log(folder, [Event(EventName.FINISHED, {"e2e_time": 4.0, **finished}, 10)])
    case = replace(make_case(["h1"]), parameters={"case_kind": kind})
    return judge_folders(case, [folder])


def test_a_rate_that_names_its_dtype_is_set_against_the_chips_peak() -> None:
    figures, notes = case_figures({"figures": {"bf16": RATE}}, CHIP)
    assert notes == []
    assert figures["bf16"] == Figure(
        71.5,
        "TFLOP/s",
        "25 windows of 0.2 s",
        "FINISHED event of global rank 0",
        "higher",
        "median rate of one chip",
    )
    part = figures["bf16_of_peak"]
    assert part.value == pytest.approx(0.715)  # X1 does 1e14 FLOP/s
    assert (part.unit, part.better, part.window) == ("1", "higher", RATE["window"])
    assert "X1, dense bf16: a data sheet" in part.source and "peak in bf16" in part.definition


def test_without_a_known_peak_the_part_of_it_is_none_and_says_why() -> None:
    for dtype, chip, why in (("fp8", CHIP, "not known (X1: a data sheet)"), ("bf16", None, "no such chip")):
        figures, notes = case_figures({"figures": {"x": {**RATE, "peak": dtype}}}, chip)
        assert notes == []
        assert figures["x"].value == 71.5
        assert figures["x_of_peak"].value is None and why in figures["x_of_peak"].source


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"value": True}, "value"),
        ({"value": "71.5"}, "value"),
        ({"value": None}, "value"),
        ({"value": float("inf")}, "value"),
        ({"value": 10**400}, "value"),
        ({"unit": ""}, "unit"),
        ({"unit": "x" * 41}, "at most 40 characters"),
        ({"window": "a\nb"}, "window"),
        ({"definition": "\x1b[2J"}, "definition"),
        ({"definition": "\ud800"}, "definition"),
        ({"better": "up"}, "better"),
        ({"unit": "s"}, "peak"),
        ({"peak": 16}, "peak"),
    ],
    ids=str,
)
def test_a_broken_entry_is_left_out_with_a_note(change: dict[str, Any], why: str) -> None:
    assert why in noted("x", {**RATE, **change})


@pytest.mark.parametrize("missing", ["value", "unit", "window", "better", "definition"])
def test_an_entry_says_everything(missing: str) -> None:
    assert missing in noted("x", {name: value for name, value in RATE.items() if name != missing})


@pytest.mark.parametrize("entry", [None, 5, "x", [], [RATE]], ids=str)
def test_what_is_no_entry(entry: object) -> None:
    assert "left out" in noted("x", entry)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("p_train", "FlagPerf's own"),
        ("round_time", "FlagPerf's own"),
        ("x_of_peak", "derived"),
        ("", "letter"),
        ("9x", "letter"),
        ("a b", "letter"),
        ("é", "letter"),
        ("a" * 65, "letter"),
        ("a|b\n", "letter"),
    ],
)
def test_names_are_identifiers_and_nobody_elses(name: str, why: str) -> None:
    assert why in noted(name, RATE)


def test_a_broken_entry_does_not_lose_the_others_and_numbers_are_bounded() -> None:
    figures, notes = case_figures({"figures": {"bad": 1, "good": RATE}}, None)
    assert list(figures) == ["good", "good_of_peak"] and len(notes) == 1
    many = {f"n{number}": RATE for number in range(MOST_FIGURES + 50)}
    figures, notes = case_figures({"figures": many}, None)
    assert len(figures) == 2 * MOST_FIGURES and len(notes) == 1 and str(len(many)) in notes[0]
    _, notes = case_figures({"figures": dict.fromkeys(many, None)}, None)
    assert len(notes) == MOST_NOTES + 1


def test_of_the_word_at_a_cut_nothing_is_left() -> None:
    """It may be a secret, whose beginning nobody would know again."""
    key = "hunter2hunter2hunter2"
    long, name = "see " + "x" * 380 + f" {key} more", "n" * 60 + f" {key}"
    _, notes = case_figures({"notes": [long], "figures": {name: RATE}}, CHIP)
    assert [note for note in notes if key[:4] in note] == []
    assert len(notes) == 2 and notes[0].startswith("see xxx")


@pytest.mark.parametrize("reported", [[RATE], "x", 5, True])
def test_figures_that_are_no_mapping(reported: object) -> None:
    figures, notes = case_figures({"figures": reported}, CHIP)
    assert figures == {} and len(notes) == 1
    assert case_figures({}, CHIP) == case_figures({"figures": None}, CHIP) == ({}, [])


def test_a_case_that_measures_is_measured(tmp_path: Path) -> None:
    judgement = judged(tmp_path, "measure", figures={"bf16": RATE, "bad": None})
    assert (judgement.verdict, judgement.failure) == (Verdict.MEASURED, None)
    assert judgement.verdict.is_success
    assert set(judgement.figures) == {
        "e2e_time",
        "round_time",
        "bf16",
        "bf16_of_peak",
    }  # it owes none of training's
    assert len(judgement.notes) == 1 and "'bad'" in judgement.notes[0]


@pytest.mark.parametrize("figures", [None, {}, {"bad": None}])
def test_a_case_that_is_to_measure_and_has_no_figure_is_invalid(figures: object, tmp_path: Path) -> None:
    judgement = judged(tmp_path, "measure", figures=figures, converged=True)
    assert judgement.verdict is Verdict.INVALID and judgement.failure is not None
    assert judgement.failure.failure_class is FailureClass.NO_RESULT
    assert ("'bad'" in judgement.failure.evidence) is bool(figures)


def test_a_case_that_trains_may_have_figures_of_its_own_too(tmp_path: Path) -> None:
    write_rank_log(tmp_path, training_events(figures={"bf16": RATE}))
    judgement = judge_folders(make_case(["h1"]), [tmp_path])
    assert judgement.verdict is Verdict.CONVERGED
    assert judgement.figures["p_whole"].value == 100.0 and judgement.figures["bf16"].value == 71.5


def test_a_part_of_the_peak_beyond_any_number_is_null_with_the_reason() -> None:
    figures, _ = case_figures({"figures": {"x": {**RATE, "value": 1.7e308, "unit": "PFLOP/s"}}}, CHIP)
    assert figures["x_of_peak"].value is None
    assert figures["x_of_peak"].source.startswith("1.7e+308 is no figure")


@pytest.mark.parametrize("caveat", [{}, {"caveat": "of one window"}])
def test_a_rate_above_the_peak_is_marked_wherever_it_is_shown(caveat: dict[str, str]) -> None:
    """Some chips' clocks go beyond what their data sheets reckon with."""
    figures, (note,) = case_figures({"figures": {"x": {**RATE, **caveat, "value": 101.0}}}, CHIP)
    doubt = "not to be trusted: it is 1.01 of the chip's peak"
    assert doubt in note
    marks = {each.caveat for each in figures.values()}
    assert marks == {"; ".join([*caveat.values(), doubt])} and set(figures) == {"x", "x_of_peak"}


@pytest.mark.parametrize("unit", ["GB/s", "GiB/s", "Gbit/s", "samples/s", "TFLOP/s"])
@pytest.mark.parametrize("value", [0.0, -3.0])
def test_a_rate_that_is_not_above_0_is_none(value: float, unit: str) -> None:
    rate = {name: text for name, text in RATE.items() if name != "peak"}
    assert f"it is {value:.6g} {unit}" in noted("x", {**rate, "value": value, "unit": unit})
    figures, notes = case_figures({"figures": {"x": {**rate, "value": value, "unit": "K/s"}}}, CHIP)
    assert figures["x"].value == value and not notes


def test_a_measurement_that_was_cut_off_has_no_steps(tmp_path: Path) -> None:
    """Its steps are operations, and what they came to until then is no figure yet."""
    write_rank_log(tmp_path, training_events()[:3])
    case = make_case(["h1"])
    assert judge_folders(case, [tmp_path]).figures["steps"].value == 1
    measure = replace(case, parameters={**case.parameters, "case_kind": "measure"})
    assert set(judge_folders(measure, [tmp_path]).figures) == {"round_time"}
