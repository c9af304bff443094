"""What telemetry comes to, by the whole way: files in node folders, judged, written, and read back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.plan.energy_factors import EnergyFactors
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.reading import parsed
from run_benchmarks.report.csv_files import TELEMETRY_COLUMNS, telemetry_rows
from run_benchmarks.report.power_tables import power_table, reconciliation_rows
from run_benchmarks.results import node_telemetry
from run_benchmarks.results.clocks import NodeClock
from run_benchmarks.results.meanings import meanings
from run_benchmarks.results.node_telemetry import _throttled_by
from run_benchmarks.results.phases import Phase
from run_benchmarks.results.power import NAMES as POWER
from run_benchmarks.results.readings import MOST_REASONS, Readings, Throttling
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.summary import without_nodes
from run_benchmarks.results.tables import results_tables
from run_benchmarks.results.telemetry_result import MOST_SOURCES, SourceTelemetry
from run_benchmarks.stages.clock import ClockReading
from tests.run_benchmarks.builders import (
    FINISHED,
    conclude,
    make_case,
    observed,
    with_own_script,
    write_rank_log,
)
from utils.events import Event, EventName
from utils.inventory import INVENTORY_FILE, HostInventory, Inventory, Software
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo, Tick

S = 1000
T0 = 1_700_000_000_000  # the monitor's first sample
RANKS, INIT, TRAIN = 5, 6, 10  # seconds after it: what the node does then
TRAINED_S = 65
SAMPLES = 1000


def events(evaluations: Mapping[int, float], offset_ms: int = 0, **finished: Any) -> list[Event]:
    """A training of TRAINED_S seconds; evaluations: second of the end after TRAIN_START -> how long it took."""

    def event(name: EventName, second: float, value: Mapping[str, Any]) -> Event:
        return Event(name.value, value, T0 + offset_ms + int(second * S))

    quality = {"metric": "mlm_accuracy", "mlm_accuracy": 0.33, "target": 0.3}
    last = {"global_steps": 50, "num_trained_samples": SAMPLES}
    return [
        event(EventName.INIT_START, INIT, {"ranks_start_ms": T0 + offset_ms + RANKS * S}),
        event(EventName.INIT_END, TRAIN - 1, {"init_time": 3.0}),
        event(EventName.TRAIN_START, TRAIN, {}),
        event(EventName.STEP_END, TRAIN + 5, {"global_steps": 1, "loss": 7.0}),
        *(
            event(EventName.EVALUATE, TRAIN + at, {**quality, **last, "eval_time": seconds})
            for at, seconds in evaluations.items()
        ),
        event(EventName.TRAIN_END, TRAIN + TRAINED_S, {"global_steps": 50}),
        event(EventName.FINISHED, TRAIN + TRAINED_S + 1, {**FINISHED, **TIMES, **finished}),
    ]


MOVED = {TRAIN - 2: 0.001}  # W, before the training: a meter that tells one value throughout is a note

TIMES = {
    "e2e_time": 72.0, "raw_train_time": 65.0, "no_eval_time": 60.0, "pure_compute_time": 55.0,
    "time_to_target": 65.0, "num_trained_samples": SAMPLES,
}  # fmt: skip
AT_THE_END = {TRAINED_S: 5.0}


def write_node(
    folder: Path, sources: Sequence[SourceInfo], samples: Sequence[Sample | Tick], log: Sequence[Event]
) -> None:
    write_rank_log(folder, log, rank=int(folder.name.rpartition("noderank")[2]))
    lines = map(record_line, (*sources, *samples))
    (folder / TELEMETRY_FILE).write_text("".join(lines), encoding="utf-8")


def source(name: str, scope: Scope, interval_s: float = 1.0) -> SourceInfo:
    return SourceInfo(T0, name, scope, interval_s, f"the note of {name}")


def every_second(sample: Callable[[int], Sample], seconds: Sequence[int] = range(80)) -> list[Sample]:
    return [replace(sample(second), time_ms=T0 + second * S) for second in seconds]


def judged(
    folder: Path,
    *hosts: str,
    changed: Callable[[CasePlan], CasePlan] = lambda case: case,
    clocks: Sequence[NodeClock] = (),
) -> tuple[RoundResult, dict[str, Any]]:
    """The result as it is written and read back, and as it stands in the file."""
    case = changed(make_case(hosts or ("h0",)))
    conclude(case, replace(observed(case), time_s=100.0, clocks=tuple(clocks)), folder)
    content = json.loads((folder / "result.json").read_text())
    result = parsed(RoundResult, content, "result.json")
    assert result.verdict.value == "CONVERGED", result.failure
    return result, content


def only_source(result: RoundResult, name: str, node: int = 0) -> SourceTelemetry:
    assert result.telemetry is not None
    return result.telemetry.nodes[node].sources[name]


def value(result: RoundResult, name: str) -> float | None:
    return result.figures[name].value


PWR = source("pwr", Scope.MACHINE)


def test_100_w_for_65_s_are_6500_j(tmp_path: Path) -> None:
    write_node(
        tmp_path / "h0_noderank0",
        [PWR],
        every_second(lambda _: Sample(0, "pwr", power_w=100.0)),
        events(AT_THE_END),
    )
    result, content = judged(tmp_path)
    assert value(result, "energy") == pytest.approx(6500, rel=0.01)
    assert value(result, "energy_to_target") == pytest.approx(6500, rel=0.01)
    assert value(result, "samples_per_joule") == pytest.approx(SAMPLES / 6500, rel=0.01)
    assert value(result, "idle_power") == pytest.approx(100)
    assert value(result, "energy_above_idle") == 0
    about = content["figures"]["idle_power"]
    assert (about["unit"], about["coverage"], about["better"]) == ("W/node", 1.0, "lower")
    assert about["window"] and about["source"].startswith("pwr (machine)") and about["definition"]
    told = content["telemetry"]
    assert {"unit", "window", "better", "definition", "of_source"} == set(told["figures"]["energy"])
    assert told["nodes"][0]["sources"]["pwr"]["figures"]["energy"]["coverage"] == 1.0


def test_phases_of_too_many_parts_are_not_told_apart_and_all_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five thousand evaluations of four thousand devices would take a quarter of an hour a node."""
    monkeypatch.setattr(node_telemetry, "MOST_PARTS", 5)
    write_node(
        tmp_path / "h0_noderank0", [PWR], every_second(lambda _: Sample(0, "pwr", power_w=100.0)),
        events({20: 5.0, 40: 5.0, 65: 5.0}),
    )  # fmt: skip
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    (node,) = result.telemetry.nodes
    assert list(only_source(result, "pwr").phases) == [Phase.IDLE] and Phase.EVALUATE in node.phases
    assert "pwr: it has too many devices for phases in so many parts" in node.missing
    assert value(result, "energy") == pytest.approx(6500, rel=0.01)


