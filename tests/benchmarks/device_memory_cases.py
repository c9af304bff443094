"""The cases' models and their largest batches, for `device_memory`: every sample as long as the task lets it be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.pytorch import inputs as bert_inputs
from benchmarks.bert.pytorch import layout as bert_layout
from benchmarks.bert.pytorch.model import BertForPreTraining, pretraining_loss_sums
from benchmarks.bert.shape import BertConfig
from benchmarks.common.shape import TransformerConfig, configured
from benchmarks.cpm.chunks import chunk_arrays
from benchmarks.cpm.pytorch import inputs as cpm_inputs
from benchmarks.cpm.pytorch import layout as cpm_layout
from benchmarks.cpm.pytorch import loss as cpm_loss
from benchmarks.cpm.pytorch.model import CpmModel
from benchmarks.driver.batches import mapped
from benchmarks.glm.clozes import Clozes
from benchmarks.glm.pytorch import inputs as glm_inputs
from benchmarks.glm.pytorch import layout as glm_layout
from benchmarks.glm.pytorch.model import GlmConfig, GlmForMultiTokenCloze, cloze_loss_sum
from tests.benchmarks.device_memory import RankMemory, as_on_a_gpu, evaluation_peak, training_peak

PREDICTIONS = 76  # of a sample of BERT
CPM_INPUTS = 200  # of a sample of CPM
CANDIDATE = 3  # tokens of a candidate of GLM
TRAINING_CANDIDATES, EVALUATION_CANDIDATES = 10, 30  # ReCoRD's passages name some twelve entities


@dataclass(frozen=True)
class CaseParts:
    """How a case is run.

    Attributes:
        model: of its settings.
        inputs: of samples, settings, and whether it is for training.
        loss, evaluate: of model and inputs.
        layout: the module whose `attention` it calls.
    """

    model: Callable[[Mapping[str, Any]], nn.Module]
    inputs: Callable[[int, Mapping[str, Any], bool], Any]
    loss: Callable[[Any, Any], Tensor]
    evaluate: Callable[[Any, Any], object]
    layout: Any


def bert_batch(samples: int, settings: Mapping[str, Any], training: bool) -> Any:
    """Full samples, all of whose predictions are there."""
    length = settings["max_position_embeddings"]
    places = np.broadcast_to(np.arange(PREDICTIONS + 1, dtype=np.int32), (samples, PREDICTIONS + 1))
    arrays = PretrainingArrays(
        input_ids=np.ones((samples, length), np.int32),
        segment_ids=np.zeros((samples, length), np.int32),
        lengths=np.full(samples, length, np.int32),
        positions=places,
        label_places=np.flatnonzero(places),
        labels=np.ones(samples * PREDICTIONS, np.int64),
        next_sentence_labels=np.zeros(samples, np.int64),
    )
    return bert_inputs.make_inputs(arrays, ragged=True)


def cpm_batch(samples: int, settings: Mapping[str, Any], training: bool) -> Any:
    """Full chunks."""
    length = min(CPM_INPUTS, settings["max_position_embeddings"]) + 1
    return cpm_inputs.make_inputs(chunk_arrays(np.ones((samples, length), np.int32)), ragged=True)


def glm_batch(samples: int, settings: Mapping[str, Any], training: bool) -> Any:
    """Questions whose source, start and longest candidate fill the positions."""
    length = settings["max_position_embeddings"] - 1 - CANDIDATE
    each = TRAINING_CANDIDATES if training else EVALUATION_CANDIDATES
    candidates = samples * each
    ones = np.ones(candidates)
    clozes = Clozes(
        sources=np.ones(samples * length, np.int64),
        source_lengths=np.full(samples, length),
        blanks=np.full(samples, length // 2),
        candidate_counts=np.full(samples, each),
        candidates=np.ones(candidates * CANDIDATE, np.int64),
        candidate_lengths=np.full(candidates, CANDIDATE),
        exact_match=np.tile(np.arange(each) == 0, samples).astype(np.int8),
        f1=ones,
        mentions=ones,
        in_query=ones,
    )
    return glm_inputs.make_inputs(clozes, start=1, end=2, ragged=True)


CASES: Mapping[str, CaseParts] = {
    "bert": CaseParts(
        lambda settings: BertForPreTraining(configured(BertConfig, settings)),
        bert_batch,
        lambda model, inputs: pretraining_loss_sums(*model(inputs), inputs),
        lambda model, inputs: pretraining_loss_sums(*model(inputs), inputs),
        bert_layout,
    ),
    "cpm": CaseParts(
        lambda settings: CpmModel(configured(TransformerConfig, settings)),
        cpm_batch,
        lambda model, inputs: model(inputs),
        lambda model, inputs: model.predict(inputs),
        cpm_layout,
    ),
    "glm": CaseParts(
        lambda settings: GlmForMultiTokenCloze(configured(GlmConfig, settings)),
        glm_batch,
        lambda model, inputs: cloze_loss_sum(model(inputs), inputs),
        lambda model, inputs: cloze_loss_sum(model(inputs), inputs),
        glm_layout,
    ),
}
LAYERS = {"bert": "num_hidden_layers", "cpm": "num_layers", "glm": "num_layers"}
FEW, MORE = 2, 4  # layers that are counted: all others take as much as the one more


def rank_memory(case: str, settings: Mapping[str, Any]) -> RankMemory:
    """What a rank of `case` (bert, cpm, glm) needs: layers are alike, so a few of them are counted."""
    few, more = (counted(case, {**settings, LAYERS[case]: layers}) for layers in (FEW, MORE))
    return few.extended(more, (settings[LAYERS[case]] - FEW) / (MORE - FEW))


def counted(case: str, settings: Mapping[str, Any], *, fake: bool = True) -> RankMemory:
    """The same by running all layers, on a CPU with tensors that are fake or real."""
    shape = tuple(sorted((name, value) for name, value in settings.items() if name in shape_names()))
    precision = "fp32" if settings["precision"] == "fp32" else "bf16"  # all kinds of 16 bits count alike
    sizes = (settings["train_batch_size"], settings["eval_batch_size"], precision)
    return _counted(case, shape, *sizes, fake)


@cache
def _counted(
    case: str, shape: tuple[tuple[str, Any], ...], batch: int, evaluated: int, precision: str, fake: bool
) -> RankMemory:
    parts, settings = CASES[case], dict(shape)
    given = [parts.inputs(batch, settings, True), parts.inputs(evaluated, settings, False)]
    mode = FakeTensorMode(allow_non_fake_inputs=True) if fake else None
    if mode is not None:
        given = [mapped(inputs, Tensor, mode.from_tensor) for inputs in given]
    # CPM's logits are made in blocks, larger ones on a GPU
    blocks = patch.object(cpm_loss, "_CPU_LOGITS", cpm_loss._DEVICE_LOGITS)
    with mode or nullcontext(), blocks, as_on_a_gpu(parts.layout):
        model = parts.model(settings)
        weights = sum(parameter.untyped_storage().nbytes() for parameter in model.parameters())
        trained = training_peak(model, lambda: parts.loss(model, given[0]), precision)
        model.zero_grad()
        model.eval()
        evaluation = evaluation_peak(model, lambda: parts.evaluate(model, given[1]), precision)
    return RankMemory(weights, trained, evaluation)


def shape_names() -> set[str]:
    """The settings that are the models' own."""
    return {name for kind in (BertConfig, GlmConfig) for name in kind.__dataclass_fields__}


def saved_bytes(case: str, settings: Mapping[str, Any], precision: str) -> int:
    """What PyTorch's own hooks see kept for the backward pass of a training batch, weights left out."""
    parts = CASES[case]
    inputs, model = parts.inputs(settings["train_batch_size"], settings, True), parts.model(settings)
    of_weights = {tuple(parameter.shape) for parameter in model.parameters() if parameter.dim() > 1}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.dim() > 1 and not {tuple(tensor.shape), tuple(tensor.mT.shape)} & of_weights:
            kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    cast = torch.autocast("cpu", torch.bfloat16, enabled=precision != "fp32")
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with as_on_a_gpu(parts.layout), hooks, cast:
        parts.loss(model, inputs)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
