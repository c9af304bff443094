"""CPM against transformers' GPT2LMHeadModel: eager attention, SDPA, and SDPA compiled.

Ours has no padding outside attention, and makes and uses logits block by block. GPT2LMHeadModel has its own
loss and gets no attention mask: padding comes after all that is looked at.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from comparison import OURS, Comparison, Options
from contenders import our_engine, our_step, peer_step, peer_steps
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.common.arrays import Array
from benchmarks.common.shape import TransformerConfig
from benchmarks.cpm.chunks import COLUMN, TRAINING_FOLDER, chunk_arrays, chunk_files
from benchmarks.cpm.flops import training_flops
from benchmarks.cpm.prepare.command import main as prepare
from benchmarks.cpm.pytorch.case import Case
from benchmarks.cpm.pytorch.inputs import make_inputs
from benchmarks.cpm.pytorch.model import CpmModel
from benchmarks.driver.batches import Batch
from benchmarks.driver.sampling import ShuffledStream
from tests.benchmarks.cpm.their_gpt2 import from_transformers

VOCABULARY, LENGTH, BATCH = 8000, 64, 64  # the demo's data
SIZES = {"demo": (2, 128, 2), "4x256": (4, 256, 4)}  # layers, hidden size, heads
SIZES_TEXT = """\
  cpm demo          2 layers of 128 on the demo's data: chunks of 65, vocabulary 8000, batch 64
  cpm 4x256         4 layers of 256 on the same data
"""


def comparisons(folder: Path, options: Options) -> Iterator[Comparison]:
    """One for each of SIZES that is wanted; data is prepared below `folder`."""
    if not (folder / "cpm").exists() and prepare(["--demo", "--out", str(folder / "cpm")]) != 0:
        raise SystemExit("the data could not be prepared")
    batches = _batches(folder / "cpm", options)
    filled = np.mean([(chunks[:, 1:] >= 0).mean() for chunks in batches])
    for name, (layers, hidden, heads) in SIZES.items():
        if not options.wants(name):
            continue
        title = f"cpm, {layers} layers of {hidden}, vocabulary {VOCABULARY}, batch {BATCH} x {LENGTH}"
        contenders = _contenders((layers, hidden, heads), batches, options)
        flops = statistics.mean(_flops((layers, hidden, heads), chunks) for chunks in batches)
        yield Comparison(name, f"{title}, {filled:.0%} filled", BATCH, flops, contenders)


def _flops(shape: tuple[int, int, int], chunks: Array) -> float:
    config = TransformerConfig(VOCABULARY, shape[1], shape[0], shape[2], LENGTH)
    return training_flops(config, chunk_arrays(chunks).lengths)


def _batches(data_dir: Path, options: Options) -> list[Array]:
    """Chunks (batch size, 65) for each step."""
    files = chunk_files(data_dir / TRAINING_FOLDER)
    stream = ShuffledStream(len(files.files), files.rows, seed=1)
    batches = itertools.islice(stream.global_batches(BATCH), options.batches)
    return [files.read(samples)[COLUMN] for samples in batches]


def _contenders(shape: tuple[int, int, int], batches: Sequence[Array], options: Options) -> dict[str, Any]:
    layers, hidden, heads = shape
    settings = options.settings(BATCH)
    torch.manual_seed(1)
    theirs: dict[str, Any] = {
        "vocab_size": VOCABULARY, "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": LENGTH,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    }  # fmt: skip
    ours = {
        "vocab_size": VOCABULARY, "hidden_size": hidden, "num_layers": layers, "num_attention_heads": heads,
        "max_position_embeddings": LENGTH, "hidden_dropout": 0.0, "attention_dropout": 0.0,
    }  # fmt: skip
    weights = GPT2LMHeadModel(GPT2Config(**theirs)).state_dict()

    def make(attention: str) -> GPT2LMHeadModel:
        model = GPT2LMHeadModel(GPT2Config(**{**theirs, "attn_implementation": attention}))
        model.load_state_dict(weights)
        return model

    engine = our_engine(Case, settings, ours)
    assert isinstance(engine.module, CpmModel)
    engine.module.load_state_dict(from_transformers(weights))
    peers = [_their_batch(chunks) for chunks in batches]
    return {
        OURS: our_step(engine, [_our_batch(chunks) for chunks in batches]),
        "transformers eager": peer_step(make("eager"), settings, peers),
        **peer_steps("transformers sdpa", partial(make, "sdpa"), options, BATCH, peers),
    }


def _our_batch(chunks: Array) -> Batch:
    arrays = chunk_arrays(chunks)
    return Batch(make_inputs(arrays, ragged=False), len(chunks), None, None, (float(len(arrays.labels)),))


def _their_batch(chunks: Array) -> dict[str, torch.Tensor]:
    """The 64 inputs and the 64 labels that follow them, as FlagPerf divides a chunk of 65."""
    tokens = torch.from_numpy(chunks).long()
    labels = torch.where(tokens[:, 1:] < 0, -100, tokens[:, 1:])
    return {"input_ids": tokens[:, :-1].clamp_min(0), "labels": labels, "shift_labels": labels}
