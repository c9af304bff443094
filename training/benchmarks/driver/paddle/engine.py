"""The Paddle engine: how Paddle trains a model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import paddle
from paddle import Tensor

from benchmarks.driver.engine import TrainingEngine
from benchmarks.driver.inspection import FrameworkFacts
from benchmarks.driver.paddle import facts
from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.state import (
    load,
    optimizer_state,
    optimizer_state_here,
    random_state,
    save,
    scaler_state,
    set_random_state,
)
from benchmarks.driver.paddle.tensors import Uploads
from utils.errors import FlagPerfError

_AUTOCAST: dict[str, Any] = {"bf16": "bfloat16", "fp16": "float16"}


class PaddleEngine(TrainingEngine[Device]):
    """Paddle's part of a training engine."""

    facts: ClassVar[FrameworkFacts] = facts
    save = staticmethod(save)
    load = staticmethod(load)

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.uploads = Uploads(self.device)

    def loss_scale(self) -> float | None:
        """The scaler's present scale."""
        return None if self.scaler is None else float(self.scaler.state_dict()["scale"])

    def state(self) -> Any:
        """Weights and buffers, the optimizer's moments, the scaler's scale."""
        optimizer = optimizer_state(self.module, self.optimizer.state_dict())
        scaler = None if self.scaler is None else scaler_state(self.scaler.state_dict())
        return {"model": dict(self.module.state_dict()), "optimizer": optimizer, "scaler": scaler}

    def load_state(self, state: Any) -> None:
        """Take over weights, moments and scale; each rank does it alike."""
        missing, unknown = self.module.set_state_dict(state["model"])
        if missing or unknown:
            raise FlagPerfError(
                f"the checkpoint lacks {missing or 'nothing'} and has {unknown or 'nothing'} that is not the model's",
                where="checkpoint",
                remedy="go on with the code and the vendor's hooks that the run began with",
            )
        self.optimizer.set_state_dict(optimizer_state_here(self.module, state["optimizer"]))
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])

    def random_state(self) -> Any:
        """Of Paddle's generators on the host and on this rank's device."""
        return random_state(self.device)

    def load_random_state(self, state: Any) -> None:
        """Set both."""
        set_random_state(self.device, state)

    def _set_seed(self, seed: int) -> None:
        paddle.seed(seed)

    def _set_learning_rate(self, learning_rate: float) -> None:
        self.optimizer.set_lr(learning_rate)

    def _counts(self, own: Sequence[float]) -> Tensor:
        # `full` takes its number with it: a copy from the host would wait for the device.
        return paddle.stack([paddle.full([], float(count)) for count in own])

    def moved(self, inputs: Any) -> Any:
        """`inputs` with its tensors on the device."""
        return self.uploads.moved(inputs)

    def _without_gradients(self) -> AbstractContextManager[Any]:
        no_gradients: AbstractContextManager[Any] = paddle.no_grad()
        return no_gradients

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
