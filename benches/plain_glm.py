"""GLM against the plain form of the tests, which has every candidate as a padded sequence of its own.

Ours computes a question's source once for all of its candidates, which the definition allows: no token of the
source sees an answer. Logits are made for the answers' tokens only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from comparison import OURS, Comparison, Options, our_engine, our_step, plain_step

from benchmarks.driver.batches import Batch
from benchmarks.driver.sampling import ShuffledStream
from benchmarks.glm.clozes import Clozes, starts
from benchmarks.glm.prepare.command import main as prepare
from benchmarks.glm.pytorch.case import Case
from benchmarks.glm.pytorch.inputs import make_inputs
from benchmarks.glm.shards import TRAIN_FOLDER, ClozeSet, Vocabulary, read_folder
from tests.benchmarks.glm.plain import PlainBatch, PlainGlm, Question, plain_batch

BATCH = 32  # the demo's
SIZES = {"demo": (3, 128, 8), "4x256": (4, 256, 4)}  # layers, hidden size, heads
SIZES_TEXT = f"""\
  glm demo          3 layers of 128 on the demo's data, batch {BATCH} questions
  glm 4x256         4 layers of 256 on the same data
"""


def comparisons(folder: Path, options: Options) -> Iterator[Comparison]:
    """One for each of SIZES; data is prepared below `folder`."""
    if prepare(["--demo", "--out", str(folder / "glm")]) != 0:
        raise SystemExit("the data could not be prepared")
    questions = read_folder(folder / "glm", TRAIN_FOLDER)
    stream = ShuffledStream(1, lambda _: len(questions.clozes), seed=1)
    batches = [
        questions.clozes.take(samples.rows)
        for samples in itertools.islice(stream.global_batches(BATCH), options.batches)
    ]
    candidates = np.mean([len(clozes.candidate_lengths) / len(clozes) for clozes in batches])
    for name, (layers, hidden, heads) in SIZES.items():
        title = (
            f"glm, {layers} layers of {hidden}, vocabulary {questions.vocabulary.size}, batch {BATCH} questions "
            f"with {candidates:.1f} candidates"
        )
        contenders = _contenders((layers, hidden, heads), batches, questions, options)
        yield Comparison(name, title, BATCH, contenders)


def _contenders(
    shape: tuple[int, int, int], batches: Sequence[Clozes], questions: ClozeSet, options: Options
) -> dict[str, Any]:
    layers, hidden, heads = shape
    settings = options.settings(BATCH)
    constants = {
        "vocab_size": questions.vocabulary.size,
        "hidden_size": hidden,
        "num_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": questions.clozes.longest_sequence,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }
    torch.manual_seed(1)
    engine = our_engine(Case, settings, constants)
    plain = PlainGlm(engine.module.state_dict(), layers, heads)
    vocabulary = questions.vocabulary
    theirs = [_plain_batch(clozes, vocabulary) for clozes in batches]
    return {
        OURS: our_step(engine, [_our_batch(clozes, vocabulary) for clozes in batches]),
        "plain": plain_step(plain, settings, theirs, plain.loss),
    }


def _our_batch(clozes: Clozes, vocabulary: Vocabulary) -> Batch:
    inputs = make_inputs(clozes, start=vocabulary.start, end=vocabulary.end, ragged=False)
    return Batch(inputs, len(clozes), None, None, (float(len(clozes)),))


def _plain_batch(clozes: Clozes, vocabulary: Vocabulary) -> PlainBatch:
    sources = np.split(clozes.sources, starts(clozes.source_lengths)[1:])
    candidates = np.split(clozes.candidates, starts(clozes.candidate_lengths)[1:])
    firsts = starts(clozes.candidate_counts)
    questions = [
        Question(
            source=source.tolist(),
            candidates=[answer.tolist() for answer in candidates[first : first + count]],
            right=int(clozes.exact_match[first : first + count].argmax()),
        )
        for source, first, count in zip(sources, firsts, clozes.candidate_counts, strict=True)
    ]
    mask = int(clozes.sources[starts(clozes.source_lengths)[0] + clozes.blanks[0]])
    return plain_batch(questions, start=vocabulary.start, end=vocabulary.end, mask=mask)