def test_a_step_of_power_falls_into_the_right_phases(tmp_path: Path) -> None:
    """100 W, and 300 W from 40 s after TRAIN_START on, at the moment when an evaluation begins."""

    def sample(second: int) -> Sample:
        return Sample(0, "pwr", power_w=60.0 if second < RANKS else 300.0 if second >= TRAIN + 40 else 100.0)

    write_node(tmp_path / "h0_noderank0", [PWR], every_second(sample), events({50: 10.0, 65: 5.0}))
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    seconds = {Phase.IDLE: 5, Phase.INIT: 3, Phase.WARM_UP: 5, Phase.TRAIN: 45, Phase.EVALUATE: 15}
    assert result.telemetry.nodes[0].phases == seconds
    phases = only_source(result, "pwr").phases
    watts = {phase: each.avg_power.value for phase, each in phases.items()}
    assert watts[Phase.INIT] == watts[Phase.WARM_UP] == pytest.approx(100)
    assert watts[Phase.EVALUATE] == pytest.approx(300, rel=0.01)
    # 35 s of 100 W before it and 10 s of 300 W after it; the reading of one second lies between the two
    joules = {phase: each.energy.value for phase, each in phases.items()}
    assert joules[Phase.TRAIN] == pytest.approx(35 * 100 + 10 * 300, abs=101)
    training = (Phase.WARM_UP, Phase.TRAIN, Phase.EVALUATE)
    assert sum(joules[phase] or 0.0 for phase in training) == pytest.approx(value(result, "energy"))
    assert watts[Phase.IDLE] == pytest.approx(60, abs=5)  # up to the first reading under load


def test_energy_to_target_ends_with_the_first_evaluation_that_met_it(tmp_path: Path) -> None:
    """A script of a case's own may go on when it has."""

    def own(case: CasePlan) -> CasePlan:
        return replace(with_own_script(case), parameters={"target_mlm_accuracy": 0.3})

    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0))
    write_node(tmp_path / "h0_noderank0", [PWR], samples, events({50: 10.0, 65: 5.0}))
    result, _ = judged(tmp_path, changed=own)
    assert value(result, "energy_to_target") == pytest.approx(5000)
    assert value(result, "energy") == pytest.approx(6500)


def test_without_a_target_that_was_met_there_is_no_energy_to_it(tmp_path: Path) -> None:
    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0))
    log = events(AT_THE_END, converged=False, time_to_target=None, final_mlm_accuracy=0.2)
    log = [
        replace(each, value={**each.value, "mlm_accuracy": 0.2}) if each.name == EventName.EVALUATE else each
        for each in log
    ]
    write_node(tmp_path / "h0_noderank0", [PWR], samples, log)
    case = make_case(("h0",))
    result = conclude(case, replace(observed(case), time_s=100.0), tmp_path)
    assert value(result, "energy") == pytest.approx(6500)
    assert value(result, "energy_to_target") is None
    assert "no evaluation met the target" in result.figures["energy_to_target"].source


