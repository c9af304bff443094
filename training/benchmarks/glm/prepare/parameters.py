"""What decides the questions. Defaults are those of FlagPerf's GLM case."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.common.preparation.recipe import RecipeParameters, parameter


@dataclass(frozen=True)
class Parameters(RecipeParameters):
    """Everything that decides the questions, besides ReCoRD and the vocabulary file."""

    # The passage is cut to that.
    seq_length: int = parameter(512, "most tokens of a source and a candidate together", 16, 65_535)
    max_candidates: int = parameter(10, "candidates of a question in training; evaluation has all", 2, 1000)
    seed: int = parameter(42, "draws the wrong candidates that are kept", 0, 2**32 - 1)
    parts: int = parameter(16, "training files; a quarter of that for evaluation", 1, 4096)
    vocab_size: int = parameter(
        30_522,
        "train a WordPiece vocabulary of this size on the training text; unused with --vocab",
        100,
        1_000_000,
    )


DEMO = Parameters(seq_length=128, max_candidates=10, parts=4, vocab_size=2_500)
"""For the embedded text: short passages, small enough for a CPU."""
