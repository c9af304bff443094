"""One trial after the other on all ranks of a worker; one that cannot be trained is told, and the next has its turn.

Before and after every epoch the ranks agree on whether one of them has failed. A failure of some ranks alone, while the
others wait for them in a collective of the framework's, ends in the group's timeout, and so the worker, which is
started anew.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
import torch

from benchmarks.driver.engine import Engine
from benchmarks.driver.inspection import hooks_of_all_ranks
from benchmarks.driver.perf_log import PerfLog
from benchmarks.search.architecture import Architecture, parse
from benchmarks.search.hyperparameters import trained
from benchmarks.search.morphism import Edit
from benchmarks.search.protocol import Trial
from benchmarks.search.pytorch.data import ImageData
from benchmarks.search.pytorch.stored_weights import StoredWeights, WeightsError
from benchmarks.search.pytorch.trial import EpochResult, TrialPlan, TrialTraining
from benchmarks.search.pytorch.weights import State, inherited
from utils.errors import raised
from utils.events import EventName
from utils.parameters import TrainingSettings

# Out of memory and what else PyTorch raises, a graph that is none, a batch that is too small for a normalisation.
TRIAL_ERRORS = (RuntimeError, ValueError, MemoryError)
T = TypeVar("T")


class Controller(Protocol):
    """What rank 0 tells the controller; `benchmarks.search.worker` has it."""

    def epoch_done(
        self,
        trial: Trial,
        epoch: int,
        *,
        accuracy: float,
        loss: float | None,
        training_samples: int,
        validation_samples: int,
    ) -> bool:
        """False where the trial is not to go on."""

    def trial_done(self, trial: Trial, *, stopped: bool = False) -> None:
        """All its epochs are done, or it was stopped early."""

    def trial_failed(self, trial: Trial, reason: str) -> None:
        """It cannot be trained."""


class Weights(Protocol):
    """Where the weights of trained networks are; `benchmarks.search.weight_exchange` has it."""

    def put(self, trial: int, data: bytes) -> None:
        """Store them for the trial's children."""

    def get(self, trial: int) -> bytes | None:
        """Of an earlier trial; None where they are not to be had."""


