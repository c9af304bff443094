"""What decides the samples. Defaults are those of FlagPerf's CPM case."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.common.preparation.recipe import RecipeParameters, parameter


@dataclass(frozen=True)
class Parameters(RecipeParameters):
    """Everything that decides the samples, besides the text and the vocabulary file."""

    seq_length: int = parameter(200, "inputs of a sample; a chunk has a token more", 1, 65_535)
    eval_every: int = parameter(
        200, "hold every n-th document out for evaluation; unused with --valid", 2, 1_000_000_000
    )
    # Each becomes a file of chunks.
    parts_per_file: int = parameter(0, "parts a text file is cut into; 0: one for each 32 MiB", 0, 4096)
    vocab_size: int = parameter(
        30_000,
        "train a SentencePiece vocabulary of this size on the training text; unused with --vocab",
        100,
        1_000_000,
    )


DEMO = Parameters(seq_length=64, eval_every=10, parts_per_file=4, vocab_size=8_000)
"""For the embedded verse: short documents, small enough for a CPU."""
