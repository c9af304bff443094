"""What decides the samples. Defaults are those of MLPerf's Wikipedia set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.common.preparation.recipe import RecipeParameters, parameter
from utils.errors import Problem


@dataclass(frozen=True)
class Parameters(RecipeParameters):
    """Everything that decides the samples, besides the text and the vocabulary file."""

    seq_length: int = parameter(512, "tokens in a sample", 8, 65_535)
    max_predictions: int = parameter(76, "most masked tokens in a sample", 1, 65_535)  # 15 % of 512, rounded
    mask_prob: float = parameter(0.15, "share of the tokens that are masked", 0.001, 0.999)
    # BERT paper, A.2
    short_seq_prob: float = parameter(0.1, "share of the documents cut to a random shorter length", 0.0, 1.0)
    seed: int = parameter(12345, "of all random draws", float("-inf"), float("inf"))
    dup: int = parameter(10, "passes over the text, each with other pairs and masks", 1, 1000)
    eval_samples: int = parameter(10_000, "samples in the evaluation set", 1, 10_000_000)
    eval_every: int = parameter(
        200, "hold every n-th document out for evaluation; unused with --eval-text", 2, 1_000_000_000
    )
    shards: int = parameter(2048, "training files", 1, 100_000)
    # The next sentence is drawn from a part.
    parts_per_file: int = parameter(0, "parts a text file is cut into; 0: one for each 64 MiB", 0, 4096)
    vocab_size: int = parameter(
        30_522,  # that of bert-large-uncased
        "train a WordPiece vocabulary of this size on the training text; unused with --vocab",
        100,
        1_000_000,
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.max_predictions > self.seq_length:
            yield self.out_of_range("max_predictions", 1, self.seq_length)


DEMO = Parameters(
    seq_length=64,
    max_predictions=10,  # 15 % of 64, rounded
    short_seq_prob=0.0,  # a short sequence is mostly padding, and the demo is never fine-tuned
    dup=4,
    eval_samples=1024,
    eval_every=16,
    shards=8,
    parts_per_file=4,
    vocab_size=2000,
)
"""For the embedded corpus: small enough for a CPU, packed nearly full."""
