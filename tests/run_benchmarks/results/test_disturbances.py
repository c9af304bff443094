"""What may have disturbed a training is named with its value and limit; what is as it should be is not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.reading import parsed
from run_benchmarks.results.disturbances import LIMITS, Disturbance, Kind
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.trend import lasting_change
from tests.run_benchmarks.builders import conclude, make_case, observed
from tests.run_benchmarks.results.test_round_telemetry import (
    AT_THE_END,
    RANKS,
    T0,
    TRAIN,
    TRAINED_S,
    S,
    events,
    source,
    write_node,
)
from utils.events import Event, EventName
from utils.records import FailureClass, Verdict
from utils.telemetry.records import Sample, Scope, SourceInfo

MIDDLE = TRAIN + TRAINED_S // 2
CHIP: dict[str, Any] = {
    "utilisation": 0.95,
    "clock_mhz": 1980.0,
    "throttle": "sw_power_cap",
    "ecc_uncorrected": 3.0,
}
CHIP |= {"remapped_rows": 2.0, "temperature_c": 60.0}
SOURCES = [
    source("nvml", Scope.ACCELERATOR),
    source("cpu", Scope.HOST),
    source("cores", Scope.HOST),
    source("task", Scope.TASK),
]
CPUS = 16


def node(
    chip: Callable[[int, int], dict[str, Any]] = lambda second, device: {},
    busy: float = 0.52,
    own_cpus: float = 8.0,
) -> list[Sample]:
    """80 s of four chips and 16 CPUs. chip: what of one is otherwise in a second; own_cpus: those of the training."""
    samples = []
    for second in range(80):
        at, is_training = T0 + second * S, second >= RANKS
        for device in range(4):
            values = {**CHIP, "processes": float(is_training), **chip(second, device)}
            samples.append(Sample(at, "nvml", str(device), **values))
        samples.append(Sample(at, "cpu", utilisation=busy))
        samples += [Sample(at, "cores", str(number), utilisation=busy) for number in range(CPUS)]
        samples.append(Sample(at, "task", cpu_s=own_cpus * second))
    return samples


def disturbed(
    folder: Path,
    *nodes: Sequence[Sample],
    strict: bool = False,
    log: Sequence[Event] = (),
    sources: Sequence[SourceInfo] = SOURCES,
) -> RoundResult:
    hosts = [f"h{rank}" for rank in range(len(nodes))]
    for rank, samples in enumerate(nodes):
        every = [replace(event, rank=rank) for event in log or events(AT_THE_END)]
        own = every if rank == 0 else [event for event in every if event.name != EventName.FINISHED]
        write_node(folder / f"h{rank}_noderank{rank}", sources, samples, own)
    case = replace(make_case(hosts), undisturbed=strict)
    conclude(case, replace(observed(case), time_s=100.0), folder)
    content = json.loads((folder / "result.json").read_text())
    result: RoundResult = parsed(RoundResult, content, "result.json")  # as it is read back
    return result


def only(result: RoundResult) -> Disturbance:
    (disturbance,) = result.disturbances
    assert [note for note in result.notes if note.startswith(f"disturbed ({disturbance.kind.value})")]
    assert disturbance.limit == LIMITS[disturbance.kind].value
    assert result.verdict is Verdict.CONVERGED  # a warning changes no verdict
    return disturbance


def test_nothing_is_named_where_all_is_well(tmp_path: Path) -> None:
    """At the power cap, with errors and rows from before, and other clocks where a chip has nothing to do."""
    idle = node(lambda second, device: {"utilisation": 0.1, "clock_mhz": 900.0} if device == 3 else {})
    result = disturbed(tmp_path, node(), idle, strict=True)
    assert result.disturbances == ()
    assert result.verdict is Verdict.CONVERGED
    assert not [note for note in result.notes if "disturbed" in note]


PLANTED: dict[Kind, tuple[Callable[[int, int], dict[str, Any]], float]] = {
    Kind.THROTTLED: (
        lambda second, device: {"throttle": "hw_thermal_slowdown"} if device == 2 and second > MIDDLE else {},
        33 / 66,
    ),
    Kind.CLOCK_DROP: (
        lambda second, device: {"clock_mhz": 1500.0} if device == 2 and second > MIDDLE + 10 else {},
        1 - 1500 / 1980,
    ),
    Kind.FOREIGN_PROCESS: (
        lambda second, device: {"processes": 2.0} if device == 2 and second == MIDDLE else {},
        1,
    ),
    Kind.MEMORY_ERRORS: (
        lambda second, device: {"ecc_uncorrected": 5.0} if device == 2 and second > MIDDLE else {},
        2,
    ),
    Kind.REMAPPED_ROWS: (
        lambda second, device: {"remapped_rows": 3.0} if device == 2 and second > MIDDLE else {},
        1,
    ),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_on_one_chip_is_named_there(tmp_path: Path, kind: Kind) -> None:
    planted, value = PLANTED[kind]
    each = only(disturbed(tmp_path, node(), node(planted)))
    assert (each.kind, each.node, each.source, each.device) == (kind, 1, "nvml", "2")
    assert each.value == pytest.approx(value, abs=0.02)


def test_a_chip_that_was_slower_than_its_peers_from_the_beginning_is_named(tmp_path: Path) -> None:
    each = only(
        disturbed(tmp_path, node(), node(lambda _, device: {"clock_mhz": 1200.0} if device == 1 else {}))
    )
    assert (each.kind, each.node, each.device) == (Kind.CLOCK_DROP, 1, "1")
    assert "39% below the median of 8 devices, 1980 MHz" in each.what


def test_a_process_that_was_there_before_the_ranks_is_foreign(tmp_path: Path) -> None:
    each = only(disturbed(tmp_path, node(lambda second, device: {"processes": 1.0} if device == 0 else {})))
    assert (each.kind, each.device) == (Kind.FOREIGN_PROCESS, "0")
    assert each.what == "1 processes were on it before the ranks were started, of which the training's are 0"


def test_load_of_others_is_named_and_the_trainings_own_is_not(tmp_path: Path) -> None:
    assert disturbed(tmp_path / "own", node(busy=0.95, own_cpus=15.0)).disturbances == ()
    each = only(disturbed(tmp_path / "others", node(busy=0.75, own_cpus=8.0)))
    assert (each.kind, each.node, each.value) == (Kind.FOREIGN_LOAD, 0, pytest.approx(0.25))
    assert "others than the training used 4 of its 16 CPUs" in each.what


def test_a_setting_lets_no_disturbed_round_count(tmp_path: Path) -> None:
    planted, _ = PLANTED[Kind.THROTTLED]
    result = disturbed(tmp_path, node(), node(planted), strict=True)
    failure = result.failure
    assert failure is not None
    assert (result.verdict, failure.failure_class, failure.host) == (
        Verdict.INVALID,
        FailureClass.DISTURBED,
        "h1",
    )
    assert failure.evidence.startswith(
        "disturbed (throttled) on h1 nvml 2: hw_thermal_slowdown held it back in 50"
    )
    assert "REQUIRE_UNDISTURBED" in failure.remedy
    assert result.figures["p_train"].value is not None  # what was measured is kept


def test_the_part_that_another_run_trained_was_not_watched(tmp_path: Path) -> None:
    continued = {"step": 0, "samples": 0, "train_time": 0.0}
    with_part = (EventName.INIT_END, EventName.FINISHED)
    log = [
        replace(each, value={**each.value, "continued": continued}) if each.name in with_part else each
        for each in events(AT_THE_END)
    ]
    failure = disturbed(tmp_path, node(), strict=True, log=log).failure
    assert failure is not None and failure.failure_class is FailureClass.DISTURBED
    assert failure.message.startswith("disturbed (unwatched): the training up to step 0 was not watched")


@pytest.mark.parametrize("cut", [slice(0), slice(400)])
def test_a_setting_lets_no_round_count_of_which_too_little_was_sampled(tmp_path: Path, cut: slice) -> None:
    """Two lines that were no records, or no file at all, made a throttled round count."""
    result = disturbed(tmp_path, node(), node()[cut], strict=True)
    failure = result.failure
    assert failure is not None and result.verdict is Verdict.INVALID
    assert (failure.failure_class, failure.host) == (FailureClass.DISTURBED, "h1")
    assert (
        "disturbed (unwatched) on h1" in failure.evidence
        and "of the training was sampled" in failure.evidence
    )


def test_a_setting_lets_no_round_count_in_which_others_load_could_not_be_told(tmp_path: Path) -> None:
    """As of plain processes, which have no control group of their own: whatever else ran beside them was not seen."""
    untold = [sample for sample in node(busy=0.99) if sample.source != "task"]
    sources = [*SOURCES[:-1], replace(source("task", Scope.TASK), reason="no control group of its own")]
    result = disturbed(tmp_path, untold, strict=True, sources=sources)
    failure = result.failure
    assert failure is not None and result.verdict is Verdict.INVALID
    assert (failure.failure_class, failure.host) == (FailureClass.DISTURBED, "h0")
    assert (
        "(unwatched) on h0: others' load on its CPUs cannot be told (task: no control group"
        in failure.message
    )
    assert disturbed(tmp_path / "any", untold, sources=sources).verdict is Verdict.CONVERGED


def test_a_training_that_grows_faster_to_its_end_is_named(tmp_path: Path) -> None:
    log = events(AT_THE_END)
    steps = [
        Event(
            EventName.STEP_END,
            {"global_steps": step, "loss": 7.0, "seq/s": 100.0 + step},
            T0 + TRAIN * S + step * S,
        )
        for step in range(1, TRAINED_S - 1)
    ]
    each = only(disturbed(tmp_path, node(), log=sorted([*log, *steps], key=lambda event: event.time_ms)))
    assert (each.kind, each.node) == (Kind.UNSTEADY, None)
    assert "throughput rose by 19.8% in the second half" in each.what


def rates(of: Callable[[float], float], steps: int = 400) -> list[tuple[float, float]]:
    return [(1000.0 * step, of(step / steps)) for step in range(steps)]


def test_a_pace_that_settles_in_the_first_half_is_steady() -> None:
    for seed in range(300):
        draw = random.Random(seed)
        change = lasting_change(rates(lambda part, draw=draw: min(1, 0.3 + 2 * part) * draw.gauss(100, 5)))
        assert change is not None
        assert abs(change) < LIMITS[Kind.UNSTEADY].value


@pytest.mark.parametrize(("slope", "expected"), [(0.4, 0.2), (-0.4, -0.2)])
def test_a_lasting_change_is_measured_through_noise(slope: float, expected: float) -> None:
    draw = random.Random(0)
    change = lasting_change(rates(lambda part: (1 + slope * (part - 0.75)) * draw.gauss(100, 3)))
    assert change == pytest.approx(expected, abs=0.05)


def test_of_few_steps_or_a_log_with_a_hole_nothing_is_told() -> None:
    assert lasting_change(rates(lambda part: part, 39)) is None
    assert lasting_change([each for each in rates(lambda part: part) if not 250e3 < each[0] < 300e3]) is None
    assert lasting_change([(5.0, 1.0)] * 100) is None
