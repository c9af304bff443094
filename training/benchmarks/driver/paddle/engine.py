"""The Paddle engine: one rank's model, data and optimizer, and the step that trains them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

import paddle
from paddle import Tensor, nn

from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.paddle.case import Case
from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.hooks import Hooks
from benchmarks.driver.paddle.process_group import ProcessGroup
from benchmarks.driver.paddle.state import (
    load,
    optimizer_state,
    optimizer_state_here,
    random_state,
    save,
    scaler_state,
    set_random_state,
)
from benchmarks.driver.paddle.tensors import Uploads, numbers_of
from benchmarks.driver.rank_engine import RankTrainingEngine, global_label_counts, gradients_sync
from utils.errors import FlagPerfError

_AUTOCAST: dict[str, Any] = {"bf16": "bfloat16", "fp16": "float16"}


class PaddleEngine(RankTrainingEngine[Case, ProcessGroup, Device]):
    """Implements `benchmarks.driver.engine.TrainingEngine`."""

    def __init__(
        self, config: Configuration, case: Case, group: ProcessGroup, device: Device, hooks: Hooks
    ) -> None:
        super().__init__(config, case, group, device)
        self.hooks = hooks
        self.uploads = Uploads(device)
        # The same seed on every rank: the same initial weights. Then one each: other dropout masks.
        paddle.seed(self.settings.seed)
        self.layer = hooks.convert_model(config, case.build_model())
        paddle.seed(self.settings.seed + 1 + self.rank)
        self.optimizer = hooks.create_optimizer(config, self.layer)
        self.layer, self.optimizer = hooks.model_to_fp16(config, self.layer, self.optimizer)
        self.model: nn.Layer = self.layer
        if self.world_size > 1:
            group.meet()  # the first collective: weights take their time to be read
            self.model = hooks.model_to_ddp(config, self.model)
        self.scaler = hooks.create_grad_scaler(config, device.kind)
        self._last_loss: Tensor | None = None

    def train_step(self, step: Step, learning_rate: float) -> None:
        """One optimizer step on the micro-batches of `step`."""
        self.optimizer.set_lr(learning_rate)
        labels, added_up = self._global_labels(step)
        total = paddle.zeros([])
        for index, batch in enumerate(step):
            with gradients_sync(self.model, is_last=index == len(step) - 1):
                sums = self._loss_sums(batch)
                if added_up is not None:
                    added_up.wait()
                loss = (sums / labels).sum()
                # DataParallel takes the mean over ranks where the global batch's loss is their sum.
                self.hooks.backward(self.config, loss * self.world_size, self.optimizer, self.scaler)
            total = total + loss.detach()
        self._last_loss = total
        self._update_weights()

    def loss(self) -> float:
        """The last step's, added up over ranks: each holds its labels' share."""
        if self._last_loss is None:
            raise RuntimeError("no step has been trained")
        return self.group.sum_of([float(self._last_loss)])[0]

    def loss_scale(self) -> float | None:
        """The scaler's present scale."""
        return None if self.scaler is None else float(self.scaler.state_dict()["scale"])

    def evaluate(self) -> dict[str, float]:
        """The case's metrics; each rank takes its part, and no collective is called before its end."""
        self.layer.eval()
        sums: Tensor | None = None
        with paddle.no_grad(), self._autocast():
            for batch in self.loader.evaluation_batches():
                added = self.case.evaluate(self.layer, self.uploads.moved(batch.inputs))
                added = added.astype("float64")
                sums = added if sums is None else sums + added
        self.layer.train()
        own = [] if sums is None else numbers_of(sums)
        self.group.meet()
        return self.case.metrics(self._sums_of_all_ranks(own))

    def state(self) -> Any:
        """Weights and buffers, the optimizer's moments, the scaler's scale."""
        optimizer = optimizer_state(self.layer, self.optimizer.state_dict())
        scaler = None if self.scaler is None else scaler_state(self.scaler.state_dict())
        return {"model": dict(self.layer.state_dict()), "optimizer": optimizer, "scaler": scaler}

    def load_state(self, state: Any) -> None:
        """Take over weights, moments and scale; each rank does it alike."""
        missing, unknown = self.layer.set_state_dict(state["model"])
        if missing or unknown:
            raise FlagPerfError(
                f"the checkpoint lacks {missing or 'nothing'} and has {unknown or 'nothing'} that is not the model's",
                where="checkpoint",
                remedy="go on with the code and the vendor's hooks that the run began with",
            )
        self.optimizer.set_state_dict(optimizer_state_here(self.layer, state["optimizer"]))
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])

    def random_state(self) -> Any:
        """Of Paddle's generators on the host and on this rank's device."""
        return random_state(self.device)

    def load_random_state(self, state: Any) -> None:
        """Set both."""
        set_random_state(self.device, state)

    def save(self, state: Any, target: Path | BytesIO) -> None:
        """By paddle.save."""
        save(state, target)

    def load(self, source: BytesIO) -> Any:
        """By paddle.load."""
        return load(source)

    def _global_labels(self, step: Step) -> tuple[Tensor, Any]:
        """Labels of each part of the loss in the global batch; added up while the forward pass runs."""
        # `full` takes its number with it: a copy from the host would wait for the device.
        labels = paddle.stack([paddle.full([], float(count)) for count in global_label_counts(step)])
        return labels, self.group.sum(labels)

    def _loss_sums(self, batch: Batch) -> Tensor:
        with self._autocast():
            return self.case.loss(self.model, self.uploads.moved(batch.inputs))

    def _update_weights(self) -> None:
        """The optimizer clips the gradients itself, after the scaler has unscaled them."""
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.clear_grad(set_to_zero=False)

    def _autocast(self) -> AbstractContextManager[None]:
        dtype = _AUTOCAST.get(self.settings.precision)
        return nullcontext() if dtype is None else paddle.amp.auto_cast(dtype=dtype)
