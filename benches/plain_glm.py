"""GLM against the same model written as transformers writes one (glm_peer.py): SDPA, padded batches, and compiled.

Ours computes a question's source once for all of its candidates, which the definition allows: no token of the
source sees an answer. One of the peers does so too, the other has a row for each candidate.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from comparison import OURS, Comparison, Options
from contenders import our_engine, our_step, peer_steps
from glm_peer import GlmForMultiTokenCloze, Question, row_a_candidate, row_a_question

from benchmarks.common.shape import TransformerConfig, configured
from benchmarks.driver.batches import Batch
from benchmarks.driver.sampling import ShuffledStream
from benchmarks.glm.clozes import Clozes, starts
from benchmarks.glm.flops import training_flops
from benchmarks.glm.prepare.command import main as prepare
from benchmarks.glm.pytorch.case import Case
from benchmarks.glm.pytorch.inputs import make_inputs
from benchmarks.glm.shards import TRAIN_FOLDER, ClozeSet, Vocabulary, read_folder

BATCH = 32  # the demo's
SIZES = {"demo": (3, 128, 8), "4x256": (4, 256, 4)}  # layers, hidden size, heads
SIZES_TEXT = f"""\
  glm demo          3 layers of 128 on the demo's data, batch {BATCH} questions
  glm 4x256         4 layers of 256 on the same data
"""


def comparisons(folder: Path, options: Options) -> Iterator[Comparison]:
    """One for each of SIZES that is wanted; data is prepared below `folder`."""
    if not (folder / "glm").exists() and prepare(["--demo", "--out", str(folder / "glm")]) != 0:
        raise SystemExit("the data could not be prepared")
    questions = read_folder(folder / "glm", TRAIN_FOLDER)
    stream = ShuffledStream(1, lambda _: len(questions.clozes), seed=1)
    batches = [
        questions.clozes.take(samples.rows)
        for samples in itertools.islice(stream.global_batches(BATCH), options.batches)
    ]
    candidates = np.mean([len(clozes.candidate_lengths) / len(clozes) for clozes in batches])
    for name, (layers, hidden, heads) in SIZES.items():
        if not options.wants(name):
            continue
        title = (
            f"glm, {layers} layers of {hidden}, vocabulary {questions.vocabulary.size}, batch {BATCH} questions "
            f"with {candidates:.1f} candidates"
        )
        contenders = _contenders((layers, hidden, heads), batches, questions, options)
        config = configured(TransformerConfig, _constants((layers, hidden, heads), questions))
        flops = statistics.mean(training_flops(config, clozes) for clozes in batches)
        yield Comparison(name, title, BATCH, flops, contenders)


def _constants(shape: tuple[int, int, int], questions: ClozeSet) -> dict[str, Any]:
    layers, hidden, heads = shape
    return {
        "vocab_size": questions.vocabulary.size,
        "hidden_size": hidden,
        "num_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": questions.clozes.longest_sequence,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }


def _contenders(
    shape: tuple[int, int, int], batches: Sequence[Clozes], questions: ClozeSet, options: Options
) -> dict[str, Any]:
    constants, vocabulary = _constants(shape, questions), questions.vocabulary
    torch.manual_seed(1)
    engine = our_engine(Case, options.settings(BATCH), constants)
    weights = {name: tensor.clone() for name, tensor in engine.module.state_dict().items()}

    def make() -> GlmForMultiTokenCloze:
        model = GlmForMultiTokenCloze(configured(TransformerConfig, constants))
        model.load_state_dict(weights)
        return model

    peers = {}
    for name, batch_of in (("a row a candidate", row_a_candidate), ("a row a question", row_a_question)):
        theirs = [batch_of(_questions(clozes), vocabulary.start, vocabulary.end) for clozes in batches]
        peers |= peer_steps(name, make, options, BATCH, theirs)
    return {OURS: our_step(engine, [_our_batch(clozes, vocabulary) for clozes in batches]), **peers}


def _our_batch(clozes: Clozes, vocabulary: Vocabulary) -> Batch:
    inputs = make_inputs(clozes, start=vocabulary.start, end=vocabulary.end, ragged=False)
    return Batch(inputs, len(clozes), None, None, (float(len(clozes)),))


def _questions(clozes: Clozes) -> list[Question]:
    sources = np.split(clozes.sources, starts(clozes.source_lengths)[1:])
    candidates = np.split(clozes.candidates, starts(clozes.candidate_lengths)[1:])
    firsts = starts(clozes.candidate_counts)
    return [
        Question(
            source=source.tolist(),
            blank=int(blank),
            candidates=[answer.tolist() for answer in candidates[first : first + count]],
            right=int(clozes.exact_match[first : first + count].argmax()),
        )
        for source, blank, first, count in zip(
            sources, clozes.blanks, firsts, clozes.candidate_counts, strict=True
        )
    ]