def test_a_counter_that_wraps_is_unwrapped_in_each_phase(tmp_path: Path) -> None:
    wraps_at = 65_536_000  # mJ: every 44 s at 1500 W

    def sample(second: int) -> Sample:
        joules = (second * 1_500_000 + 65_000_000) % wraps_at
        return Sample(0, "rapl", "package-0", power_w=1.0, energy_mj=joules, energy_range_mj=wraps_at)

    rapl = source("rapl", Scope.PACKAGE)
    write_node(tmp_path / "h0_noderank0", [rapl], every_second(sample), events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") == pytest.approx(97_500)
    phases = only_source(result, "rapl").phases
    assert phases[Phase.TRAIN].energy.value == pytest.approx(82_500)
    assert "hardware energy counter" in phases[Phase.TRAIN].energy.source


GPUS = source("gpu", Scope.ACCELERATOR)


def gpus(watts: Callable[[int], float]) -> list[Sample]:
    return [
        Sample(T0 + second * S, "gpu", "0", power_w=watts(second), utilisation=0.9) for second in range(80)
    ]


def test_a_reading_that_no_chip_can_have_is_left_out_and_told(tmp_path: Path) -> None:
    samples = gpus(lambda second: 65_535 if second == 40 else 300)
    write_node(tmp_path / "h0_noderank0", [GPUS], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert (value(result, "energy"), value(result, "max_power")) == (pytest.approx(300 * TRAINED_S), 300)
    assert result.figures["energy"].caveat == ""
    assert result.notes == (
        "h0_noderank0: gpu: readings of power left out: 1 of 80, first 65535 W of 0; "
        "no accelerator that is on draws that",
    )


@pytest.mark.parametrize(("limit", "is_told"), [(300.0, False), (120.0, True), (0, False), ("400 W", False)])
def test_a_chip_that_was_read_far_beyond_its_power_limit_is_named(
    limit: float | str, is_told: bool, tmp_path: Path
) -> None:
    for rank in range(2):
        folder = tmp_path / f"h{rank}_noderank{rank}"
        write_node(folder, [GPUS], gpus(lambda second: 330), events(AT_THE_END) if rank == 0 else [])
        inventory = Inventory(HostInventory(accelerators=({"power_limit_w": limit},)), Software())
        (folder / INVENTORY_FILE).write_text(json.dumps(asdict(inventory)))
    result, _ = judged(tmp_path, "h0", "h1")
    told = "h0: gpu 0 was read at 330 W, its power limit is 120 W (of the first of 2 chips)"
    assert [note for note in result.notes if "limit" in note] == [told] * is_told


def test_a_machine_of_0_w_is_none_and_another_source_is_taken(tmp_path: Path) -> None:
    samples = [*every_second(lambda second: Sample(0, "pwr", power_w=0.0)), *gpus(lambda second: 300)]
    write_node(tmp_path / "h0_noderank0", [PWR, GPUS], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") == pytest.approx(300 * TRAINED_S)
    assert result.figures["energy"].scope == "accelerator"
    assert any("pwr: readings of power left out: 80 of 80, first 0 W" in note for note in result.notes)


def test_chips_of_0_w_tell_no_power_and_all_else(tmp_path: Path) -> None:
    write_node(tmp_path / "h0_noderank0", [GPUS], gpus(lambda second: 0.0), events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") is None and "80 of 80, first 0 W" in result.figures["energy"].source
    assert value(result, "utilisation") == pytest.approx(0.9)


def test_where_one_of_two_chips_tells_0_w_the_reason_says_so(tmp_path: Path) -> None:
    second = [replace(each, device="1", power_w=0.0) for each in gpus(lambda second: 300)]
    samples = [*gpus(lambda second: 300), *second]
    write_node(tmp_path / "h0_noderank0", [GPUS], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") is None
    assert "80 of 160, first 0 W of 1; no accelerator" in result.figures["energy"].source


@pytest.mark.parametrize(("beside", "is_told"), [(Scope.PACKAGE, True), (Scope.MACHINE, False)])
def test_beside_chips_of_0_w_a_machine_has_all_of_the_power_and_packages_have_not(
    beside: Scope, is_told: bool, tmp_path: Path
) -> None:
    other = every_second(lambda second: Sample(0, "other", power_w=50.0))
    sources = [GPUS, source("other", beside)]
    write_node(tmp_path / "h0_noderank0", sources, [*gpus(lambda second: 0.0), *other], events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") == pytest.approx(50 * TRAINED_S)
    assert result.figures["energy"].caveat.startswith("not sampled: h0_noderank0: gpu: readings" * is_told)
    assert bool(result.figures["energy"].caveat) == is_told


def test_a_package_may_draw_nothing_between_two_readings(tmp_path: Path) -> None:
    rapl = source("rapl", Scope.PACKAGE)
    samples = every_second(lambda second: Sample(0, "rapl", "package-0", power_w=float(second % 2)))
    write_node(tmp_path / "h0_noderank0", [rapl], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") == pytest.approx(TRAINED_S / 2)
    assert value(result, "max_power") == 1 and not result.notes


def judged_by_a_meter(folder: Path, meter: SourceInfo, seconds: Sequence[int]) -> RoundResult:
    """Of one node, whose meter told 100 W at these seconds."""
    samples = every_second(lambda second: Sample(0, "pwr", power_w=100.0 + MOVED.get(second, 0.0)), seconds)
    write_node(folder / "h0_noderank0", [meter], samples, events(AT_THE_END))
    return judged(folder)[0]


def test_a_meter_that_stops_for_5_s_has_a_gap_that_is_named(tmp_path: Path) -> None:
    """Nothing is read from 30 to 36 s after TRAIN_START."""
    seconds = [second for second in range(80) if not TRAIN + 30 < second < TRAIN + 36]
    result = judged_by_a_meter(tmp_path, PWR, seconds)
    figure = result.figures["energy"]
    assert figure.value == pytest.approx(5900)
    assert figure.coverage == pytest.approx(59 / 65)
    gaps = [(gap.start_s, gap.seconds) for gap in only_source(result, "pwr").gaps]
    assert gaps == [(30, 6)]
    assert "h0_noderank0: pwr was not read for 6 s, from 30 s after TRAIN_START on" in result.notes
    assert value(result, "samples_per_joule") is None
    assert only_source(result, "pwr").phases[Phase.EVALUATE].energy.coverage == 1.0


def test_a_meter_that_is_read_in_time_has_no_gap(tmp_path: Path) -> None:
    seconds = [second for second in range(80) if not TRAIN + 30 < second < TRAIN + 33]  # 3 s
    result = judged_by_a_meter(tmp_path, PWR, seconds)
    assert only_source(result, "pwr").gaps == () and not result.notes


def test_a_slow_meter_that_misses_a_reading_has_a_gap(tmp_path: Path) -> None:
    """One that comes late by less than half of its interval has none."""
    bmc = source("pwr", Scope.MACHINE, interval_s=5.0)
    seconds = [0, 5, 10, 15, 22, *range(25, 50, 5), *range(55, 80, 5)]
    result = judged_by_a_meter(tmp_path, bmc, seconds)
    assert [(gap.start_s, gap.seconds) for gap in only_source(result, "pwr").gaps] == [(35, 10)]
    assert result.figures["energy"].coverage == 1.0


def test_a_meter_that_ends_early_has_a_gap_up_to_the_end(tmp_path: Path) -> None:
    write_node(
        tmp_path / "h0_noderank0",
        [PWR],
        every_second(lambda _: Sample(0, "pwr", power_w=100.0), range(TRAIN + 40)),
        events(AT_THE_END),
    )
    result, _ = judged(tmp_path)
    assert [(gap.start_s, gap.seconds) for gap in only_source(result, "pwr").gaps] == [(39, 26)]


NVML = source("nvml", Scope.ACCELERATOR)


def chips(second: int) -> list[Sample]:
    """Two chips: the second one is hot and held back from 20 s after TRAIN_START on."""
    training = TRAIN <= second <= TRAIN + TRAINED_S
    hot = second >= TRAIN + 20
    common = {"memory_used_mib": 2048.0 if training else 8192.0, "utilisation": 0.9 if training else 0.0}
    at = T0 + second * S
    return [
        Sample(at, "nvml", "0", power_w=200.0 if training else 50.0, temperature_c=50.0, throttle="", **common),
        Sample(
            at, "nvml", "1", power_w=300.0 if training else 70.0, temperature_c=90.0 if hot else 60.0,
            throttle="hw_thermal_slowdown,sw_power_cap" if hot else "", **common,
        ),
    ]  # fmt: skip


def test_each_device_has_figures_of_its_own(tmp_path: Path) -> None:
    samples = [sample for second in range(80) for sample in chips(second)]
    write_node(tmp_path / "h0_noderank0", [NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    nvml = only_source(result, "nvml")
    assert (nvml.scope, nvml.devices, nvml.note) == (Scope.ACCELERATOR, ("0", "1"), "the note of nvml")
    columns = {name: each.values for name, each in nvml.of_devices.items()}
    assert columns["energy"] == pytest.approx((13_000, 19_500))
    assert columns["avg_power"] == pytest.approx((200, 300))
    assert columns["max_power"] == (200, 300)
    assert columns["idle_power"] == pytest.approx((50, 70))
    assert columns["energy_above_idle"] == pytest.approx((150 * 65, 230 * 65))
    assert columns["max_memory"] == (2.0, 2.0)
    assert columns["utilisation"] == pytest.approx((0.9, 0.9))
    assert columns["max_temperature"] == (50, 90)
    assert columns["avg_temperature"] == pytest.approx((50, (20 * 60 + 46 * 90) / 66))
    assert columns["throttled"] == pytest.approx((0, 46 / 66))
    assert nvml.throttled_by == {
        "hw_thermal_slowdown": (0, pytest.approx(46 / 66)),
        "sw_power_cap": (0, pytest.approx(46 / 66)),
    }
    assert nvml.of_devices["utilisation"].coverage == (1.0, 1.0)
    figures = {name: each.value for name, each in nvml.figures.items()}
    assert (figures["energy"], figures["max_temperature"]) == (pytest.approx(32_500), 90)
    assert value(result, "utilisation") == pytest.approx(0.9)
    assert value(result, "max_temperature") == 90
    assert value(result, "max_device_memory") == 2.0
    assert value(result, "throttled") == pytest.approx(23 / 66)
    assert value(result, "energy_above_idle") == pytest.approx(380 * 65)


def test_of_the_reasons_for_which_a_sources_devices_are_throttled_the_commonest_are_kept() -> None:
    """A node that writes others for each of its devices made a result.json that was too large to be read."""
    own = [Throttling(10, 10, Counter({f"{device}.{number}": 1 for number in range(32)})) for device in "01"]
    for each in own:
        each.by_reason["power"] = 9
    throttling = {("nvml", str(device)): each for device, each in enumerate(own)}
    readings = cast(Readings, SimpleNamespace(throttling=lambda: throttling))
    shares = _throttled_by(readings, "nvml", ["0", "1"])
    assert len(shares) == MOST_REASONS and shares["power"] == (0.9, 0.9)


def test_the_ends_of_a_training_without_a_reading_are_no_missing_ones(tmp_path: Path) -> None:
    """Of 65 s with a reading every 2 s there are 32 or 33, by where the first one lies."""
    every_2_s = source("nvml", Scope.ACCELERATOR, interval_s=2.0)

    def coverage(seconds: Sequence[int]) -> float | None:
        samples = [replace(each, time_ms=each.time_ms + 900) for at in seconds for each in chips(at)]
        write_node(tmp_path / "h0_noderank0", [every_2_s], samples, events(AT_THE_END))
        result, _ = judged(tmp_path)
        assert "was sampled" not in result.figures["utilisation"].caveat or len(seconds) < 40
        return result.figures["utilisation"].coverage

    assert coverage(range(1, 80, 2)) == 1.0
    missed = [at for at in range(1, 80, 2) if at not in (31, 41, 51)]
    assert coverage(missed) == pytest.approx(29 / 32)


def test_each_node_is_cut_by_what_its_own_first_rank_says(tmp_path: Path) -> None:
    """Node 1 began its initialization 2 s later, and its idle time was longer."""
    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0))
    write_node(tmp_path / "h0_noderank0", [PWR], samples, events(AT_THE_END))
    late = [replace(each, rank=1) for each in events(AT_THE_END)[:-1]]
    late[0] = replace(late[0], time_ms=late[0].time_ms + 2 * S, value={"ranks_start_ms": T0 + 7 * S})
    write_node(tmp_path / "h1_noderank1", [PWR], samples, late)
    result, _ = judged(tmp_path, "h0", "h1")
    assert result.telemetry is not None
    first, second = result.telemetry.nodes
    assert (first.phases[Phase.IDLE], second.phases[Phase.IDLE]) == (5, 7)
    assert (first.phases[Phase.INIT], second.phases[Phase.INIT]) == (3, 1)
    assert first.phases[Phase.TRAIN] == second.phases[Phase.TRAIN] == 55


def test_a_node_whose_clock_is_1_5_s_ahead_is_cut_at_the_same_moments(tmp_path: Path) -> None:
    """Both draw 300 W from 40 s after TRAIN_START on, which is when their evaluation begins."""

    def sample(second: int) -> Sample:
        return Sample(0, "pwr", power_w=300.0 if second >= TRAIN + 40 else 100.0)

    evaluations = {65: 25.0}
    ahead = 1500
    write_node(tmp_path / "h0_noderank0", [PWR], every_second(sample), events(evaluations))
    shifted = [replace(each, time_ms=each.time_ms + ahead) for each in every_second(sample)]
    log = [replace(each, rank=1) for each in events(evaluations, ahead)[:-1]]
    write_node(tmp_path / "h1_noderank1", [PWR], shifted, log)
    clocks = [NodeClock(ClockReading(T0 / S, offset_s, 0.001)) for offset_s in (0.0, ahead / S)]
    result, _ = judged(tmp_path, "h0", "h1", clocks=clocks)
    assert result.telemetry is not None
    first, second = (node.sources["pwr"].phases for node in result.telemetry.nodes)
    assert first == second
    assert second[Phase.EVALUATE].avg_power.value == pytest.approx(300, rel=0.01)


def test_what_is_not_there_is_null_with_its_reason(tmp_path: Path) -> None:
    """As of a run of earlier versions: nothing tells when its ranks were started."""
    old = [
        replace(each, value={}) if each.name == EventName.INIT_START else each for each in events(AT_THE_END)
    ]
    silent = replace(NVML, reason="no NVIDIA driver")
    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0))
    write_node(tmp_path / "h0_noderank0", [silent, PWR], samples, old)
    result, _ = judged(tmp_path)
    assert value(result, "idle_power") is None and "INIT_START has no" in result.figures["idle_power"].source
    assert value(result, "energy_above_idle") is None
    assert value(result, "utilisation") is None
    assert "no source of accelerators" in result.figures["utilisation"].source
    assert result.telemetry is not None
    node = result.telemetry.nodes[0]
    assert Phase.IDLE not in node.phases
    assert any("no NVIDIA driver" in text for text in node.missing)
    assert list(node.sources) == ["pwr"]


def test_a_monitor_that_began_with_the_ranks_saw_no_idle_time(tmp_path: Path) -> None:
    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0), range(4, 80))
    write_node(tmp_path / "h0_noderank0", [PWR], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "idle_power") is None
    assert "for 1 s before the first rank" in result.figures["idle_power"].source


def watts_of(second: int, machine: float, chip: float, counted: float) -> list[Sample]:
    at = T0 + second * S
    return [
        Sample(at, "pwr", power_w=machine + MOVED.get(second, 0.0)),
        Sample(at, "nvml", "0", power_w=chip, energy_mj=counted * second * 1000),
    ]


@pytest.mark.parametrize(
    ("machine", "chip", "counted", "warnings"),
    [
        (500.0, 400.0, 400.0, []),
        (400.0, 400.0, 400.0, []),
        (300.0, 400.0, 400.0, ["pwr >= nvml does not hold: 300 W against 400 W"]),
        (
            500.0,
            400.0,
            300.0,
            ["nvml: energy counter = integral of power does not hold: 300 W against 400 W"],
        ),
    ],
)
def test_sources_that_measure_the_same_are_held_against_each_other(
    machine: float, chip: float, counted: float, warnings: list[str], tmp_path: Path
) -> None:
    samples = [each for second in range(80) for each in watts_of(second, machine, chip, counted)]
    write_node(tmp_path / "h0_noderank0", [PWR, NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    compared = result.telemetry.reconciliation
    assert [each.what for each in compared] == ["pwr >= nvml", "nvml: energy counter = integral of power"]
    assert [each.agrees for each in compared].count(False) == len(warnings)
    assert len(result.notes) == len(warnings)
    for note, warning in zip(result.notes, warnings, strict=True):
        assert warning in note


def caveats(result: RoundResult) -> dict[str, str]:
    return {name: result.figures[name].caveat for name in POWER if value(result, name) is not None}


@pytest.mark.parametrize(
    ("sources", "counted", "marked"),
    [
        ([PWR, NVML], 400.0, "pwr >= nvml does not hold: 300 W against 400 W"),
        ([NVML], 0.4, "nvml: energy counter = integral of power does not hold: 0.4 W against 400 W"),
    ],
)
def test_all_figures_of_a_source_that_others_contradict_are_marked(
    sources: list[SourceInfo], counted: float, marked: str, tmp_path: Path
) -> None:
    samples = [each for second in range(80) for each in watts_of(second, 300.0, 400.0, counted)]
    names = [each.source for each in sources]
    kept = [each for each in samples if each.source in names]
    write_node(tmp_path / "h0_noderank0", sources, kept, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert set(caveats(result)) == set(POWER)
    assert all(each.startswith(f"h0_noderank0: {marked}") for each in caveats(result).values())
    _, power = results_tables([result])
    shown = dict(zip(power.headings, power.rows[0], strict=True))
    assert shown["samples/J"].endswith("*") and shown["above idle J"].endswith("*")
    assert len(power.footnotes) == 1 and marked in power.footnotes[0]


def test_figures_of_a_source_that_nobody_contradicts_are_not_marked(tmp_path: Path) -> None:
    """The chips' counter is wrong, and the machine's meter has the figures."""
    samples = [each for second in range(80) for each in watts_of(second, 500.0, 400.0, 0.4)]
    write_node(tmp_path / "h0_noderank0", [PWR, NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert len(result.notes) == 1 and not any(caveats(result).values())
    table = power_table(result, ["h0"])
    assert table is not None
    assert {row[1]: row[3][0] for row in table.rows} == {"nvml": "0.400* W, 2* J", "pwr": "500 W, 2500 J"}


def test_power_that_stands_in_for_a_counter_is_not_marked_by_that_counter(tmp_path: Path) -> None:
    """A chip of 400 W whose counter leaps up by 40 kJ and back again."""
    off = {TRAIN + 20: 4e7, TRAIN + 21: 4e7}
    samples = [each for second in range(80) for each in watts_of(second, 500.0, 400.0, 400.0)]
    leaping = [
        replace(each, energy_mj=each.energy_mj + off.get((each.time_ms - T0) // S, 0.0))
        for each in samples
        if each.energy_mj is not None
    ]
    write_node(tmp_path / "h0_noderank0", [NVML], leaping, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") == pytest.approx(400 * TRAINED_S)
    assert "reset or misread" in result.figures["energy"].source
    assert not any(caveats(result).values())
    alone = [replace(each, power_w=None) for each in leaping]
    write_node(tmp_path / "alone" / "h0_noderank0", [NVML], alone, events(AT_THE_END))
    doubted, _ = judged(tmp_path / "alone")
    assert "some of the energy counter was not used: it was reset or misread" in caveats(doubted)["energy"]


def test_the_largest_power_by_a_counter_with_faults_is_marked(tmp_path: Path) -> None:
    off = {TRAIN + 20: 1.5e6, TRAIN + 21: 1.5e6}
    samples = every_second(
        lambda second: Sample(0, "rapl", "package-0", energy_mj=1.8e5 * second + off.get(second, 0.0))
    )
    write_node(tmp_path / "h0_noderank0", [source("rapl", Scope.PACKAGE)], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert "misread 1 time" in caveats(result)["max_power"]
    assert "misread 1 time" in only_source(result, "rapl").figures["max_power"].source


def test_idle_power_is_of_the_time_in_which_its_source_was_read(tmp_path: Path) -> None:
    """The chips' monitor is 2 s later than the host's."""
    rapl = source("rapl", Scope.PACKAGE)
    packages = every_second(lambda second: Sample(0, "rapl", "package-0", power_w=50.0))
    chip = [each for each in gpus(lambda second: 300) if each.time_ms >= T0 + 2 * S]
    write_node(tmp_path / "h0_noderank0", [rapl, GPUS], [*packages, *chip], events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert (value(result, "idle_power"), result.figures["idle_power"].coverage) == (300, 1.0)


def test_energy_above_an_idle_power_that_is_doubted_is_doubted(tmp_path: Path) -> None:
    """Two readings of the counter are 0 before the ranks start."""
    samples = [
        replace(each, power_w=None, energy_mj=0.0 if each.time_ms - T0 in (5 * S, 6 * S) else each.energy_mj)
        for second in range(80)
        for each in watts_of(second, 500.0, 400.0, 400.0)
        if each.energy_mj is not None
    ]
    write_node(tmp_path / "h0_noderank0", [NVML], samples, events(AT_THE_END))
    doubts = caveats(judged(tmp_path)[0])
    assert (
        doubts["energy"] == ""
        and "misread" in doubts["energy_above_idle"]
        and "misread" in doubts["idle_power"]
    )


def of_two_chips(machine: float, second_chip: Callable[[int], float | None]) -> list[Sample]:
    """A machine with a chip of 300 W, and a second one which may not be read."""
    return [
        sample
        for second in range(80)
        for sample in (
            Sample(T0 + second * S, "pwr", power_w=machine),
            Sample(T0 + second * S, "nvml", "0", power_w=300.0),
            Sample(T0 + second * S, "nvml", "1", power_w=second_chip(second)),
        )
    ]


def until(last: int) -> Callable[[int], float | None]:
    return lambda second: 300.0 if second < last else None


@pytest.mark.parametrize(
    ("machine", "second_chip", "agrees", "second"),
    [
        (200.0, until(0), False, 300.0),  # never read
        (200.0, until(TRAIN + 11), False, 300 + 300 * 10 / TRAINED_S),  # too short to be compared with
        (500.0, until(TRAIN + 41), False, 600.0),  # lost at 40 s: both until then
        (500.0, until(0), None, 300.0),
        (700.0, until(TRAIN + 11), None, 300 + 300 * 10 / TRAINED_S),
        (700.0, until(TRAIN + 41), True, 600.0),
        (700.0, until(80), True, 600.0),
    ],
)
def test_a_machine_is_held_against_what_was_read_of_its_chips(
    machine: float,
    second_chip: Callable[[int], float | None],
    agrees: bool | None,
    second: float,
    tmp_path: Path,
) -> None:
    write_node(tmp_path / "h0_noderank0", [PWR, NVML], of_two_chips(machine, second_chip), events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    (compared,) = result.telemetry.reconciliation
    assert (compared.agrees, compared.first, compared.sources) == (agrees, machine, ("pwr", "nvml"))
    assert compared.second == pytest.approx(second)
    assert bool(result.figures["samples_per_joule"].caveat) == (agrees is False)


def test_a_machine_whose_power_fell_when_a_chip_was_lost_is_held_against_the_other_too(
    tmp_path: Path,
) -> None:
    """Until 40 s all is well; over the whole it drew less than the chip that was always read."""
    samples = [
        replace(each, power_w=10.0) if each.source == "pwr" and each.time_ms > T0 + 50 * S else each
        for each in of_two_chips(620.0, until(TRAIN + 41))
    ]
    samples = [replace(each, power_w=500.0) if each.device == "0" else each for each in samples]
    samples = [
        replace(each, power_w=50.0) if each.device == "1" and each.power_w else each for each in samples
    ]
    write_node(tmp_path / "h0_noderank0", [PWR, NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert any("pwr >= nvml does not hold" in note for note in result.notes)


@pytest.mark.parametrize(("counted", "agrees"), [(0.3, False), (300.0, None)])
def test_the_counters_that_were_read_are_compared_though_one_was_not(
    counted: float, agrees: bool | None, tmp_path: Path
) -> None:
    samples = [
        sample
        for second in range(80)
        for sample in (
            Sample(T0 + second * S, "nvml", "0", power_w=300.0, energy_mj=counted * second * 1000),
            Sample(T0 + second * S, "nvml", "1", power_w=300.0),
        )
    ]
    write_node(tmp_path / "h0_noderank0", [NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    (compared,) = result.telemetry.reconciliation
    assert (compared.agrees, compared.first, compared.second) == (agrees, pytest.approx(counted), 300)


def test_of_no_energy_there_are_no_samples_per_joule_and_the_reason_is_said(tmp_path: Path) -> None:
    def still(second: int) -> Sample:
        return Sample(0, "rapl", "package-0", power_w=0.0)

    rapl = source("rapl", Scope.PACKAGE)
    write_node(tmp_path / "h0_noderank0", [rapl], every_second(still), events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert value(result, "energy") == 0 and value(result, "samples_per_joule") is None
    assert result.figures["samples_per_joule"].source == "energy is 0 J"


def test_sources_that_were_not_read_at_the_same_time_are_not_compared(tmp_path: Path) -> None:
    samples = [
        each
        for second in range(80)
        for each in watts_of(second, 100.0, 400.0, 400.0)
        if (each.source == "pwr") == (second < 40)
    ]
    write_node(tmp_path / "h0_noderank0", [PWR, NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    assert [each.agrees for each in result.telemetry.reconciliation] == [None, True]
    assert not any("does not hold" in note for note in result.notes)


def test_a_table_of_power_stands_where_it_was_measured(tmp_path: Path) -> None:
    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0))
    write_node(tmp_path / "a" / "h0_noderank0", [PWR], samples, events(AT_THE_END))
    write_node(tmp_path / "b" / "h0_noderank0", [replace(PWR, reason="no meter")], [], events(AT_THE_END))
    (measured, _), (unmeasured, _) = judged(tmp_path / "a"), judged(tmp_path / "b")
    rounds, power = results_tables([measured, unmeasured])
    assert len(rounds.rows) == 2 and "energy J" in rounds.headings and "idle W" not in rounds.headings
    assert power.headings == (
        *("power and energy", "round", "of the", "mean W", "max W", "idle W", "above idle J"),
        *("to target J", "samples/J"),
    )
    assert power.rows == (
        ("toy:pytorch:X1:2:1:1", "1", "machine", "100", "100", "100", "0", "6500", "0.154"),
    )
    assert any("`idle W` (W/node; lower is better)" in line for line in meanings([measured, unmeasured]))
    assert len(results_tables([unmeasured])) == 1
    assert not any("idle W" in line for line in meanings([unmeasured]))


def test_the_energy_of_a_schedulers_job_stands_by_our_own_and_says_of_what_it_is(tmp_path: Path) -> None:
    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0))
    write_node(tmp_path / "a" / "h0_noderank0", [PWR], samples, events(AT_THE_END))
    write_node(tmp_path / "b" / "h0_noderank0", [replace(PWR, reason="no meter")], [], events(AT_THE_END))
    job = GrantedJob("slurm", "17", ("n1", "n2"), energy_j=121000.0)
    (measured, _), (unmeasured, _) = judged(tmp_path / "a"), judged(tmp_path / "b")
    line = (
        "toy:pytorch:X1:2:1:1, round 1: the accounting of slurm has 121000 J for job 17, "
        "of 2 nodes from the job's start to its end, not of the training alone"
    )
    rounds, power = results_tables([replace(measured, allocation=job)])
    assert line in power.footnotes and line not in rounds.footnotes
    (rounds,) = results_tables([replace(unmeasured, allocation=job)])
    assert line in rounds.footnotes
    for table in results_tables([replace(measured, allocation=replace(job, energy_j=None))]):
        assert not any("accounting" in note for note in table.footnotes)


def test_a_summary_does_not_grow_with_the_nodes(tmp_path: Path) -> None:
    samples = [sample for second in range(80) for sample in chips(second)]
    write_node(tmp_path / "h0_noderank0", [NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    brief = without_nodes(result)
    assert brief.telemetry is not None and result.telemetry is not None
    assert (brief.telemetry.nodes, brief.telemetry.reconciliation) == ((), ())
    assert brief.telemetry.figures == result.telemetry.figures and brief.figures == result.figures


def test_the_report_and_the_csv_tell_of_phases_devices_and_agreement(tmp_path: Path) -> None:
    samples = [each for second in range(80) for each in watts_of(second, 300.0, 400.0, 400.0)]
    samples = [each for each in samples if not TRAIN + 30 < (each.time_ms - T0) / S < TRAIN + 36]
    write_node(tmp_path / "h0_noderank0", [PWR, NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    table = power_table(result, ["h0"])
    assert table is not None
    assert table.phases == ["idle", "init", "warm-up", "train", "evaluate"]
    rows = {row[1]: row for row in table.rows}
    assert rows["pwr"][3][0] == "300* W, 1500* J" and rows["pwr"][3][3] == "300* W, 14700* J"
    assert rows["pwr"][4] == "1; the longest 6 s, from 30 s after TRAIN_START"
    compared = reconciliation_rows(result, ["h0"])
    assert [row[4] for row in compared] == ["no", "yes"]
    lines = [dict(zip(TELEMETRY_COLUMNS, row, strict=True)) for row in telemetry_rows([result])]
    chip = next(line for line in lines if line["device"] == "0" and line["figure"] == "avg_power")
    assert (chip["source"], chip["scope"], chip["unit"]) == ("nvml", "accelerator", "W")
    assert chip["value"] == pytest.approx(400)
    idle = next(line for line in lines if line["phase"] == "idle" and line["source"] == "pwr")
    assert (idle["figure"], idle["value"], idle["by"]) == (
        "energy", pytest.approx(1500), "power integrated by the trapezoid rule"
    )  # fmt: skip


def test_carbon_and_cost_are_estimates_by_the_users_factors_alone(tmp_path: Path) -> None:
    """6500 J are 0.001806 kWh."""
    samples = every_second(lambda _: Sample(0, "pwr", power_w=100.0))
    write_node(tmp_path / "h0_noderank0", [PWR], samples, events(AT_THE_END))
    plain, _ = judged(tmp_path)
    assert value(plain, "carbon_estimate") is value(plain, "cost_estimate") is None
    assert "no factor is given: COST_PER_KWH" in plain.figures["cost_estimate"].source

    def priced(case: CasePlan) -> CasePlan:
        return replace(case, energy_factors=EnergyFactors(400.0, (0.3, "EUR")))

    result, _ = judged(tmp_path, changed=priced)
    carbon, cost = result.figures["carbon_estimate"], result.figures["cost_estimate"]
    assert (carbon.value, carbon.unit) == (pytest.approx(6500 / 3.6e6 * 400), "gCO2e")
    assert (cost.value, cost.unit) == (pytest.approx(6500 / 3.6e6 * 0.3), "EUR")
    assert "x 0.3 EUR/kWh, COST_PER_KWH of test_conf.py" in cost.source
    assert cost.caveat == carbon.caveat == "an estimate, by a factor that the user gave"


def test_of_several_nodes_the_hottest_chip_counts_and_the_mean_of_the_rest(tmp_path: Path) -> None:
    def cooler(sample: Sample) -> Sample:
        return replace(sample, temperature_c=(sample.temperature_c or 0.0) - 30, utilisation=0.5, throttle="")

    samples = [sample for second in range(80) for sample in chips(second)]
    write_node(tmp_path / "h0_noderank0", [NVML], samples, events(AT_THE_END))
    log = [replace(each, rank=1) for each in events(AT_THE_END)[:-1]]
    write_node(tmp_path / "h1_noderank1", [NVML], list(map(cooler, samples)), log)
    result, _ = judged(tmp_path, "h0", "h1")
    assert (value(result, "max_temperature"), value(result, "max_device_memory")) == (90, 2.0)
    assert value(result, "utilisation") == pytest.approx(0.7)
    assert value(result, "throttled") == pytest.approx(23 / 66 / 2)
    assert result.figures["max_temperature"].source == "on h0_noderank0"


def test_sources_that_were_read_together_for_a_moment_are_not_compared(tmp_path: Path) -> None:
    """For 20 s: that is too short for meters that average."""
    samples = [
        each
        for second in range(80)
        for each in watts_of(second, 100.0, 400.0, 400.0)
        if each.source == "nvml" or TRAIN + 20 <= second <= TRAIN + 40
    ]
    write_node(tmp_path / "h0_noderank0", [PWR, NVML], samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    machine, _ = result.telemetry.reconciliation
    assert (machine.agrees, machine.first, machine.second) == (None, 100, 400)
    assert "not compared: less than 30 s" in machine.reason


def test_a_node_that_writes_of_many_sources_costs_no_round_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of a thousand sources would take hours, and a result of that many could not be read back."""
    monkeypatch.setattr("run_benchmarks.results.round_telemetry.MOST_COMPARED", 5)
    names = {
        f"{scope.name}{number}": scope for scope in (Scope.MACHINE, Scope.ACCELERATOR) for number in range(40)
    }
    samples = [Sample(T0 + second * S, name, power_w=100.0) for second in range(80) for name in names]
    sources = [source(name, scope) for name, scope in names.items()]
    write_node(tmp_path / "h0_noderank0", sources, samples, events(AT_THE_END))
    result, _ = judged(tmp_path)
    assert result.telemetry is not None
    compared = result.telemetry.reconciliation
    assert len(compared) == 5 and len(compared[0].sources) == 1 + MOST_SOURCES


def test_of_many_nodes_with_the_same_fault_there_is_one_note_and_the_first_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("run_benchmarks.results.round_telemetry.MOST_ALL_DEVICES", 5)
    samples = [each for second in range(80) for each in watts_of(second, 300.0, 400.0, 400.0)]
    hosts = [f"h{rank}" for rank in range(4)]
    for rank, host in enumerate(hosts):
        log = [replace(each, rank=rank) for each in events(AT_THE_END)[: None if rank == 0 else -1]]
        write_node(tmp_path / f"{host}_noderank{rank}", [PWR, NVML], samples, log)
    result, _ = judged(tmp_path, *hosts)
    (note,) = result.notes
    assert note.startswith(
        "h0_noderank0, h1_noderank1, h2_noderank2, h3_noderank3: pwr >= nvml does not hold"
    )
    assert note.endswith("(of the first of them)")
    assert result.telemetry is not None
    assert (len(result.telemetry.nodes), result.telemetry.more_nodes) == (2, 2)
    assert {each.node for each in result.telemetry.reconciliation} == {0, 1}
    assert value(result, "avg_power") == pytest.approx(300)
