"""What is exported: one table, from which the text of a scrape and docs/observability are made.

Names are as OpenMetrics has them: in base units, the unit at the end, `_total` behind that of a counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from utils.telemetry.quantities import QUANTITIES, Quantity

RUN = ("run",)
CASE = (*RUN, "case")
ROUND = (*CASE, "round")
NODE = (*ROUND, "node", "host")
SOURCE = (*NODE, "source", "scope")
DEVICE = (*SOURCE, "device")

Kind = Literal["gauge", "counter", "stateset", "info"]


@dataclass(frozen=True)
class Definition:
    """A metric: its name without what its kind puts behind it, what it says, its labels, its kind by OpenMetrics, and
    its unit (with which the name ends) or none.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    kind: Kind = "gauge"
    unit: str = ""

    @property
    def sample(self) -> str:
        """The name by which a query asks for it."""
        return self.name + {"counter": "_total", "info": "_info"}.get(self.kind, "")


def _gauge(name: str, text: str, labels: tuple[str, ...], unit: str = "") -> Definition:
    return Definition(f"flagperf_{name}", text, labels, unit=unit)


def _counter(name: str, text: str, labels: tuple[str, ...]) -> Definition:
    return Definition(f"flagperf_{name}", text, labels, "counter")


def _states(name: str, text: str, labels: tuple[str, ...]) -> Definition:
    """Of which one is 1 at a time; the label of the state is the metric's own name."""
    return Definition(f"flagperf_{name}", text, (*labels, f"flagperf_{name}"), "stateset")


RUN_INFO = Definition("flagperf_run", "The run, with the uid of its units.", (*RUN, "uid"), "info")
RUN_START = _gauge(
    "run_start_timestamp_seconds", "When the run began, in seconds since the epoch.", RUN, "seconds"
)
STAGE = _states("stage", "The stage that the run is at.", RUN)
ROUNDS_PLANNED = _gauge("rounds_planned", "Rounds that the run has to do.", CASE)
ROUNDS = _counter("rounds", "Rounds that have ended, by their verdict.", (*CASE, "verdict"))
ATTEMPTS = _counter(
    "failed_attempts",
    "Attempts that failed by the machines' fault and do not count, as their round was run again.",
    CASE,
)
FAILURES = _counter(
    "failures", "Rounds and attempts that failed, by the class of the failure.", (*RUN, "failure_class")
)
LEFT_OUT = _gauge(
    "left_out",
    "Nodes, devices, or values with further names that are not exported, for there are too many.",
    (*RUN, "what"),
)

ROUND_START = _gauge(
    "round_start_timestamp_seconds", "When the round had its hosts, in seconds since the epoch.", ROUND, "seconds"
)  # fmt: skip
PHASE = _states("training_phase", "The phase that the training is in, by rank 0.", ROUND)
PROGRESS = _gauge(
    "last_progress_timestamp_seconds",
    "When rank 0 was last heard of, in seconds since the epoch; absent before the first time.",
    ROUND,
    "seconds",
)
STEPS = _counter(
    "steps", "Steps, or operations of a case that measures, that rank 0 has reported done.", ROUND
)
STEPS_LIMIT = _gauge("steps_limit", "Steps, or operations, at which the round ends at the latest.", ROUND)
SAMPLES = _counter("samples", "Samples that were trained, by rank 0.", ROUND)
SAMPLES_LIMIT = _gauge("samples_limit", "Samples at which the round ends at the latest.", ROUND)
LOSS = _gauge("loss", "The loss that rank 0 last reported; NaN: the training has diverged.", ROUND)
THROUGHPUT = _gauge(
    "throughput_samples_per_second", "The rate of training that rank 0 last reported.", ROUND, "samples_per_second"
)  # fmt: skip
METRIC = _gauge(
    "metric", "The metric at its last evaluation; before training, that of the initial one.", (*ROUND, "metric")
)  # fmt: skip
TARGET = _gauge("metric_target", "The value of the metric that ends the round.", (*ROUND, "metric"))
TIME_LEFT = _gauge(
    "time_left_seconds",
    "Time until the first limit of steps or samples, at the pace so far; the target may be met earlier.",
    ROUND,
    "seconds",
)
OPERATION = _gauge("operation_rate", "Operations per second of a case that measures.", (*ROUND, "operation"))

