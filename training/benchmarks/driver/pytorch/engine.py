"""The PyTorch engine: one rank's model, data and optimizer, and the step that trains them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.pytorch.case import Case
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.hooks import Hooks
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.pytorch.state import load, save
from benchmarks.driver.pytorch.tensors import moved, pinned
from benchmarks.driver.rank_engine import RankTrainingEngine, global_label_counts, gradients_sync

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


class PytorchEngine(RankTrainingEngine[Case, ProcessGroup, Device]):
    """Implements `benchmarks.driver.engine.TrainingEngine`."""

    def __init__(
        self, config: Configuration, case: Case, group: ProcessGroup, device: Device, hooks: Hooks
    ) -> None:
        super().__init__(config, case, group, device)
        self.hooks = hooks
        # The same seed on every rank: the same initial weights. Then one each: other dropout masks.
        torch.manual_seed(self.settings.seed)
        self.module = hooks.convert_model(config, case.build_model()).to(device.torch)
        torch.manual_seed(self.settings.seed + 1 + self.rank)
        self.optimizer = hooks.create_optimizer(config, self.module)
        self.module, self.optimizer = hooks.model_to_fp16(config, self.module, self.optimizer)
        self.model: nn.Module = self.module
        if self.settings.torch_compile:
            self.model = cast(nn.Module, torch.compile(self.model))
        if self.world_size > 1:
            self.model = hooks.model_to_ddp(config, self.model)
        self.scaler = hooks.create_grad_scaler(config, device.torch.type)
        self._last_loss: Tensor | None = None

    def train_step(self, step: Step, learning_rate: float) -> None:
        """One optimizer step on the micro-batches of `step`."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        labels, added_up = self._global_labels(step)
        total = torch.zeros((), device=self.device.torch)
        for index, batch in enumerate(step):
            with gradients_sync(self.model, is_last=index == len(step) - 1):
                sums = self._loss_sums(batch)
                if added_up is not None:
                    added_up.wait()
                loss = (sums / labels).sum()
                # DDP takes the mean over ranks where the global batch's loss is their sum.
                self.hooks.backward(self.config, loss * self.world_size, self.optimizer, self.scaler)
            total += loss.detach()
        self._last_loss = total
        self._update_weights()

    def loss(self) -> float:
        """The last step's, added up over ranks: each holds its labels' share."""
        if self._last_loss is None:
            raise RuntimeError("no step has been trained")
        total = self._last_loss.clone()
        added_up = self.group.sum(total)
        if added_up is not None:
            added_up.wait()
        return float(total)

    def loss_scale(self) -> float | None:
        """The scaler's present scale."""
        return None if self.scaler is None else float(self.scaler.get_scale())

    def evaluate(self) -> dict[str, float]:
        """The case's metrics; each rank takes its part, and no collective is called before its end."""
        self.module.eval()
        sums: Tensor | None = None
        with torch.inference_mode(), self._autocast():
            for batch in self.loader.evaluation_batches():
                added = self.case.evaluate(self.module, moved(batch.inputs, self.device.torch)).double()
                sums = added if sums is None else sums + added
        self.module.train()
        return self.case.metrics(self._sums_of_all_ranks([] if sums is None else sums.tolist()))

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

    def save(self, state: Any, target: Path | BytesIO) -> None:
        """By torch.save."""
        save(state, target)

    def load(self, source: BytesIO) -> Any:
        """By torch.load, which takes plain data and tensors alone."""
        return load(source)

    def _global_labels(self, step: Step) -> tuple[Tensor, dist.Work | None]:
        """Labels of each part of the loss in the global batch; added up while the forward pass runs."""
        labels = torch.tensor(global_label_counts(step), dtype=torch.float32)
        if not self.device.is_cpu:
            labels = labels.pin_memory().to(self.device.torch, non_blocking=True)
        return labels, self.group.sum(labels)

    def _staged(self, inputs: Any) -> Any:
        return inputs if self.device.is_cpu else pinned(inputs)

    def _loss_sums(self, batch: Batch) -> Tensor:
        with self._autocast():
            return self.case.loss(self.model, moved(batch.inputs, self.device.torch))

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
        return nullcontext() if dtype is None else torch.autocast(self.device.torch.type, dtype=dtype)
