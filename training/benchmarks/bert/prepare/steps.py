"""The steps of a preparation. Each reads what earlier steps left and depends on nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bert import shards
from benchmarks.bert.prepare import instances, samples
from benchmarks.bert.prepare.job import Job
from benchmarks.bert.prepare.parameters import Parameters
from benchmarks.common import wordpiece
from benchmarks.common.preparation import text
from benchmarks.common.preparation.partial import Done, Facts
from utils.errors import FlagPerfError

VOCABULARY_TEXT = 512 << 20  # characters; more text changes a vocabulary of 30,000 little


@dataclass(frozen=True)
class SplitFile:
    """Deal the documents of one text file to its parts, and every n-th to the held-out text."""

    job: Job

    def __call__(self, file: int) -> Done:
        outputs = [*map(self.job.part_text, self.job.inputs.parts_of(file)), self.job.held_out_text(file)]
        return self.job.partial.step(f"split_{file:05d}", outputs, lambda paths: self._make(file, paths))

    def _make(self, file: int, paths: Sequence[Path]) -> Facts:
        source = self.job.inputs.texts[file]
        documents = ("\n".join(document) + "\n\n" for document in text.documents(source))
        every = 0 if self.job.inputs.eval_texts else self.job.parameters.eval_every
        *parts, held_out = paths
        trained, evaluated = text.deal(documents, parts, held_out, every)
        if not trained:
            raise FlagPerfError("holds no text to train on", where=str(source), remedy="leave the file out")
        return {"train_documents": trained, "eval_documents": evaluated}


def make_vocabulary(job: Job) -> Done:
    """`vocab.txt`: a copy of the given one, or trained on the training text (never on the held-out)."""

    def make(paths: Sequence[Path]) -> Facts:
        chosen = wordpiece.read(job.inputs.vocab) if job.inputs.vocab else _trained(job)
        paths[0].write_text(wordpiece.as_text(chosen), encoding="utf-8")
        return {"vocab_size": chosen.size}

    return job.partial.step("vocabulary", [job.vocab_file], make)


def _trained(job: Job) -> wordpiece.Vocabulary:
    parts = [job.part_text(part) for part in job.inputs.parts]
    sentences = text.beginnings(parts, VOCABULARY_TEXT, text.sentences)
    return wordpiece.train(list(sentences), job.parameters.vocab_size)


def make_evaluation_set(job: Job) -> Done:
    """The evaluation file: as many of the held-out text's samples as asked, evenly picked (MLPerf)."""

    def make(paths: Sequence[Path]) -> Facts:
        held_out = job.inputs.eval_texts or [job.held_out_text(file) for file in range(len(job.inputs.texts))]
        vocabulary = wordpiece.read(job.vocab_file)
        drawn = _draw(held_out, job.parameters, vocabulary)
        picked = drawn.take(_evenly(job.parameters.eval_samples, drawn.count))
        shards.write(paths[0], picked.padded(job.parameters.seq_length, job.parameters.max_predictions))
        return {"samples": picked.count, "tokens": picked.tokens, **baselines(picked, vocabulary)}

    return job.partial.step("evaluation_set", [job.eval_file], make)


def _evenly(wanted: int, available: int) -> list[int]:
    if available < wanted:
        raise FlagPerfError(
            f"the held-out text gives {available} samples, {wanted} are asked",
            where="--eval-samples",
            remedy="ask for fewer, hold out more (a lower --eval-every), or raise --dup",
        )
    ratio = available / wanted
    return [int(number * ratio) for number in range(wanted)]


def baselines(picked: samples.Samples, vocabulary: wordpiece.Vocabulary) -> dict[str, Any]:
    """What a guesser gets that always says the same: the floor beside which a target is read."""
    labels = np.bincount(picked.columns["labels"], minlength=vocabulary.size)
    commonest = int(labels.argmax())
    random_next = float(picked.columns["random_next"].mean())
    return {
        "masked_predictions": int(labels.sum()),
        "commonest_masked_token": vocabulary.tokens[commonest],
        "mlm_accuracy_of_commonest_token": round(float(labels[commonest] / labels.sum()), 4),
        "nsp_accuracy_of_commonest_label": round(max(random_next, 1 - random_next), 4),
    }


@dataclass(frozen=True)
class MakePart:
    """The shuffled samples of one part of the training text, in the compact form."""

    job: Job

    def __call__(self, part: str) -> Done:
        def make(paths: Sequence[Path]) -> Facts:
            vocabulary = wordpiece.read(self.job.vocab_file)
            drawn = _draw([self.job.part_text(part)], self.job.parameters, vocabulary)
            drawn.save(paths[0])
            return {"samples": drawn.count, "tokens": drawn.tokens}

        return self.job.partial.step(f"part_{part}", [self.job.part_samples(part)], make)


def _draw(texts: Sequence[Path], parameters: Parameters, vocabulary: wordpiece.Vocabulary) -> samples.Samples:
    documents = [document for path in texts for document in _tokenised(path, vocabulary)]
    rng = random.Random(parameters.seed)  # the same for each part, as MLPerf's preparation has it
    collector = samples.Collector()
    for instance in instances.create(documents, parameters, instances.Tokens.of(vocabulary), rng):
        collector.add(instance)
    return collector.samples().take(instances.permutation(collector.count, rng))


def _tokenised(path: Path, vocabulary: wordpiece.Vocabulary) -> list[instances.TokenDocument]:
    documents = list(text.documents(path))
    encoded = vocabulary.encode(chain.from_iterable(documents))
    tokenised: list[instances.TokenDocument] = [
        [ids for ids in islice(encoded, len(document)) if ids] for document in documents
    ]
    return [document for document in tokenised if document]


Piece = tuple[str, int, int]
"""Samples `start` to `stop` of a part: (part, start, stop)."""


@dataclass(frozen=True)
class Shard:
    """One training file: its index, and the pieces whose samples it holds."""

    index: int
    pieces: tuple[Piece, ...]


def plan_shards(parts: Sequence[str], counts: Sequence[int], shard_count: int) -> list[Shard]:
    """Cut the samples of all parts, one part after the other, into shards that differ by one at most."""
    total = sum(counts)
    if total < shard_count:
        raise FlagPerfError(
            f"{total} samples do not fill {shard_count} shards",
            where="--shards",
            remedy=f"give at most {total}",
        )
    starts = [0, *np.cumsum(counts).tolist()]
    bounds = [total * index // shard_count for index in range(shard_count + 1)]
    return [
        Shard(index, _pieces(parts, starts, bounds[index], bounds[index + 1])) for index in range(shard_count)
    ]


def _pieces(parts: Sequence[str], starts: Sequence[int], low: int, high: int) -> tuple[Piece, ...]:
    return tuple(
        (part, max(low, begin) - begin, min(high, end) - begin)
        for part, begin, end in zip(parts, starts, starts[1:], strict=False)
        if max(low, begin) < min(high, end)
    )


@dataclass(frozen=True)
class MakeShard:
    """Write one training file."""

    job: Job

    def __call__(self, shard: Shard) -> Done:
        parameters = self.job.parameters

        def make(paths: Sequence[Path]) -> Facts:
            gathered = samples.concatenated(
                samples.load(self.job.part_samples(part), start, stop) for part, start, stop in shard.pieces
            )
            shards.write(paths[0], gathered.padded(parameters.seq_length, parameters.max_predictions))
            return {"samples": gathered.count}

        return self.job.partial.step(f"shard_{shard.index:05d}", [self.job.shard_file(shard.index)], make)
