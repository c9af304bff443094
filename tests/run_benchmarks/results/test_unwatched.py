"""With REQUIRE_UNDISTURBED no round counts of which it cannot be told whether something disturbed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.results.round_result import RoundResult
from tests.run_benchmarks.results.test_disturbances import SOURCES, disturbed, node
from tests.run_benchmarks.results.test_round_telemetry import RANKS, T0, TRAIN, TRAINED_S, S, events
from utils.records import FailureClass, Verdict
from utils.telemetry.records import Sample, SourceInfo

MIDDLE = TRAIN + TRAINED_S // 2
Change = Callable[[Sample], "Sample | None"]


def second(sample: Sample) -> int:
    return (sample.time_ms - T0) // S


def of(name: str, change: Change) -> Change:
    """The same for all other sources."""
    return lambda sample: change(sample) if sample.source == name else sample


def once_in(seconds: int) -> Change:
    return lambda sample: sample if second(sample) % seconds == 0 else None


def changed(samples: Sequence[Sample], change: Change) -> list[Sample]:
    return [kept for sample in samples if (kept := change(sample))]


def seldom(seconds: int, *names: str) -> Sequence[SourceInfo]:
    return [replace(each, interval_s=seconds) if each.source in names else each for each in SOURCES]


def broken(name: str) -> Sequence[SourceInfo]:
    return [replace(each, reason="cannot be used") if each.source == name else each for each in SOURCES]


def untold(sample: Sample) -> Sample:
    return replace(sample, utilisation=None)


def no_longer(sample: Sample) -> Sample | None:
    return sample if second(sample) < MIDDLE else None


OF_CPUS: dict[str, tuple[Change, Sequence[SourceInfo], str]] = {
    "cores seldom": (of("cores", once_in(77)), seldom(77, "cores"), "cores: it was not read while training"),
    "task seldom": (of("task", once_in(60)), seldom(60, "task"), "task: its readings are of 0 s, and 10 s"),
    "task twice": (
        of("task", once_in(30)),
        seldom(30, "task"),
        "task is read once in 30 s, and the training",
    ),
    "cpu seldom": (of("cpu", once_in(20)), seldom(20, "cpu"), "cpu is read once in 20 s, and the training"),
    "cpu null": (of("cpu", untold), SOURCES, "cpu: it was not read while training"),
    "cpu broken": (of("cpu", lambda _: None), broken("cpu"), "cpu: cannot be used"),
    "cpu fails later": (of("cpu", no_longer), SOURCES, "% of the training was sampled by cpu"),
    "cores null": (of("cores", untold), SOURCES, "cores: it was not read while training"),
    "no task": (of("task", lambda _: None), SOURCES, "task: it was not read while training"),
    "task fails later": (of("task", no_longer), SOURCES, "% of the training was sampled by task"),
    "another's cpu": (
        of("cpu", lambda sample: replace(sample, utilisation=0.01)),
        SOURCES,
        "all were busy for 1.0%, the training's control group for 50.0%",
    ),
}


def evidence(result: RoundResult) -> str:
    failure = result.failure
    assert failure is not None and result.verdict is Verdict.INVALID
    assert (failure.failure_class, failure.host) == (FailureClass.DISTURBED, "h0")
    assert all(line.startswith("disturbed (unwatched) on h0") for line in failure.evidence.splitlines())
    return failure.evidence


@pytest.mark.parametrize("has_chips", [True, False])
@pytest.mark.parametrize("case", OF_CPUS)
def test_where_others_load_cannot_be_told_the_round_does_not_count(
    tmp_path: Path, case: str, has_chips: bool
) -> None:
    change, sources, why = OF_CPUS[case]
    samples = [each for each in changed(node(), change) if has_chips or each.source != "nvml"]
    sources = [each for each in sources if has_chips or each.source != "nvml"]
    assert why in evidence(disturbed(tmp_path, samples, strict=True, sources=sources))


@pytest.mark.parametrize("case", OF_CPUS)
def test_without_the_setting_it_counts_without_a_word(tmp_path: Path, case: str) -> None:
    change, sources, _ = OF_CPUS[case]
    samples = changed(node(), change)
    result = disturbed(tmp_path, samples, sources=sources)
    assert (result.verdict, result.disturbances) == (Verdict.CONVERGED, ())
    assert not [note for note in result.notes if "disturbed" in note.lower()]


def of_chip(device: str, **values: object) -> Change:
    """One chip of four, otherwise."""
    return of("nvml", lambda each: replace(each, **values) if each.device == device else each)  # type: ignore[arg-type]


NOTHING = dict.fromkeys(("utilisation", "clock_mhz", "throttle"))
EVERYTHING = {**NOTHING, "processes": None}
OF_CHIPS: dict[str, tuple[Change, Sequence[SourceInfo], str]] = {
    "all broken": (
        of("nvml", lambda _: None),
        broken("nvml"),
        "chips were not sampled (nvml: cannot be used)",
    ),
    "seldom": (of("nvml", once_in(20)), seldom(20, "nvml"), "nvml is read once in 20 s, and the training"),
    "one silent": (
        of_chip("2", **NOTHING),
        SOURCES,
        "on h0 nvml 2: 0% of the training was sampled (utilisation, clock_mhz, throttle)",
    ),
    "one lost": (
        of_chip("2", **EVERYTHING, error="it fell off the bus"),
        SOURCES,
        "nvml 2: 0% of the training was sampled (utilisation, clock_mhz, throttle, processes)",
    ),
    "one without clock and throttle": (
        of_chip("3", clock_mhz=None, throttle=None),
        SOURCES,
        "nvml 3: 0% of the training was sampled (clock_mhz, throttle)",
    ),
    "one without utilisation and throttle": (
        of_chip("3", utilisation=None, throttle=None),
        SOURCES,
        "nvml 3: 0% of the training was sampled (utilisation, throttle)",
    ),
    "throttle of one alone": (
        of("nvml", lambda each: each if each.device == "0" else replace(each, throttle=None)),
        SOURCES,
        "nvml 1: 0% of the training was sampled (throttle)",
    ),
    "processes of one alone": (
        of("nvml", lambda each: each if each.device == "0" else replace(each, processes=None)),
        SOURCES,
        "nvml 2: 0% of the training was sampled (processes)",
    ),
    "throttling no longer told": (
        of("nvml", lambda each: each if no_longer(each) else replace(each, throttle=None)),
        SOURCES,
        "% of the training was sampled by nvml (throttle)",
    ),
    "throttling of one no longer told": (
        of("nvml", lambda s: s if no_longer(s) or s.device != "3" else replace(s, throttle=None)),
        SOURCES,
        "on h0 nvml 3: 50% of the training was sampled (throttle)",
    ),
    "processes no longer told": (
        of("nvml", lambda each: each if second(each) < TRAIN + 20 else replace(each, processes=None)),
        SOURCES,
        "% of the training was sampled by nvml (processes)",
    ),
    "all told before the ranks alone": (
        of("nvml", lambda each: each if second(each) < RANKS else replace(each, **EVERYTHING)),  # type: ignore[arg-type]
        SOURCES,
        "0% of the training was sampled by nvml (utilisation, clock_mhz, throttle, processes)",
    ),
    "nothing ever told": (
        of("nvml", lambda each: replace(each, **EVERYTHING)),  # type: ignore[arg-type]
        SOURCES,
        "0% of the training was sampled by nvml, named below 90%",
    ),
}


@pytest.mark.parametrize("case", OF_CHIPS)
def test_chips_that_were_not_sampled_let_no_round_count(tmp_path: Path, case: str) -> None:
    change, sources, why = OF_CHIPS[case]
    samples = changed(node(), change)
    assert why in evidence(disturbed(tmp_path / "strict", samples, strict=True, sources=sources))
    assert disturbed(tmp_path / "any", samples, sources=sources).verdict is Verdict.CONVERGED


def test_a_training_in_which_too_little_can_be_read_does_not_count(tmp_path: Path) -> None:
    end_ms = T0 + (TRAIN + 8) * S
    times = {"e2e_time": 12.0, "raw_train_time": 8.0, "no_eval_time": 7.0, "pure_compute_time": 6.0}
    log = [
        replace(each, time_ms=min(each.time_ms, end_ms))
        for each in events({TRAINED_S: 1.0}, **times, time_to_target=8.0)
    ]
    assert "task: its readings are of 8 s, and 10 s are needed" in evidence(
        disturbed(tmp_path, node(), strict=True, log=log)
    )


def test_a_watched_round_counts_with_chips_and_without(tmp_path: Path) -> None:
    hosts_alone = [each for each in node() if each.source != "nvml"]
    for name, samples, sources in (("chips", node(), SOURCES), ("none", hosts_alone, SOURCES[1:])):
        result = disturbed(tmp_path / name, samples, samples, strict=True, sources=sources)
        assert result.verdict is Verdict.CONVERGED
        assert not [note for note in result.notes if "REQUIRE_UNDISTURBED" in note]


def test_what_no_monitor_of_a_chip_reads_is_told_with_the_setting(tmp_path: Path) -> None:
    """Most vendors' monitors read neither: what they do not read is not looked at."""
    unread = {"utilisation": None, "throttle": None, "processes": None}
    samples = changed(node(), of("nvml", lambda each: replace(each, **unread)))  # type: ignore[arg-type]
    result = disturbed(tmp_path / "strict", samples, samples, strict=True)
    assert result.verdict is Verdict.CONVERGED
    [note] = [note for note in result.notes if "REQUIRE_UNDISTURBED" in note]
    assert note.endswith(
        "its chips: nvml does not read utilisation, throttle, processes (of the first of them)"
    )
    assert "h0_noderank0" in note and "h1_noderank1" in note
    assert not [note for note in disturbed(tmp_path / "any", samples).notes if "REQUIRE" in note]


def test_a_small_load_is_not_held_against_that_of_all_cpus(tmp_path: Path) -> None:
    """As of a training on chips alone: what both tell is no more than their error."""
    result = disturbed(tmp_path, node(busy=0.0025, own_cpus=0.1), strict=True)
    assert result.verdict is Verdict.CONVERGED


@pytest.mark.parametrize(("source", "key"), [("nvml", "accelerators"), ("cpu", "cpu")])
def test_what_is_read_more_slowly_than_its_interval_is_to_have_a_longer_one(
    tmp_path: Path, source: str, key: str
) -> None:
    five_of_six = of(source, lambda each: each if second(each) % 6 else None)
    result = disturbed(tmp_path / "slow", changed(node(), five_of_six), strict=True)
    assert f"% of the training was sampled by {source}" in evidence(result)
    assert result.failure and f'with a longer one, e.g. MONITORS = {{"{key}": 5}}' in result.failure.remedy
    silent = disturbed(tmp_path / "silent", changed(node(), of_chip("2", **NOTHING)), strict=True)
    assert silent.failure and "MONITORS" not in silent.failure.remedy
