"""Training data made in place: random tokens in the cases' own file formats, for throughput alone.

Nothing can be learnt from them; what a step costs depends on lengths and counts, and these are the tasks':

- BERT: see benchmarks/bert/made.py.
- GLM: sources of 300 tokens on average (100 to 480), ten candidates (5 to 15) of one to five tokens: ReCoRD's.
- CPM: chunks of 201 tokens, one in ten of them the end of a document, of any length.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.bert.made import Amount, make_bert
from benchmarks.common.arrays import within
from benchmarks.cpm import chunks as cpm_chunks
from benchmarks.glm import shards as glm_shards
from benchmarks.glm.clozes import Clozes

Generator = np.random.Generator


def make_glm(folder: Path, amount: Amount) -> None:
    """HDF5 files of clozes, one for each set."""
    generator = np.random.default_rng(1)
    size = amount.vocabulary
    vocabulary = glm_shards.Vocabulary(size, start=size - 2, end=size - 1)
    sets = {glm_shards.TRAIN_FOLDER: amount.training, glm_shards.EVAL_FOLDER: amount.evaluation}
    for name, questions in sets.items():
        path = _file(folder, glm_shards.shard_name(name, 0, 1))
        glm_shards.write(path, _clozes(generator, questions, amount), vocabulary)


def _clozes(generator: Generator, questions: int, amount: Amount) -> Clozes:
    tokens, words = amount.tokens, amount.vocabulary - 2
    part = tokens / 512  # of the lengths in full size
    sources = np.clip(generator.normal(300 * part, 90 * part, questions), 100 * part, 480 * part).astype(int)
    counts = generator.integers(5, 16, questions)
    lengths = generator.integers(1, 6, counts.sum())
    right = within(counts) == np.repeat(generator.integers(0, counts), counts)
    return Clozes(
        sources=generator.integers(1, words, sources.sum()),
        source_lengths=sources,
        blanks=generator.integers(1, sources),
        candidate_counts=counts,
        candidates=generator.integers(1, words, lengths.sum()),
        candidate_lengths=lengths,
        exact_match=right,
        f1=right.astype(np.float32),
        mentions=np.ones(len(lengths)),
        in_query=np.zeros(len(lengths)),
    )


def make_cpm(folder: Path, amount: Amount) -> None:
    """Arrays of chunks, one for each set; a chunk has a token more than the model takes at once."""
    generator = np.random.default_rng(1)
    sets = {cpm_chunks.TRAINING_FOLDER: amount.training, cpm_chunks.EVALUATION_FOLDER: amount.evaluation}
    for name, samples in sets.items():
        longest = amount.tokens + 1
        ends = generator.random(samples) < 0.1
        lengths = np.where(ends, generator.integers(2, longest, samples), longest)
        ids = generator.integers(1, amount.vocabulary, (samples, longest))
        chunks = np.where(np.arange(longest) < lengths[:, None], ids, cpm_chunks.PADDING)
        np.save(_file(folder, f"{name}/chunks_0_of_1.npy"), chunks.astype(np.int32))


def _file(folder: Path, name: str) -> Path:
    """The path of a file below `folder`, whose own folder is there."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


MAKERS: dict[str, Callable[[Path, Amount], None]] = {"bert": make_bert, "glm": make_glm, "cpm": make_cpm}
