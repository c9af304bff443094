"""A runner of trials, and what stands in for the controller that it tells of them."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.driver.perf_log import PerfLog
from benchmarks.search.architecture import Architecture, as_json
from benchmarks.search.layers import Relu
from benchmarks.search.morphism import Deepen, apply
from benchmarks.search.protocol import Hyperparameters, Proposed, Trial
from benchmarks.search.pytorch.runner import TrialRunner
from benchmarks.search.pytorch.trial import training_settings
from tests.benchmarks.search.trials import SETTINGS, SMALL, alone, image_data
from utils.parameters import MeasurementSettings


def trial(number: int = 1, architecture: Architecture = SMALL, epochs: int = 1, **proposed: Any) -> Trial:
    """As the controller hands it out."""
    values = {
        "parent": None, "edits": (), "architecture": msgspec.Raw(as_json(architecture)),
        "hyperparameters": Hyperparameters(dropout=0.0, kernel=3, batch_size=64),
    }  # fmt: skip
    return Trial(number, 1, 1, epochs, Proposed(**{**values, **proposed}))


def child_of(parent: int) -> Trial:
    """Trial 9, SMALL deepened behind its first ReLU."""
    edit = Deepen(next(layer.id for layer in SMALL.main_chain if isinstance(layer, Relu)))
    edits = (msgspec.Raw(msgspec.json.encode(edit)),)
    return trial(9, apply(SMALL, edit), parent=parent, edits=edits)


class Told:
    """FAKE controller: what it was told, in order; it wants no epoch behind `last_epoch`."""

    def __init__(self, last_epoch: int = 1000) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.last_epoch = last_epoch

    def epoch_done(self, trial: Trial, epoch: int, **values: Any) -> bool:
        self.events.append(("epoch", trial.trial, epoch, values))
        return epoch < self.last_epoch

    def trial_done(self, trial: Trial, *, stopped: bool = False) -> None:
        self.events.append(("done", trial.trial, stopped))

    def trial_failed(self, trial: Trial, reason: str) -> None:
        self.events.append(("failed", trial.trial, reason))

    def put(self, number: int, data: bytes) -> None:
        self.events.append(("weights", number, data))

    def get(self, number: int) -> bytes | None:
        return next((each[2] for each in self.events if each[:2] == ("weights", number)), None)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The events of a name, without it."""
        return [each[1:] for each in self.events if each[0] == name]


def runner_of(folder: Path, told: Told, **case: Any) -> tuple[TrialRunner, StringIO]:
    """A runner of one rank, and its events."""
    log, settings = StringIO(), {**SETTINGS, **case}
    training = training_settings(settings, MeasurementSettings(cpu_threads=1))
    runner = TrialRunner(alone(), image_data(folder), training, settings, PerfLog(0, log))
    runner.controller = runner.weights = told
    return runner, log
