"""The PyTorch engine: how PyTorch trains a model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor

from benchmarks.driver.engine import TrainingEngine
from benchmarks.driver.inspection import FrameworkFacts
from benchmarks.driver.pytorch import facts
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.state import load, save
from benchmarks.driver.pytorch.tensors import moved, pinned

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


class PytorchEngine(TrainingEngine[Device]):
    """PyTorch's part of a training engine."""

    facts: ClassVar[FrameworkFacts] = facts
    save = staticmethod(save)
    load = staticmethod(load)

    def loss_scale(self) -> float | None:
        """The scaler's present scale."""
        return None if self.scaler is None else float(self.scaler.get_scale())

    def state(self) -> Any:
        """Weights and buffers, the optimizer's moments, the scaler's scale."""
        scaler = None if self.scaler is None else self.scaler.state_dict()
        return {
            "model": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": scaler,
        }

    def load_state(self, state: Any) -> None:
        """Take over weights, moments and scale; each rank does it alike."""
        self.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])

    def random_state(self) -> Any:
        """Of PyTorch's generators on the host and on this rank's device."""
        return {"host": torch.get_rng_state(), "device": self.device.random_state()}

    def load_random_state(self, state: Any) -> None:
        """Set both."""
        torch.set_rng_state(state["host"])
        self.device.set_random_state(state["device"])

    def _set_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def _placed(self, model: Any) -> Any:
        return model.to(self.device.place)

    def _compiled(self, model: Any) -> Any:
        return torch.compile(model) if self.settings.torch_compile else model

    def _set_learning_rate(self, learning_rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def _counts(self, own: Sequence[float]) -> Tensor:
        counts = torch.tensor(own, dtype=torch.float32)
        return counts if self.device.is_cpu else moved(pinned(counts), self.device.place)

    def _staged(self, inputs: Any) -> Any:
        return inputs if self.device.is_cpu else pinned(inputs)

    def moved(self, inputs: Any) -> Any:
        """`inputs` with its tensors on the device."""
        return moved(inputs, self.device.place)

    def _without_gradients(self) -> AbstractContextManager[Any]:
        return torch.inference_mode()

    def _update_weights(self) -> None:
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        if self.settings.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.settings.max_grad_norm)
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _autocast(self) -> AbstractContextManager[None]:
        dtype = _AUTOCAST.get(self.settings.precision)
        return nullcontext() if dtype is None else torch.autocast(self.device.kind, dtype=dtype)
