"""What decides the questions. Defaults are those of FlagPerf's GLM case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from utils.errors import Problem, ProblemsError
from utils.preparation.recipe import out_of_range


@dataclass(frozen=True)
class Parameters:
    """Everything that decides the questions, besides ReCoRD and the vocabulary file.

    Equal parameters and equal input give equal files, whatever the number of workers.
    """

    seq_length: int = 512  # most tokens of a source and a candidate together; the passage is cut to that
    max_candidates: int = 10  # of a question in training; evaluation has all
    seed: int = 42  # draws the wrong candidates that are kept
    parts: int = 16  # training files; the evaluation set is cut into a quarter of that
    vocab_size: int = 30_522  # unused where --vocab is given

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ProblemsError(problems)

    def _problems(self) -> Iterator[Problem]:
        ranges = {
            "seq_length": (16, 65_535),
            "max_candidates": (2, 1000),
            "seed": (0, 2**32 - 1),
            "parts": (1, 4096),
            "vocab_size": (100, 1_000_000),
        }
        return out_of_range(self, ranges)


DEMO = Parameters(seq_length=128, max_candidates=10, parts=4, vocab_size=2_500)
"""For the embedded text: short passages, small enough for a CPU."""
