"""BERT against transformers' BertForPreTraining with each of its attention implementations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from comparison import OURS, Comparison, Options, our_engine, our_step, plain_step
from transformers import BertConfig as TransformersConfig
from transformers import BertForPreTraining as TransformersBert

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.prepare.command import main as prepare
from benchmarks.bert.pytorch.case import Case
from benchmarks.bert.pytorch.inputs import make_inputs
from benchmarks.bert.pytorch.weights import load_transformers_weights
from benchmarks.bert.shards import open_shard, training_files
from benchmarks.common.sample_files import Columns, SampleFiles
from benchmarks.driver.batches import Batch
from benchmarks.driver.sampling import ShuffledStream

SIZES_TEXT = """\
  bert demo         2 layers of 128 on the demo's data: 64 tokens, vocabulary 2000, batch 64
  bert 4x256        4 layers of 256 on the same text prepared for it: 128 tokens, vocabulary 8000, BERT's own
                    share of short sequences (padding), batch 32
  bert 4x256 small  the same model on the demo's data, where the vocabulary is the smallest part of the work:
                    shown beside, since the gain depends on it
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
SIZES = {"demo": Size(2, 128, DEMO), "4x256": Size(4, 256, LONGER), "4x256 small": Size(4, 256, DEMO)}


def comparisons(folder: Path, options: Options) -> Iterator[Comparison]:
    """One for each of SIZES; data is prepared below `folder`."""
    rows = {
        data: _batches(folder / f"bert{number}", data, options.batches)
        for number, data in enumerate((DEMO, LONGER))
    }
    for name, size in SIZES.items():
        data = size.data
        title = (
            f"{size.layers} layers of {size.hidden}, vocabulary {data.vocabulary}, "
            f"batch {data.batch_size} x {data.tokens}"
        )
        yield Comparison(name, f"bert, {title}", data.batch_size, _contenders(size, rows[data], options))


def _batches(folder: Path, data: Data, count: int) -> list[Columns]:
    if prepare(["--demo", "--out", str(folder), *data.options]) != 0:
        raise SystemExit("the data could not be prepared")
    files = SampleFiles(training_files(folder), open_shard)
    stream = ShuffledStream(len(files.files), files.rows, seed=1)
    batches = itertools.islice(stream.global_batches(data.batch_size), count)
    return [files.read(samples) for samples in batches]


def _contenders(size: Size, rows: Sequence[Columns], options: Options) -> dict[str, Any]:
    settings = options.settings(size.data.batch_size)
    torch.manual_seed(1)
    models = {
        attention: TransformersBert(
            TransformersConfig(**{**size.constants(), "attn_implementation": attention})
        )
        for attention in ("eager", "sdpa")
    }
    weights = models["eager"].state_dict()
    models["sdpa"].load_state_dict(weights)
    engine = our_engine(Case, settings, {**size.constants(), "pre_layer_norm": False, "gelu": "erf"})
    load_transformers_weights(engine.module, weights)  # type: ignore[arg-type]
    theirs = [_their_batch(shard) for shard in rows]
    return {
        OURS: our_step(engine, [_our_batch(shard) for shard in rows]),
        **{
            f"transformers {kind}": plain_step(model, settings, theirs, _loss_of(model))
            for kind, model in models.items()
        },
    }


def _our_batch(rows: Columns) -> Batch:
    arrays = pretraining_arrays(rows)
    samples = len(arrays.lengths)
    counts = (float(len(arrays.labels)), float(samples))
    return Batch(make_inputs(arrays, ragged=False), samples, None, None, counts)


def _loss_of(model: Any) -> Any:
    return lambda batch: model(**batch).loss


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