class TrialRunner:
    """Trains on this rank what every rank of the worker is given.

    Args:
        engine: group, device, hooks.
        settings: of the driver, for every trial.
        case: the case's own settings.

    Attributes:
        controller, weights: set on rank 0 alone.
    """

    controller: Controller | None = None
    weights: Weights | None = None

    def __init__(
        self,
        engine: Engine[Any],
        data: ImageData,
        settings: TrainingSettings,
        case: Mapping[str, Any],
        perf_log: PerfLog,
    ) -> None:
        self.engine, self.data, self.settings, self.case = engine, data, settings, case
        self._perf_log: PerfLog | None = perf_log
        self._counts = {"trials": 0, "failed_trials": 0}

    def counts(self) -> dict[str, int]:
        """Trials that were trained here to their end, and that failed."""
        return dict(self._counts)

    def run(self, trial: Trial) -> None:
        """Train it to its end, or until the controller wants it no longer. Every rank calls this."""
        self._let_go()
        parent = self._parent_of(trial)
        training, failure = self._tried(partial(self._training, trial, parent))
        if training is None:
            self._fail(trial, failure)
            return
        self._tell_hooks(training)
        epochs, last = training.epochs(), 0
        while True:
            result, failure = self._tried(partial(next, epochs, None))
            if result is None:
                break
            last = result.epoch
            if not self._is_wanted(trial, result):
                return
        if failure:
            del training, epochs
            self._fail(trial, failure)
        else:
            self._end(trial, training, stopped=last < trial.epochs)

    def _tried(self, action: Callable[[], T]) -> tuple[T | None, str]:
        """What it gives, or why it failed on some rank. Every rank calls this."""
        result, reason = None, ""
        try:
            result = action()
        except TRIAL_ERRORS as error:
            traceback.print_exc()
            reason = _why(error)
        reasons = self.engine.group.gather(reason)
        failure = next((f"rank {rank}: {each}" for rank, each in enumerate(reasons) if each), "")
        return (None if failure else result), failure

    def _parent_of(self, trial: Trial) -> StoredWeights | None:
        """The parent as it was trained, from wherever; None where there is none, or it is lost."""
        if trial.proposed.parent is None:
            return None
        data = self._fetched(trial.proposed.parent) if self.engine.rank == 0 else None
        message = self.engine.group.broadcast(data).read()
        try:
            if message:
                return StoredWeights.read(message)
            why = "they are not to be had"
        except WeightsError as error:
            why = str(error)
        print(f"trial {trial.trial}: the weights of trial {trial.proposed.parent}: {why}", flush=True)
        return None

    def _fetched(self, parent: int) -> bytes:
        """The parent's weights as they are stored; empty where they are not to be had. For rank 0."""
        try:
            return (self.weights and self.weights.get(parent)) or b""
        except Exception as error:  # the other ranks wait for them, and a child can do without
            print(f"the weights of trial {parent}: {_why(error)}", flush=True)
            return b""

    def _training(self, trial: Trial, parent: StoredWeights | None) -> TrialTraining:
        proposed = trial.proposed
        architecture = trained(parse(bytes(proposed.architecture)), proposed.hyperparameters)
        settings = replace(self.settings, seed=self.settings.seed + trial.trial)
        torch.manual_seed(settings.seed)
        plan = TrialPlan(
            architecture,
            _inherited(trial, parent, architecture) if parent else None,
            batch_size=proposed.hyperparameters.batch_size,
            epochs=trial.epochs,
            patience=self.case["patience_epochs"],
            label_smoothing=self.case["label_smoothing"],
        )
        return TrialTraining(plan, self.data, settings, self.engine)

    def _is_wanted(self, trial: Trial, result: EpochResult) -> bool:
        """Tell the controller of an epoch. Every rank calls this."""
        wanted = True
        if self.controller:
            place = f"trial {trial.trial}, epoch {result.epoch} of {trial.epochs}"
            print(f"{place}: accuracy {result.accuracy:.4f}, loss {result.loss:.4f}", flush=True)
            wanted = self.controller.epoch_done(
                trial,
                result.epoch,
                accuracy=result.accuracy,
                loss=result.loss,
                training_samples=result.training_samples,
                validation_samples=result.validation_samples,
            )
        return self.engine.group.max_of([float(not wanted)])[0] == 0.0

    def _end(self, trial: Trial, training: TrialTraining, *, stopped: bool) -> None:
        """The weights come first: once a trial is done its children may be asked for."""
        self._counts["trials"] += 1
        if self.controller and self.weights:
            self.weights.put(
                trial.trial, StoredWeights(training.plan.architecture, training.state()).as_bytes()
            )
            self.controller.trial_done(trial, stopped=stopped)

    def _fail(self, trial: Trial, failure: str) -> None:
        """Any error of the device's ends this rank here: it would fail every trial that follows."""
        self._counts["failed_trials"] += 1
        print(f"trial {trial.trial} failed: {failure}", flush=True)
        if self.controller:
            self.controller.trial_failed(trial, failure)
        self._let_go()
        torch.zeros(1, device=self.engine.device.place).item()

    def _let_go(self) -> None:
        """Of the last trial's memory: DDP's wrapper refers to itself, and the next network is of other sizes."""
        gc.collect()
        if not self.engine.device.is_cpu:
            self.engine.device.module.empty_cache()

    def _tell_hooks(self, training: TrialTraining) -> None:
        """What the vendor's hooks changed of the first network that they were given."""
        if self._perf_log:
            reports = self.engine.group.gather(training.trainer.inspector.as_dict())
            self._perf_log.write(EventName.HOOKS, hooks_of_all_ranks(reports))
            self._perf_log = None


def _inherited(trial: Trial, parent: StoredWeights, architecture: Architecture) -> State | None:
    """What the trial's network begins with; None where its parent's weights do not fit."""
    try:
        edits = [msgspec.json.decode(edit, type=Edit) for edit in trial.proposed.edits]
        return inherited(parent.state, parent.architecture, edits, architecture)
    except Exception as error:  # another worker stored them: nothing in them ends a rank of this one
        print(f"trial {trial.trial}: its parent's weights do not fit: {_why(error)}", flush=True)
        return None


def _why(error: Exception) -> str:
    """The first line of what was raised: a line of the log that begins with another's words might be read as ours."""
    return raised(error).partition("\n")[0]
