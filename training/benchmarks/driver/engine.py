"""One rank's part of the work, whatever the framework: its case, its device and the other ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.case_answers import check_metrics
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.device import Device
from benchmarks.driver.hooks import Hooks
from benchmarks.driver.inspection import FrameworkFacts, Inspector
from benchmarks.driver.loader import Loader
from benchmarks.driver.process_group import ProcessGroup
from benchmarks.driver.rank_times import FORWARD, OPTIMIZER, RankTimer

DeviceT = TypeVar("DeviceT", bound=Device[Any])


class Engine(Generic[DeviceT]):
    """A case, this rank's device, and the group of all ranks; the vendor's hooks, which reach training alone."""

    def __init__(self, case: Any, group: ProcessGroup, device: DeviceT, hooks: Hooks) -> None:
        self.case, self.group, self.device, self.hooks = case, group, device, hooks
        self.rank, self.world_size = group.rank, group.world_size


class TrainingEngine(Engine[DeviceT], ABC):
    """A model, its data and its optimizer on the devices of all ranks.

    Every rank calls the same methods in the same order: most of them talk to the other ranks.

    Attributes:
        module: the model itself.
        model: the same, compiled and wrapped for the ranks.
        inspector: what the vendor's hooks changed of both and of the optimizer.
        timer: of this rank's own part of a step.
    """

    facts: ClassVar[FrameworkFacts]

    def __init__(
        self, config: Configuration, case: Any, group: ProcessGroup, device: DeviceT, hooks: Hooks
    ) -> None:
        super().__init__(case, group, device, hooks)
        self.config, self.settings = config, config.driver
        self.loader = Loader(case, self.settings, self.rank, self.world_size, self._staged)
        self.inspector = Inspector(hooks, self.facts)
        # The same seed on every rank: the same initial weights. Then one each: other dropout masks.
        self._set_seed(self.settings.seed)
        self.module = self._placed(self.inspector.convert_model(config, case.build_model()))
        self._set_seed(self.settings.seed + 1 + self.rank)
        self.optimizer = self.inspector.create_optimizer(config, self.module)
        self.module, self.optimizer = self.inspector.model_to_fp16(config, self.module, self.optimizer)
        self.model = self._compiled(self.module)
        if self.world_size > 1:
            group.meet()  # the first collective: weights take their time to be read
            self.model = self.inspector.model_to_ddp(config, self.model)
        self.scaler = hooks.create_grad_scaler(config, device.kind)
        self.timer = RankTimer(device)
        self._last_loss: Any = None

    def baseline(self) -> float | None:
        """The metric that a trivial answer reaches."""
        baseline: float | None = self.case.baseline()
        return baseline

    def training_steps(self, first_step: int = 0) -> Iterator[Step]:
        """This rank's micro-batches of each optimizer step from `first_step` (from 0) on, endlessly."""
        return self.loader.training_steps(first_step)

    def train_step(self, step: Step, learning_rate: float) -> None:
        """Forward, backward and optimizer. Returns before the device has finished where it can."""
        self._set_learning_rate(learning_rate)
        # Labels of each part of the loss in the global batch; added up while the forward pass runs.
        own = [sum(counts) for counts in zip(*(batch.loss_counts for batch in step), strict=True)]
        labels = self._counts(own)
        wait_for_labels = self.group.sum(labels)
        self._last_loss = None
        for index, batch in enumerate(step):
            with self._gradients_sync(is_last=index == len(step) - 1):
                with self.timer.part(FORWARD):
                    sums = self._loss_sums(batch)
                wait_for_labels()
                loss = (sums / labels).sum()
                # The wrapped model takes the mean over ranks where the global batch's loss is their sum.
                self.hooks.backward(self.config, loss * self.world_size, self.optimizer, self.scaler)
            loss = loss.detach()
            self._last_loss = loss if self._last_loss is None else self._last_loss + loss
        with self.timer.part(OPTIMIZER):
            self._update_weights()

    def loss(self) -> float:
        """Loss of the last step's global batch, in the case's unit: each rank holds its labels' share. Waits for it."""
        if self._last_loss is None:
            raise RuntimeError("no step has been trained")
        total = self._last_loss.clone()
        self.group.sum(total)()
        return float(total)

    def evaluate(self) -> dict[str, float]:
        """The case's metrics over the whole evaluation set, equal on every rank.

        Each rank takes its part, and no collective is called before its end. A rank whose part of a small
        evaluation set is empty still takes part, with zeros.
        """
        sums: Any = None
        with self.evaluating():
            for batch in self.loader.evaluation_batches():
                added = self.case.evaluate(self.module, self.moved(batch.inputs)).double()
                sums = added if sums is None else sums + added
        own = [] if sums is None else sums.tolist()
        self.group.meet()
        width = int(self.group.max_of([float(len(own))])[0])
        all_sums = self.group.sum_of(own + [0.0] * (width - len(own)))
        return check_metrics(self.case, self.case.metrics(all_sums))

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """While the model is evaluated: no dropout, no gradients, in the configured precision."""
        self.module.eval()
        with self._without_gradients(), self._autocast():
            yield
        self.module.train()

    def _loss_sums(self, batch: Batch) -> Any:
        with self._autocast():
            return self.case.loss(self.model, self.moved(batch.inputs))

    def _gradients_sync(self, *, is_last: bool) -> AbstractContextManager[None]:
        """Only the last micro-batch's backward pass talks to the other ranks."""
        no_sync: Callable[[], AbstractContextManager[None]] | None = getattr(self.model, "no_sync", None)
        return nullcontext() if is_last or no_sync is None else no_sync()

    def _placed(self, model: Any) -> Any:
        """The model on this rank's device; as it is where the framework makes it there."""
        return model

    def _compiled(self, model: Any) -> Any:
        """The model as the framework's compiler makes it, if it is to."""
        return model

    def _staged(self, inputs: Any) -> Any:
        """A batch's inputs where this framework's device fetches them fastest; as they are, unless it says more."""
        return inputs

    # ---- what each framework has its own words for

    @abstractmethod
    def moved(self, inputs: Any) -> Any:
        """`inputs` with its tensors on the device."""

    @abstractmethod
    def loss_scale(self) -> float | None:
        """Scale of the fp16 gradients, None without one."""

    @abstractmethod
    def state(self) -> Any:
        """Model, optimizer and scaler: plain data and the framework's tensors. The same on every rank."""

    @abstractmethod
    def load_state(self, state: Any) -> None:
        """Take over what `state` gave, here or in an earlier process."""

    @abstractmethod
    def random_state(self) -> Any:
        """Of the framework's random generators on the host and on this rank's device."""

    @abstractmethod
    def load_random_state(self, state: Any) -> None:
        """Take over what `random_state` gave."""

    @staticmethod
    @abstractmethod
    def save(state: Any, target: Path | BytesIO) -> None:
        """Write plain data and tensors.

        Raises:
            OSError: the disk does not take it.
            FlagPerfError: there is something else in it.
        """

    @staticmethod
    @abstractmethod
    def load(source: BytesIO) -> Any:
        """What `save` wrote."""

    @abstractmethod
    def _set_seed(self, seed: int) -> None: ...

    @abstractmethod
    def _set_learning_rate(self, learning_rate: float) -> None: ...

    @abstractmethod
    def _counts(self, own: Sequence[float]) -> Any:
        """A float32 tensor on the device, for which the device is not waited for."""

    @abstractmethod
    def _autocast(self) -> AbstractContextManager[Any]: ...

    @abstractmethod
    def _without_gradients(self) -> AbstractContextManager[Any]: ...

    @abstractmethod
    def _update_weights(self) -> None:
        """Unscale and clip the gradients, let the optimizer make its step, and clear them."""
