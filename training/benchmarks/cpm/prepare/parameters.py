"""What decides the samples. Defaults are those of FlagPerf's CPM case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from utils.errors import Problem, ProblemsError
from utils.preparation.recipe import out_of_range


@dataclass(frozen=True)
class Parameters:
    """Everything that decides the samples, besides the text and the vocabulary file.

    Equal parameters and equal input give equal files, whatever the number of workers.
    """

    seq_length: int = 200  # inputs of a sample; a chunk has a token more
    eval_every: int = 200  # every n-th document is held out; unused where --valid is given
    parts_per_file: int = 0  # 0: one for each 32 MiB of the file; each becomes a file of chunks
    vocab_size: int = 30_000  # unused where --vocab is given

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ProblemsError(problems)

    def _problems(self) -> Iterator[Problem]:
        ranges = {
            "seq_length": (1, 65_535),
            "eval_every": (2, 1_000_000_000),
            "parts_per_file": (0, 4096),
            "vocab_size": (100, 1_000_000),
        }
        return out_of_range(self, ranges)


DEMO = Parameters(seq_length=64, eval_every=10, parts_per_file=4, vocab_size=8_000)
"""For the embedded verse: short documents, small enough for a CPU."""
