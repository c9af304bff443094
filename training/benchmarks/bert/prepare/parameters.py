"""What decides the samples. Defaults are those of MLPerf's Wikipedia set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from utils.errors import Problem, ProblemsError
from utils.preparation.recipe import out_of_range

DEFAULT_VOCAB_SIZE = 30_522  # that of bert-large-uncased


@dataclass(frozen=True)
class Parameters:
    """Everything that decides the samples, besides the text and the vocabulary file.

    Equal parameters and equal input give equal files, whatever the number of workers.
    """

    seq_length: int = 512
    max_predictions: int = 76  # 15 % of 512, rounded
    mask_prob: float = 0.15
    short_seq_prob: float = 0.1  # share of documents cut to a random shorter length (BERT paper, A.2)
    seed: int = 12345
    dup: int = 10  # passes over the text, each with other pairs and masks
    eval_samples: int = 10_000
    eval_every: int = 200  # every n-th document is held out; unused where --eval-text is given
    shards: int = 2048
    parts_per_file: int = 0  # 0: one for each 64 MiB of the file; the next sentence is drawn from a part
    vocab_size: int = DEFAULT_VOCAB_SIZE  # unused where --vocab is given

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ProblemsError(problems)

    def _problems(self) -> Iterator[Problem]:
        ranges = {
            "seq_length": (8, 65_535),
            "max_predictions": (1, self.seq_length),
            "mask_prob": (0.001, 0.999),
            "short_seq_prob": (0.0, 1.0),
            "dup": (1, 1000),
            "eval_samples": (1, 10_000_000),
            "eval_every": (2, 1_000_000_000),
            "shards": (1, 100_000),
            "parts_per_file": (0, 4096),
            "vocab_size": (100, 1_000_000),
        }
        return out_of_range(self, ranges)


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
