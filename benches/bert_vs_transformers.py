"""BERT training throughput against Hugging Face transformers, in one run on one machine.

    python benches/bert_vs_transformers.py

Both train the same model (original BERT, post-LN, no dropout) from the same weights on the same batches of
prepared text with the padding that it has, in bf16 autocast, with fused AdamW and gradient clipping, in one
process. A step is forward, loss, backward, clipping, optimizer. Making batches is part of neither: both get
ready tensors, each in the form in which it takes them. Both have the number of threads that is better for
transformers, one or all cores: on a machine that does other work too, threads wait for each other.

  ours          the case's model, loss and step as the driver runs them
  transformers  BertForPreTraining with each of its attention implementations `eager` and `sdpa`; the
                faster one counts

Sizes:

  demo          2 layers of 128 on the demo's data: 64 tokens, vocabulary 2000, batch 64
  4x256         4 layers of 256 on the same text prepared for it: 128 tokens, vocabulary 8000, BERT's own
                share of short sequences (padding), batch 32
  4x256 small   the same model on the demo's data, where the vocabulary is the smallest part of the work:
                shown beside, since the gain depends on it

The contenders take steps in turn; the ratio is that of the medians. The first losses are compared before:
a figure for different mathematics would mean nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from transformers import BertConfig as TransformersConfig
from transformers import BertForPreTraining as TransformersBert

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.prepare.cli import main as prepare
from benchmarks.bert.pytorch.case import Case
from benchmarks.bert.pytorch.inputs import make_inputs
from benchmarks.bert.pytorch.weights import load_transformers_weights
from benchmarks.bert.shards import Shard, ShardFiles, training_files
from benchmarks.driver.batches import Batch
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.pytorch.hooks import Hooks
from benchmarks.driver.pytorch.optimizers import make_optimizer
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.ranks import RankEnvironment, usable_cores
from benchmarks.driver.sampling import ShuffledStream
from benchmarks.driver.settings import DriverSettings

RATE = 1e-3
REPORTED = ("demo", "4x256")
Step = Callable[[int], float]  # trains on one batch, by its number; returns the loss


@dataclass(frozen=True)
class Data:
    """Prepared text; `options` are those of `benchmarks.bert.prepare`."""

    vocabulary: int
    tokens: int
    batch_size: int
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Size:
    """A model's shape and the data that it is trained on."""

    layers: int
    hidden: int
    data: Data


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


@dataclass(frozen=True)
class Contender:
    """Something that trains."""

    name: str
    step: Step


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            data: _batches(Path(folder) / f"data{number}", data, options.batches)
            for number, data in enumerate((DEMO, LONGER))
        }
    ratios = {name: _compare(name, size, rows[size.data], options) for name, size in SIZES.items()}
    print(json.dumps({f"ratio_{name}": round(ratios[name], 3) for name in REPORTED}))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=16, help="different batches, trained on in turn")
    parser.add_argument("--steps", type=int, default=30, help="steps measured of each contender")
    parser.add_argument("--threads", type=int, help="of each contender (what is best for transformers)")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    return parser.parse_args()


def _batches(folder: Path, data: Data, count: int) -> list[Shard]:
    if prepare(["--demo", "--out", str(folder), *data.options]) != 0:
        raise SystemExit("the data could not be prepared")
    files = ShardFiles(training_files(folder))
    stream = ShuffledStream(len(files.files), files.rows, seed=1)
    batches = itertools.islice(stream.global_batches(data.batch_size), count)
    return [files.read(samples) for samples in batches]


def _compare(name: str, size: Size, rows: Sequence[Shard], options: argparse.Namespace) -> float:
    contenders = _contenders(size, rows, options)
    losses = {contender.name: contender.step(0) for contender in contenders}
    if max(losses.values()) - min(losses.values()) > 0.02:
        raise SystemExit(f"the first losses differ: {losses}")
    torch.set_num_threads(options.threads or _best_threads(contenders))
    seconds = _measure(contenders, options.steps)
    ours, *theirs = (statistics.median(seconds[contender.name]) for contender in contenders)
    ratio = min(theirs) / ours
    _print_table(name, size, options, seconds, losses)
    print(f"ratio {ratio:.2f}")
    return ratio


