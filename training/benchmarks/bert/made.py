"""Samples made in place: random tokens in the form of the task's own files, of which nothing can be learnt.

    python3 -m benchmarks.bert.made --out DIR --training 64 --evaluation 8 --tokens 64 --vocabulary 512

What a step costs depends on lengths and counts, and these are the Wikipedia set's: a fifth of the samples fill the
sequence, the others have any length up to three quarters of it, so that half of the places are padding, as at 512
(Krell et al. 2021, arXiv:2107.02027); 15 % of the tokens are predicted, at most 76 of 512.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.bert import shards
from benchmarks.common.arrays import Array

SHARDS = 2


@dataclass(frozen=True)
class Amount:
    """How much is made: samples of the training and of the evaluation set, tokens of a sequence, token ids."""

    training: int
    evaluation: int
    tokens: int
    vocabulary: int


def make_bert(folder: Path, amount: Amount) -> None:
    """HDF5 shards as MLPerf's Wikipedia set has them."""
    generator = np.random.default_rng(1)
    names = [shards.shard_name(number, SHARDS) for number in range(SHARDS)]
    sets = dict.fromkeys(names, amount.training // SHARDS) | {shards.EVALUATION_FILE: amount.evaluation}
    for name, samples in sets.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shards.write(path, _arrays(generator, samples, amount))


def _arrays(generator: np.random.Generator, samples: int, amount: Amount) -> dict[str, Array]:
    tokens, most = amount.tokens, -(-amount.tokens * 76 // 512)
    lengths = np.where(
        generator.random(samples) < 0.2, tokens, generator.integers(8, tokens * 3 // 4, samples)
    )
    places = np.arange(tokens)
    is_token = places < lengths[:, None]
    ids = np.where(is_token, generator.integers(1, amount.vocabulary, (samples, tokens)), 0)
    predictions = np.clip(np.round(lengths * 0.15), 1, most).astype(int)
    # the first places of a random order of those that hold a token; [CLS] is never predicted
    order = np.argsort(np.where(is_token & (places > 0), generator.random(ids.shape), 2.0), axis=1)[:, :most]
    is_label = np.arange(most) < predictions[:, None]
    positions = np.where(is_label, order, 0)
    return {
        "input_ids": ids,
        "input_mask": is_token,
        "segment_ids": is_token & (places >= lengths[:, None] // 2),
        "masked_lm_positions": positions,
        "masked_lm_ids": np.where(is_label, np.take_along_axis(ids, positions, axis=1), 0),
        "next_sentence_labels": generator.integers(0, 2, samples),
    }


def main(words: Sequence[str]) -> int:
    """Make the samples that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.bert.made")
    parser.add_argument("--out", type=Path, required=True)
    for name in ("training", "evaluation", "tokens", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = vars(parser.parse_args(words))
    make_bert(arguments.pop("out"), Amount(**arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