SEARCH_TRIALS = _counter(
    "search_trials",
    "Trials of a search that have ended, by how; lost are those handed out again.",
    (*ROUND, "state"),
)
SEARCH_RUNNING = _gauge("search_running_trials", "Trials of a search that are under way.", ROUND)
SEARCH_EPOCHS = _counter("search_epochs", "Epochs of all trials of a search.", ROUND)
SEARCH_ACCURACY = _gauge(
    "search_best_accuracy", "The best accuracy of a search's trials so far, 0 to 1.", ROUND
)
SEARCH_SCORE = _gauge(
    "search_score_operations_per_second",
    "Operations of a search's epochs over the time since its first trial began.",
    ROUND,
    "operations_per_second",
)
SEARCH_WORKERS = _gauge("search_workers", "Workers of a search that are there.", ROUND)
SEARCH_WORKERS_PLANNED = _gauge("search_workers_planned", "Workers that a search should have.", ROUND)
SEARCH_WAITING = _gauge(
    "search_waiting_ratio",
    "The share of the time of a search's chips without a trial, 0 to 1.",
    ROUND,
    "ratio",
)
SEARCH_LEFT = _gauge("search_left_seconds", "Time until a search's end.", ROUND, "seconds")

REACHABLE = _gauge("node_reachable", "1: there is contact with the node; 0: contact is lost.", NODE)
NODE_POWER = _gauge(
    "node_power_watts",
    "What the node draws, as far as the scope says: the source that the figures use.",
    (*NODE, "scope"),
    "watts",
)
SOURCE_UP = _gauge("source_up", "1: the monitor's source works and was read of late.", SOURCE)
SOURCE_READ = _gauge(
    "source_last_sample_timestamp_seconds",
    "When the source was last read, in seconds since the epoch by the node's clock.",
    SOURCE,
    "seconds",
)
THROTTLED = _gauge(
    "device_throttled",
    "1: the device runs slower than it could, for the reason; 0: nothing holds it back.",
    (*DEVICE, "reason"),
)

# What the name of a quantity ends with: the base unit, how many of it one is.
_UNITS = {
    "_bytes_per_s": ("bytes_per_second", 1.0),
    "_bytes": ("bytes", 1.0),
    "_mib": ("bytes", 2.0**20),
    "_mhz": ("hertz", 1e6),
    "_mj": ("joules", 1e-3),
    "_w": ("watts", 1.0),
    "_c": ("celsius", 1.0),
    "_s": ("seconds", 1.0),
    "utilisation": ("ratio", 1.0),
}


@dataclass(frozen=True)
class DeviceMetric:
    """A quantity of telemetry as it is exported, in base units: `factor` of them are one of it."""

    quantity: Quantity
    definition: Definition
    factor: float

    def value(self, reading: float | None) -> float | None:
        """A reading in base units; None for none, which one below 0 is a tool's way to say."""
        if reading is None or (reading < 0 and not self.quantity.may_be_negative):
            return None
        return reading * self.factor


def _device_metric(quantity: Quantity) -> DeviceMetric:
    ending = next((ending for ending in _UNITS if quantity.name.endswith(ending)), "")
    unit, factor = _UNITS.get(ending, ("", 1.0))
    stem = quantity.name.removesuffix(ending) if ending.startswith("_") else quantity.name
    name = "_".join(filter(None, ("flagperf_device", stem, unit)))
    since = ", since the driver or the machine was started" if quantity.is_counter else ""
    text = f"{quantity.title}, as the monitor of its node reads it{since}."
    kind: Kind = "counter" if quantity.is_counter else "gauge"
    return DeviceMetric(quantity, Definition(name, text, DEVICE, kind, unit), factor)


DEVICE_METRICS = tuple(map(_device_metric, QUANTITIES))
DEFINITIONS = (
    RUN_INFO, RUN_START, STAGE, ROUNDS_PLANNED, ROUNDS, ATTEMPTS, FAILURES, LEFT_OUT,
    ROUND_START, PHASE, PROGRESS, STEPS, STEPS_LIMIT, SAMPLES, SAMPLES_LIMIT, LOSS, THROUGHPUT, METRIC, TARGET,
    TIME_LEFT, OPERATION,
    SEARCH_TRIALS, SEARCH_RUNNING, SEARCH_EPOCHS, SEARCH_ACCURACY, SEARCH_SCORE, SEARCH_WORKERS,
    SEARCH_WORKERS_PLANNED, SEARCH_WAITING, SEARCH_LEFT,
    REACHABLE, NODE_POWER, SOURCE_UP, SOURCE_READ, THROTTLED, *(each.definition for each in DEVICE_METRICS),
)  # fmt: skip