def _contenders(size: Size, rows: Sequence[Shard], options: argparse.Namespace) -> list[Contender]:
    shape: dict[str, Any] = {
        "vocab_size": size.data.vocabulary,
        "hidden_size": size.hidden,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.hidden // 64,
        "intermediate_size": 4 * size.hidden,
        "max_position_embeddings": size.data.tokens,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    settings = DriverSettings(
        train_batch_size=size.data.batch_size,
        max_steps=1,
        precision=options.precision,
        learning_rate=RATE,
        weight_decay_rate=0.01,
    )
    torch.manual_seed(1)
    models = {
        attention: TransformersBert(TransformersConfig(**{**shape, "attn_implementation": attention}))
        for attention in ("eager", "sdpa")
    }
    weights = models["eager"].state_dict()
    models["sdpa"].load_state_dict(weights)
    return [
        Contender("ours", _our_step(shape, settings, weights, rows)),
        *(
            Contender(f"transformers {attention}", _their_step(model, settings, rows))
            for attention, model in models.items()
        ),
    ]


def _our_step(
    shape: dict[str, Any], settings: DriverSettings, weights: dict[str, torch.Tensor], rows: Sequence[Shard]
) -> Step:
    device = Device("cpu", 0)
    config = Configuration(settings, {**shape, "pre_layer_norm": False}, {}, ())
    group = ProcessGroup(RankEnvironment(), "gloo", device.torch, 60)
    case = Case(Context(Path(), settings, config.case, device.torch))
    engine = PytorchEngine(config, case, group, device, Hooks())
    load_transformers_weights(engine.module, weights)  # type: ignore[arg-type]
    batches = [_our_batch(shard) for shard in rows]

    def step(number: int) -> float:
        engine.train_step([batches[number % len(batches)]], RATE)
        return engine.loss()

    return step


def _our_batch(rows: Shard) -> Batch:
    arrays = pretraining_arrays(rows)
    samples = len(arrays.lengths)
    counts = (float(len(arrays.labels)), float(samples))
    return Batch(make_inputs(arrays, ragged=False), samples, None, None, counts)


def _their_step(model: Any, settings: DriverSettings, rows: Sequence[Shard]) -> Step:
    model.train()
    optimizer = make_optimizer(settings, model)
    batches = [_their_batch(shard) for shard in rows]
    enabled = settings.precision == "bf16"

    def step(number: int) -> float:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = model(**batches[number % len(batches)]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def _their_batch(rows: Shard) -> dict[str, torch.Tensor]:
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


def _best_threads(contenders: Sequence[Contender]) -> int:
    """One thread or all cores, whichever is better for transformers just now."""
    times: dict[int, float] = {}
    for threads in {1, usable_cores()}:
        torch.set_num_threads(threads)
        tried = _measure(contenders[1:], steps=3)
        times[threads] = min(statistics.median(taken) for taken in tried.values())
    return min(times, key=lambda threads: times[threads])


def _measure(contenders: Sequence[Contender], steps: int) -> dict[str, list[float]]:
    """Seconds of each contender's steps, taken in turn; two steps each before, to warm up."""
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(steps + 2):
        for contender in contenders:
            begin = time.perf_counter()
            contender.step(number)
            seconds[contender.name].append(time.perf_counter() - begin)
    return {name: taken[2:] for name, taken in seconds.items()}


def _print_table(
    name: str,
    size: Size,
    options: argparse.Namespace,
    seconds: dict[str, list[float]],
    losses: dict[str, float],
) -> None:
    data = size.data
    print(
        f"\n{name}: {size.layers} layers of {size.hidden}, vocabulary {data.vocabulary}, "
        f"batch {data.batch_size} x {data.tokens}, {options.precision}, {torch.get_num_threads()} threads"
    )
    print(f"{'':24}{'samples/s':>12}{'ms/step':>10}{'least':>10}{'first loss':>12}")
    for contender, taken in seconds.items():
        middle = statistics.median(taken)
        rate = data.batch_size / middle
        print(
            f"{contender:24}{rate:12.1f}{middle * 1e3:10.2f}{min(taken) * 1e3:10.2f}{losses[contender]:12.4f}"
        )


if __name__ == "__main__":
    sys.exit(main())
