"""What a run's metrics say, as a client of the format reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from run_benchmarks.metrics.families import RunCollector
from run_benchmarks.metrics.listener import RunListener
from run_benchmarks.names import Node, RunId, nodes_of
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets
from run_benchmarks.training_state import TrainingState
from tests.run_benchmarks.builders import make_case
from utils.events import Event
from utils.parameters import KIND, MeasurementSettings

RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")
Samples = dict[str, dict[frozenset[tuple[str, str]], float]]


def text_of(listener: RunListener) -> str:
    """A scrape."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunCollector(listener))
    text: str = generate_latest(registry).decode()
    return text


def samples_in(text: str) -> Samples:
    """Name -> labels -> value, by the client library's own strict parser of OpenMetrics."""
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = samples.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series, f"{sample.name} stands there twice with {sample.labels}"
            series[labels] = sample.value
    return samples


class Exported:
    """A run of one case that a listener is told of, on hosts that are not there."""

    def __init__(
        self, plan: Plan, hosts: Sequence[str], *, measures: bool = False, secrets: Secrets = NO_SECRETS
    ) -> None:
        case = make_case(hosts)
        self.case = replace(case, parameters={KIND: MeasurementSettings.kind}) if measures else case
        self.plan = replace(plan, cases=(self.case,), secrets=secrets)
        self.listener, self.training = RunListener("127.0.0.1", 9435), TrainingState()
        self.listener.run_started(RUN, self.plan, ())
        self.nodes = self.begin(1)

    def begin(self, number: int) -> tuple[Node, ...]:
        """A round begins."""
        self.listener.stage(None, "acquire")
        self.training, self.nodes = TrainingState(), nodes_of(self.case, number)
        self.listener.round_started(self.nodes, self.training)
        self.listener.stage(None, "train")
        return self.nodes

    def report(self, *events: Event) -> None:
        """Rank 0 reports."""
        for event in events:
            self.training.update(event)
            self.listener.event(event)

    def samples(self) -> Samples:
        """What a scrape reads."""
        return samples_in(text_of(self.listener))

    def values(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """The samples of one name by the values of these labels."""
        return {
            tuple(dict(each).get(label, "") for label in labels): value
            for each, value in self.samples().get(name, {}).items()
        }
