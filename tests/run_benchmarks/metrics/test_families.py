"""What is exported of a run: what it is told, in base units, bounded, whatever strangers say."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable

import pytest

from run_benchmarks.metrics import families, listener, readings
from run_benchmarks.metrics.definitions import DEFINITIONS, DEVICE_METRICS
from run_benchmarks.metrics.listener import RunListener
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round_watch import NO_CONTACT
from tests.fakes.clock import HandClock
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.display.rounds import BEGUN, evaluation, operation, step
from tests.run_benchmarks.metrics.exported import RUN, Exported, samples_in, text_of
from tests.run_benchmarks.metrics.watched import OBSERVABILITY
from tests.run_benchmarks.plan.tree import make_tree
from tests.search_log import account_of, two_trials
from utils.events import Event, EventName
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.search.events import event_of
from utils.telemetry.quantities import QUANTITIES
from utils.telemetry.records import Sample, Scope, SourceInfo, Tick, ticks_of

OF_DEVICES = [each.definition for each in DEVICE_METRICS]
CASE = "toy:pytorch:X1:2:1:1"
Make = Callable[..., Exported]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return make_tree(tmp_path_factory.mktemp("tree")).load()


@pytest.fixture
def make(plan: Plan) -> Make:
    """Makes a run of one case that a listener is told of."""
    return lambda *hosts, **options: Exported(plan, hosts or ("h1", "h2"), **options)


def source(
    name: str, scope: Scope = Scope.ACCELERATOR, reason: str = "", interval_s: float = 1.0
) -> SourceInfo:
    return SourceInfo(1, name, scope, interval_s, reason=reason)


def tick(*samples: Sample) -> Tick:
    (one,) = ticks_of(samples)
    return one


def ended(verdict: Verdict, kind: FailureClass | None = None) -> RoundResult:
    failure = Failure(verdict, Stage.TRAIN, kind, "h1", "it failed") if kind else None
    return RoundResult(
        case=CASE, round=1, started="", hosts=("h1",), failure=failure, verdict=verdict, figures={}
    )


def test_nothing_is_said_before_a_run_begins() -> None:
    assert samples_in(text_of(RunListener("127.0.0.1", 9435))) == {}


def test_a_training_in_its_own_units(make: Make) -> None:
    run = make()
    run.report(*BEGUN, step(10), evaluation(0.3), step(20, loss=1.5, rate=800.0))
    of_round = {"run": RUN.name, "case": CASE, "round": "1"}
    samples = run.samples()

    def value(name: str, **labels: str) -> float:
        return samples[name][frozenset({**of_round, **labels}.items())]

    assert value("flagperf_steps_total") == 20
    assert value("flagperf_steps_limit") == 80
    assert value("flagperf_loss") == 1.5
    assert value("flagperf_throughput_samples_per_second") == 800
    assert value("flagperf_metric", metric="accuracy") == 0.3
    assert value("flagperf_metric_target", metric="accuracy") == 0.5
    assert run.values("flagperf_stage", "flagperf_stage")[("train",)] == 1
    assert sum(run.values("flagperf_stage", "flagperf_stage").values()) == 1
    assert run.values("flagperf_training_phase", "flagperf_training_phase")[("training",)] == 1
    assert "flagperf_samples_total" not in samples, "what was not reported is no 0"


def test_a_metric_stands_beside_its_own_name_alone(make: Make) -> None:
    """A measurement names its next operation before it has a rate of it."""
    run = make(measures=True)
    run.report(
        operation(EventName.STEP_BEGIN, 0, "fp32"),
        operation(EventName.STEP_END, 1, "fp32", fp32=1e12, unit="FLOP/s"),
        operation(EventName.STEP_BEGIN, 1, "bf16"),
    )
    assert run.values("flagperf_operation_rate", "operation") == {("fp32",): 1e12}
    run.report(operation(EventName.STEP_END, 2, "bf16", unsupported="there is none"))
    assert run.values("flagperf_operation_rate", "operation") == {("fp32",): 1e12}
    assert "flagperf_metric" not in run.samples()


def test_what_a_search_has_come_to(make: Make) -> None:
    run = make(measures=True)
    run.report(*map(event_of, two_trials()[:8], range(1, 9)))
    (score,) = run.values("flagperf_search_score_operations_per_second").values()
    account = account_of(two_trials()[:8])
    assert score == account.score
    (accuracy,), (epochs,), (workers,), (running,) = (
        run.values(f"flagperf_search_{name}").values()
        for name in ("best_accuracy", "epochs_total", "workers", "running_trials")
    )
    assert (accuracy, epochs, workers, running) == (0.9, 3, 2, 2)
    run.report(*map(event_of, two_trials()[8:], range(9, 15)))
    ended = run.values("flagperf_search_trials_total", "state")
    assert ended[("done",)] == 2 and ended[("lost",)] == 0
    assert set(run.values("flagperf_search_workers").values()) == {0}


def test_every_quantity_of_telemetry_in_base_units(make: Make) -> None:
    run = make("h1")
    readings_of = {quantity.name: 2.0 for quantity in QUANTITIES}
    run.listener.telemetry(run.nodes[0], source("acme"))
    run.listener.telemetry(run.nodes[0], tick(Sample(1_000, "acme", "0", **readings_of)))
    samples = run.samples()
    for metric in DEVICE_METRICS:
        (value,) = samples[metric.definition.sample].values()
        assert value == 2.0 * metric.factor, metric
    by_name = {each.quantity.name: each.definition.sample for each in DEVICE_METRICS}
    assert by_name["power_w"] == "flagperf_device_power_watts"
    assert by_name["energy_mj"] == "flagperf_device_energy_joules_total"
    assert by_name["utilisation"] == "flagperf_device_utilisation_ratio"
    assert by_name["memory_used_mib"] == "flagperf_device_memory_used_bytes"
    assert samples["flagperf_device_memory_used_bytes"].popitem()[1] == 2 * 2**20
    assert samples["flagperf_device_clock_hertz"].popitem()[1] == 2e6
    assert samples["flagperf_source_last_sample_timestamp_seconds"].popitem()[1] == 1.0


def test_names_are_unique_and_end_with_their_units() -> None:
    names = [each.sample for each in DEFINITIONS]
    assert len(set(names)) == len(names)
    for each in DEFINITIONS:
        assert each.name.endswith(each.unit) and each.help.endswith(".")


def test_the_document_has_what_is_exported_and_its_bounds() -> None:
    text = (OBSERVABILITY / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `flagperf_")]
    assert rows == [
        f"| `{each.sample}` | {each.kind} | {', '.join(each.labels)} | {each.help} |"
        for each in DEFINITIONS
        if each not in OF_DEVICES
    ]
    exported = {each.sample for each in OF_DEVICES}
    assert set(re.findall(r"`(flagperf_device_\w+)`", text)) - {row.split("`")[1] for row in rows} <= exported
    bounds = (
        f"{listener.MOST_NODES} nodes, {readings.MOST_SOURCES} sources a node, "
        f"{readings.MOST_DEVICES} devices a source, {families.MOST_DEVICES} devices in all"
    )
    assert (
        bounds in text
        and f"{listener.MOST_NAMES} names" in text
        and f"{listener.LONGEST_LABEL} characters" in text
    )


def test_a_device_is_throttled_for_a_reason(make: Make) -> None:
    run = make("h1")
    run.listener.telemetry(run.nodes[0], source("acme"))
    samples = (
        Sample(1, "acme", "0", throttle="thermal"),
        Sample(1, "acme", "1", throttle=""),
        Sample(1, "acme", "2"),
    )
    run.listener.telemetry(run.nodes[0], tick(*samples))
    throttled = run.values("flagperf_device_throttled", "device", "reason")
    assert throttled == {("0", "thermal"): 1, ("1", ""): 0}


def test_the_power_of_a_node_is_that_of_the_figures_and_of_now(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    monkeypatch.setattr(readings, "time", clock)
    run = make("h1")
    node = run.nodes[0]
    for record in (
        source("cpu", Scope.HOST),
        source("acme", interval_s=10.0),
        tick(Sample(1, "cpu", utilisation=0.5)),
        tick(Sample(1, "acme", "0", power_w=100.0), Sample(1, "acme", "1", power_w=-1.0)),
    ):
        run.listener.telemetry(node, record)
    assert "flagperf_node_power_watts" not in run.samples(), "one device of two says nothing"
    run.listener.telemetry(
        node, tick(Sample(1, "acme", "0", power_w=100.0), Sample(1, "acme", "1", power_w=50.0))
    )
    assert run.values("flagperf_node_power_watts", "host", "scope") == {("h1", "accelerator"): 150}
    assert set(run.values("flagperf_source_up", "source").values()) == {1}
    clock.now += 16
    assert "flagperf_node_power_watts" not in run.samples()
    assert run.values("flagperf_source_up", "source") == {("cpu",): 0, ("acme",): 1}
    assert "flagperf_device_utilisation_ratio" not in run.samples(), "a gap is a gap"
    clock.now += 16
    assert "flagperf_device_power_watts" not in run.samples()


def test_a_source_that_a_node_does_not_have(make: Make) -> None:
    run = make("h1")
    run.listener.telemetry(run.nodes[0], source("pwr", Scope.MACHINE, "there is no meter"))
    assert run.values("flagperf_source_up", "source", "scope") == {("pwr", "machine"): 0}
    assert "flagperf_source_last_sample_timestamp_seconds" not in run.samples()


def test_lost_contact_is_seen_and_so_is_its_return(make: Make) -> None:
    run = make()
    run.listener.stage(run.nodes[1], NO_CONTACT)
    assert run.values("flagperf_node_reachable", "node", "host") == {("0", "h1"): 1, ("1", "h2"): 0}
    run.listener.stage(run.nodes[1], "train")
    assert set(run.values("flagperf_node_reachable", "host").values()) == {1}


def test_a_round_that_is_over_has_no_nodes_and_the_next_one_none_of_its_series(make: Make) -> None:
    run = make("h1")
    run.report(*BEGUN, step(10), evaluation(0.6))
    run.listener.telemetry(run.nodes[0], source("acme"))
    before = set(run.samples())
    run.listener.round_ended()
    assert run.values("flagperf_metric", "round") == {("1",): 0.6}, "a last scrape may still come"
    assert before - set(run.samples()) == {"flagperf_node_reachable", "flagperf_source_up"}
    run.listener.stage(None, "acquire")
    assert "flagperf_metric" not in run.samples()
    run.begin(2)
    assert set(run.values("flagperf_round_start_timestamp_seconds", "round")) == {("2",)}
    assert not {"flagperf_steps_total", "flagperf_metric", "flagperf_loss"} & set(run.samples())


def test_verdicts_attempts_and_failures_are_counted_from_0(make: Make) -> None:
    run = make("h1")
    rounds = run.values("flagperf_rounds_total", "verdict")
    assert set(rounds) == {(verdict.value,) for verdict in Verdict} and set(rounds.values()) == {0}
    run.listener.attempt_failed(ended(Verdict.UNREACHABLE, FailureClass.HOST_UNREACHABLE))
    run.listener.round_judged(ended(Verdict.CONVERGED))
    run.listener.round_judged(ended(Verdict.FAILED, FailureClass.RANK_FAILED))
    rounds = run.values("flagperf_rounds_total", "verdict")
    assert {name for (name,), count in rounds.items() if count} == {"CONVERGED", "FAILED"}
    assert run.values("flagperf_failed_attempts_total", "case") == {(CASE,): 1}
    failures = run.values("flagperf_failures_total", "failure_class")
    assert {name for (name,), count in failures.items() if count == 1} == {"host_unreachable", "rank_failed"}


@pytest.mark.parametrize(
    ("address", "shown", "is_warned"),
    [("127.0.0.1", "127.0.0.1", False), ("::1", "[::1]", False), ("0.0.0.0", "0.0.0.0", True)],  # noqa: S104
)
def test_the_log_says_where_and_to_whom(
    plan: Plan, log_lines: LogLines, address: str, shown: str, is_warned: bool
) -> None:
    RunListener(address, 9435).run_started(RUN, plan, ())
    assert f"metrics: http://{shown}:9435/metrics" in log_lines.messages
    assert ("others on the network can read the metrics" in log_lines.text) == is_warned


def test_rounds_that_were_done_before_a_run_was_taken_up_are_counted(make: Make) -> None:
    run = make("h1")
    run.listener.run_started(RUN, run.plan, (ended(Verdict.CONVERGED),))
    assert run.values("flagperf_rounds_total", "verdict")[("CONVERGED",)] == 1


# ---- strangers


def test_no_name_of_a_stranger_breaks_a_scrape(make: Make) -> None:
    run = make("h1", secrets=Secrets(held=frozenset({"a-secret-value"})))
    odd = 'a\n"b"\\ \x1b[31m\ud800 ' + "x" * 10_000
    node = run.nodes[0]
    for name in (odd, "a-secret-value"):
        run.report(Event(EventName.EVALUATE, {"metric": name[:60], name[:60]: 0.5, "target": math.inf}))
        run.listener.telemetry(node, source(name))
        run.listener.telemetry(node, tick(Sample(1, name, name, power_w=1.0, throttle=name)))
    text = text_of(run.listener)
    assert "a-secret-value" not in text and "\x1b" not in text
    samples = samples_in(text)
    (first, second) = (dict(labels) for labels in samples["flagperf_device_power_watts"])
    assert len(first["device"]) < 200 and second["device"] == "***"
    for family in ("flagperf_metric", "flagperf_source_up", "flagperf_device_throttled"):
        assert len(samples[family]) == 2


@pytest.mark.parametrize("number", [None, math.nan, 1e300, -1e99, 2**70, -5, "five", True])
def test_no_number_of_a_stranger_breaks_a_scrape(make: Make, number: object) -> None:
    run = make("h1")
    run.report(
        Event(EventName.INIT_START, {"config": {"target": number, "max_steps": number}}),
        Event(EventName.TRAIN_START, time_ms=1),
        Event(
            EventName.STEP_END,
            {"global_steps": number, "loss": number, "seq/s": number, "num_trained_samples": number},
            time_ms=2,
        ),
        Event(EventName.EVALUATE, {"metric": "accuracy", "accuracy": number}),
    )
    samples = run.samples()
    for name in ("flagperf_steps_total", "flagperf_samples_total"):
        assert all(value >= 0 for value in samples.get(name, {}).values())


def test_a_loss_that_has_diverged_is_no_number(make: Make) -> None:
    run = make("h1")
    run.report(*BEGUN, Event(EventName.STEP_END, {"global_steps": 1, "loss": None}))
    (value,) = run.samples()["flagperf_loss"].values()
    assert math.isnan(value)


def test_a_node_that_names_ever_new_devices_makes_no_series_of_them(make: Make) -> None:
    run = make("h1")
    node, most = run.nodes[0], readings.MOST_DEVICES
    run.listener.telemetry(node, source("acme"))
    seen = set()
    for number in range(0, 4 * most, 8):
        devices = [Sample(number, "acme", f"{number + more}", power_w=1.0) for more in range(8)]
        run.listener.telemetry(node, tick(*devices))
        seen |= run.values("flagperf_device_power_watts", "device").keys()
    assert len(seen) == most
    assert run.values("flagperf_left_out", "what")[("devices",)] == 8
    for number in range(1_000):
        run.listener.telemetry(node, source(f"source {number}"))
    assert len(run.values("flagperf_source_up", "source")) == readings.MOST_SOURCES


def test_where_there_are_too_many_devices_those_that_draw_power_come_first(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families, "MOST_DEVICES", 3)
    run = make()
    for node in run.nodes:
        for name, scope in (("temperature", Scope.HOST), ("acme", Scope.ACCELERATOR)):
            run.listener.telemetry(node, source(name, scope))
            samples = [Sample(1, name, device, temperature_c=40.0) for device in ("0", "1")]
            run.listener.telemetry(node, tick(*samples))
    shown = run.values("flagperf_device_temperature_celsius", "host", "source", "device")
    assert set(shown) == {("h1", "acme", "0"), ("h1", "acme", "1"), ("h2", "acme", "0")}
    assert run.values("flagperf_left_out", "what")[("devices",)] == 5


def test_nodes_and_names_beyond_a_bound_are_left_out_and_counted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST_NODES", 1)
    monkeypatch.setattr(listener, "MOST_NAMES", 2)
    run = make()
    for number in range(5):
        run.report(Event(EventName.EVALUATE, {"metric": f"m{number}", f"m{number}": 0.5}))
    run.listener.telemetry(run.nodes[1], source("acme"))
    assert set(run.values("flagperf_metric", "metric")) == {("m0",), ("m1",)}
    assert set(run.values("flagperf_node_reachable", "host")) == {("h1",)}
    assert run.values("flagperf_left_out", "what") == {("nodes",): 1, ("devices",): 0, ("values",): 3}


def test_a_scrape_and_what_goes_on_meanwhile_do_not_disturb_each_other(make: Make) -> None:
    run = make("h1")
    node, faults = run.nodes[0], []
    run.listener.telemetry(node, source("acme"))

    def scrape() -> None:
        try:
            for _ in range(50):
                samples_in(text_of(run.listener))
        except Exception as error:
            faults.append(error)

    thread = threading.Thread(target=scrape)
    thread.start()
    number = 0
    while thread.is_alive():
        number += 1
        run.listener.telemetry(node, source(f"source {number}"))
        run.listener.telemetry(node, tick(Sample(number, "acme", f"{number}", power_w=1.0)))
        run.report(Event(EventName.EVALUATE, {"metric": f"m{number}", f"m{number}": 0.5}))
    thread.join()
    assert not faults
