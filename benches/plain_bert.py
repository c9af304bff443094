"""BERT against transformers' BertForPreTraining: eager attention, SDPA, and SDPA compiled."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from comparison import OURS, Comparison, Options
from contenders import our_engine, our_step, peer_step, peer_steps
from transformers import BertConfig as TransformersConfig
from transformers import BertForPreTraining as TransformersBert

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.flops import training_flops
from benchmarks.bert.prepare.command import main as prepare
from benchmarks.bert.pytorch.case import Case
from benchmarks.bert.pytorch.inputs import make_inputs
from benchmarks.bert.pytorch.weights import load_transformers_weights
from benchmarks.bert.shape import BertConfig
from benchmarks.bert.shards import open_shard, training_files
from benchmarks.common.sample_files import Columns, SampleFiles
from benchmarks.common.shape import configured
from benchmarks.driver.batches import Batch
from benchmarks.driver.sampling import ShuffledStream

SIZES_TEXT = """\
  bert demo         2 layers of 128 on the demo's data: 64 tokens, vocabulary 2000, batch 64
  bert 4x256        4 layers of 256 on the same text prepared for it: 128 tokens, vocabulary 8000, BERT's own
                    share of short sequences (padding), batch 32
  bert 4x256 small  the same model on the demo's data, where the vocabulary is the smallest part of the work:
                    shown beside, since the gain depends on it
  bert 8x512        8 layers of 512 on the data of 4x256, batch 16: what larger models come to
"""


@dataclass(frozen=True)
class Data:
    """Prepared text; `options` are those of `benchmarks.bert.prepare`."""

    vocabulary: int
    tokens: int
    batch_size: int
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Size:
    """A model's shape (original BERT, post-LN) and the data that it is trained on."""

    layers: int
    hidden: int
    data: Data

    def constants(self) -> dict[str, Any]:
        """The shape by names that the case and transformers share."""
        return {
            "vocab_size": self.data.vocabulary,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.hidden // 64,
            "intermediate_size": 4 * self.hidden,
            "max_position_embeddings": self.data.tokens,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }


DEMO = Data(vocabulary=2000, tokens=64, batch_size=64)
LONGER = Data(
    vocabulary=8000,
    tokens=128,
    batch_size=32,
    options=(
        "--vocab-size=8000",
        "--seq-length=128",
        "--max-predictions=20",  # 15 % of 128, rounded up
        "--short-seq-prob=0.1",
    ),
)
SIZES = {
    "demo": Size(2, 128, DEMO),
    "4x256": Size(4, 256, LONGER),
    "4x256 small": Size(4, 256, DEMO),
    "8x512": Size(8, 512, replace(LONGER, batch_size=16)),
}


def comparisons(folder: Path, options: Options) -> Iterator[Comparison]:
    """One for each of SIZES that is wanted; data is prepared below `folder`."""
    for name, size in SIZES.items():
        if not options.wants(name):
            continue
        data = size.data
        rows = _batches(folder / f"bert{data.vocabulary}", data, options.batches)
        title = (
            f"{size.layers} layers of {size.hidden}, vocabulary {data.vocabulary}, "
            f"batch {data.batch_size} x {data.tokens}"
        )
        flops = statistics.mean(_flops(size, shard) for shard in rows)
        contenders = _contenders(size, rows, options)
        yield Comparison(name, f"bert, {title}", data.batch_size, flops, contenders)


def _flops(size: Size, rows: Columns) -> float:
    arrays = pretraining_arrays(rows)
    config = configured(BertConfig, size.constants())
    return training_flops(config, arrays.lengths, (arrays.positions > 0).sum(axis=1))


def _batches(folder: Path, data: Data, count: int) -> list[Columns]:
    if not folder.exists() and prepare(["--demo", "--out", str(folder), *data.options]) != 0:
        raise SystemExit("the data could not be prepared")
    files = SampleFiles(training_files(folder), open_shard)
    stream = ShuffledStream(len(files.files), files.rows, seed=1)
    batches = itertools.islice(stream.global_batches(data.batch_size), count)
    return [files.read(samples) for samples in batches]


def _contenders(size: Size, rows: Sequence[Columns], options: Options) -> dict[str, Any]:
    batch_size = size.data.batch_size
    torch.manual_seed(1)
    weights = _theirs(size, "eager").state_dict()

    def make(attention: str) -> TransformersBert:
        model = _theirs(size, attention)
        model.load_state_dict(weights)
        return model

    ours = {**size.constants(), "pre_layer_norm": False, "gelu": "erf"}  # as transformers has it
    engine = our_engine(Case, options.settings(batch_size), ours)
    load_transformers_weights(engine.module, weights)
    theirs = [_their_batch(shard) for shard in rows]
    return {
        OURS: our_step(engine, [_our_batch(shard) for shard in rows]),
        "transformers eager": peer_step(make("eager"), options.settings(batch_size), theirs),
        **peer_steps("transformers sdpa", partial(make, "sdpa"), options, batch_size, theirs),
    }


def _theirs(size: Size, attention: str) -> TransformersBert:
    return TransformersBert(TransformersConfig(**{**size.constants(), "attn_implementation": attention}))


def _our_batch(rows: Columns) -> Batch:
    arrays = pretraining_arrays(rows)
    samples = len(arrays.lengths)
    counts = (float(len(arrays.labels)), float(samples))
    return Batch(make_inputs(arrays, ragged=False), samples, None, None, counts)


def _their_batch(rows: Columns) -> dict[str, torch.Tensor]:
    tensors = {key: torch.as_tensor(array).long() for key, array in rows.items()}
    places, labels = tensors["masked_lm_positions"], tensors["masked_lm_ids"]
    dense = torch.full_like(tensors["input_ids"], -100)
    sample, prediction = torch.nonzero(places > 0, as_tuple=True)
    dense[sample, places[sample, prediction]] = labels[sample, prediction]
    return {
        "input_ids": tensors["input_ids"],
        "attention_mask": tensors["input_mask"],
        "token_type_ids": tensors["segment_ids"],
        "labels": dense,
        "next_sentence_label": tensors["next_sentence_labels"].reshape(-1),
    }
