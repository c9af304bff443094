"""CPM training throughput against Hugging Face transformers' GPT-2, in one run on one machine.

    python benches/cpm_vs_plain.py

Both train the same model (no dropout) from the same weights on the same batches of the demo's prepared verse, with
the padding that it has, in bf16 autocast, with fused AdamW and gradient clipping, one process, all cores. A step is
forward, loss, backward, clipping, optimizer. Making batches is part of neither: both get ready tensors, each in the
form in which it takes them.

  ours          the case's model, loss and step as the driver runs them: no padding outside attention, logits made
                and used block by block
  transformers  GPT2LMHeadModel with its own loss, with each of its attention implementations `eager` and `sdpa`;
                the faster one counts. It gets no attention mask: padding comes after all that is looked at

The contenders take steps in turn; the ratio is that of the medians. The first losses are compared before: a figure
for different mathematics would mean nothing. `--full` takes only samples without padding: what is left of the
ratio then is not the padding's.
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

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.cpm.chunks import TRAINING_FOLDER, Array, ChunkFiles, chunk_arrays, chunk_files
from benchmarks.cpm.prepare.cli import main as prepare
from benchmarks.cpm.pytorch.case import Case
from benchmarks.cpm.pytorch.inputs import make_inputs
from benchmarks.cpm.pytorch.model import CpmModel
from benchmarks.cpm.pytorch.weights import from_transformers, load_weights, transformers_name
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

VOCABULARY, LENGTH, RATE = 8000, 64, 1e-3
SIZES = {"demo": (2, 128, 2), "4x256": (4, 256, 4)}  # layers, hidden size, heads
WARM_UP = 2  # steps of each contender that are not measured
Step = Callable[[int], float]  # trains on one batch, by its number; returns the loss


@dataclass(frozen=True)
class Options:
    """How the comparison is made. `full`: only samples without padding."""

    batch_size: int = 64
    batches: int = 16
    steps: int = 30
    threads: int = 0
    precision: str = "bf16"
    full: bool = False


def compare(options: Options) -> dict[str, float]:
    """Samples/s of the case over those of the faster transformers, for each of SIZES. Prints a table of each."""
    torch.set_num_threads(options.threads or usable_cores())
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        if prepare(["--demo", "--out", str(data_dir)]) != 0:
            raise SystemExit(1)
        batches = _batches(data_dir, options)
    return {name: _compare(name, batches, options) for name in SIZES}


def main() -> int:
    ratios = compare(_options())
    print(json.dumps({name: round(ratio, 3) for name, ratio in ratios.items()}))
    return 0


def _options() -> Options:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch-size", type=int, default=64, help="samples a step (64: the demo's)")
    parser.add_argument("--batches", type=int, default=16, help="different batches, trained on in turn")
    parser.add_argument("--steps", type=int, default=30, help="steps measured of each contender")
    parser.add_argument("--threads", type=int, default=0, help="of each contender (0: all cores)")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--full", action="store_true", help="only samples without padding")
    return Options(**vars(parser.parse_args()))


def _batches(data_dir: Path, options: Options) -> list[Array]:
    """Chunks (batch size, 65) for each step."""
    files = ChunkFiles(chunk_files(data_dir / TRAINING_FOLDER))
    if options.full:
        chunks = np.concatenate([np.load(path) for path in files.files])
        full = chunks[chunks[:, -1] >= 0]
        return [full[np.arange(n, n + options.batch_size) % len(full)] for n in range(options.batches)]
    stream = ShuffledStream(len(files.files), files.rows, seed=1)
    batches = itertools.islice(stream.global_batches(options.batch_size), options.batches)
    return [files.read(samples) for samples in batches]


def _compare(name: str, batches: Sequence[Array], options: Options) -> float:
    contenders = _contenders(*SIZES[name], batches, options)
    losses = {contender: step(0) for contender, step in contenders.items()}
    if max(losses.values()) - min(losses.values()) > 0.02:
        raise SystemExit(f"the first losses differ: {losses}")
    seconds = _measure(contenders, options.steps)
    _print_table(name, batches, options, seconds, losses)
    ours, *theirs = (statistics.median(taken) for taken in seconds.values())
    return min(theirs) / ours


def _contenders(
    layers: int, hidden: int, heads: int, batches: Sequence[Array], options: Options
) -> dict[str, Step]:
    settings = DriverSettings(
        train_batch_size=options.batch_size,
        max_steps=1,
        precision=options.precision,
        learning_rate=RATE,
        weight_decay_rate=0.05,
    )
    torch.manual_seed(1)
    shape: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "n_embd": hidden,
        "n_layer": layers,
        "n_head": heads,
        "n_positions": LENGTH,
    }
    no_dropout: dict[str, Any] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    models = {
        attention: GPT2LMHeadModel(GPT2Config(**{**shape, **no_dropout, "attn_implementation": attention}))
        for attention in ("eager", "sdpa")
    }
    weights = models["eager"].state_dict()
    models["sdpa"].load_state_dict(weights)
    ours = _our_step((layers, hidden, heads), settings, weights, batches)
    theirs = {f"transformers {kind}": _their_step(model, settings, batches) for kind, model in models.items()}
    return {"ours": ours, **theirs}


def _our_step(
    shape: tuple[int, int, int], settings: DriverSettings, weights: dict[str, Any], batches: Sequence[Array]
) -> Step:
    layers, hidden, heads = shape
    device = Device("cpu", 0)
    values = {
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "num_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": LENGTH,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }
    config = Configuration(settings, values, {}, ())
    group = ProcessGroup(RankEnvironment(), "gloo", device.torch, 60)
    case = Case(Context(Path(), settings, values, device.torch))
    engine = PytorchEngine(config, case, group, device, Hooks())
    assert isinstance(engine.module, CpmModel)
    load_weights(engine.module, from_transformers(weights), transformers_name, where="transformers")
    ready = [_our_batch(chunks) for chunks in batches]

    def step(number: int) -> float:
        engine.train_step([ready[number % len(ready)]], RATE)
        return engine.loss()

    return step


def _our_batch(chunks: Array) -> Batch:
    arrays = chunk_arrays(chunks)
    return Batch(make_inputs(arrays, ragged=False), len(chunks), None, None, (float(len(arrays.labels)),))


def _their_step(model: GPT2LMHeadModel, settings: DriverSettings, batches: Sequence[Array]) -> Step:
    model.train()
    optimizer = make_optimizer(settings, model)
    ready = [_their_batch(chunks) for chunks in batches]
    enabled = settings.precision == "bf16"

    def step(number: int) -> float:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = model(**ready[number % len(ready)]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def _their_batch(chunks: Array) -> dict[str, torch.Tensor]:
    """The 64 inputs and the 64 labels that follow them, as FlagPerf divides a chunk of 65."""
    tokens = torch.from_numpy(chunks).long()
    labels = torch.where(tokens[:, 1:] < 0, -100, tokens[:, 1:])
    return {"input_ids": tokens[:, :-1].clamp_min(0), "labels": labels, "shift_labels": labels}


def _measure(contenders: dict[str, Step], steps: int) -> dict[str, list[float]]:
    """Seconds of each contender's steps, taken in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(steps + WARM_UP):
        for name, step in contenders.items():
            begin = time.perf_counter()
            step(number)
            seconds[name].append(time.perf_counter() - begin)
    return {name: taken[WARM_UP:] for name, taken in seconds.items()}


def _print_table(
    size: str,
    batches: Sequence[Array],
    options: Options,
    seconds: dict[str, list[float]],
    losses: dict[str, float],
) -> None:
    filled = np.mean([(chunks[:, 1:] >= 0).mean() for chunks in batches])
    print(
        f"\n{size}: batch {options.batch_size} x {LENGTH}, {filled:.0%} filled, {options.precision}, "
        f"{torch.get_num_threads()} threads"
    )
    print(f"{'':24}{'samples/s':>12}{'ms/step':>10}{'least':>10}{'first loss':>12}")
    for name, taken in seconds.items():
        middle = statistics.median(taken)
        rate = options.batch_size / middle
        print(f"{name:24}{rate:12.1f}{middle * 1e3:10.2f}{min(taken) * 1e3:10.2f}{losses[name]:12.4f}")


if __name__ == "__main__":
    sys.exit(main())
