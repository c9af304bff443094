"""Small chunks and models for the tests of CPM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.common.arrays import Array
from benchmarks.common.shape import TransformerConfig
from benchmarks.cpm.chunks import PADDING, chunk_arrays
from benchmarks.cpm.pytorch.case import Case
from benchmarks.cpm.pytorch.inputs import make_inputs
from benchmarks.cpm.pytorch.model import CpmInputs, CpmModel
from benchmarks.driver.loader import Loader
from benchmarks.driver.pytorch.case import Context
from tests.benchmarks.cpm.their_gpt2 import from_transformers
from utils.parameters import TrainingSettings

TINY: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 12,
}
LENGTHS = (13, 2, 7, 3, 13, 9)  # tokens of each chunk: full, the least, and between


def random_chunks(lengths: Sequence[int] = LENGTHS, *, length: int = 13, seed: int = 5) -> Array:
    """(samples, length) int32 with `lengths` tokens each, then padding."""
    generator = np.random.default_rng(seed)
    chunks = generator.integers(8, TINY["vocab_size"], (len(lengths), length)).astype(np.int32)
    chunks[np.arange(length) >= np.asarray(lengths)[:, None]] = PADDING
    return chunks


def write_set(data_dir: Path, folder: str, *files: Array) -> None:
    """A training or evaluation set of these files."""
    (data_dir / folder).mkdir(parents=True, exist_ok=True)
    for number, chunks in enumerate(files):
        np.save(data_dir / folder / f"chunks_{number:05d}_of_{len(files):05d}.npy", chunks)


def inputs_of(chunks: Array, *, ragged: bool = False) -> CpmInputs:
    return make_inputs(chunk_arrays(chunks), ragged=ragged)


def their_model() -> GPT2LMHeadModel:
    """A GPT-2 whose biases and normalisation are not 0 and 1: errors there would not be seen otherwise."""
    torch.manual_seed(3)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=TINY["vocab_size"],
            n_embd=TINY["hidden_size"],
            n_layer=TINY["num_layers"],
            n_head=TINY["num_attention_heads"],
            n_positions=TINY["max_position_embeddings"],
            initializer_range=0.3,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def our_model(theirs: GPT2LMHeadModel | None = None, **changed: Any) -> CpmModel:
    """The tiny model without dropout, with the weights of `theirs`."""
    model = CpmModel(
        TransformerConfig(**{**TINY, "hidden_dropout": 0.0, "attention_dropout": 0.0, **changed})
    )
    if theirs is not None:
        model.load_state_dict(from_transformers(theirs.state_dict()))
    return model


def make_case(data_dir: Path, driver: TrainingSettings, **settings: Any) -> Case:
    """The case of a tiny model on the CPU."""
    values = {**TINY, "hidden_dropout": 0.0, "attention_dropout": 0.0, **settings}
    return Case(Context(data_dir, driver, values, torch.device("cpu")))


def loader(case: Case, rank: int = 0, world_size: int = 1) -> Loader:
    """What makes a rank's batches of the case's data."""
    return Loader(case, case.context.driver, rank, world_size)
