"""The steps of a preparation. Each reads what earlier steps left and depends on nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bert.prepare import instances, samples, shards, text, vocabulary
from benchmarks.bert.prepare.parameters import Parameters
from utils.errors import FlagPerfError
from utils.resumable import Done, Facts, Workshop, unfinished

PART_BYTES = 64 << 20
VOCABULARY_TEXT_BYTES = 512 << 20  # more text changes a vocabulary of 30,000 little


@dataclass(frozen=True)
class Job:
    """A preparation: from which files, to which directory. `vocab` None: train one."""

    texts: tuple[Path, ...]
    eval_texts: tuple[Path, ...]
    vocab: Path | None
    out: Path
    parameters: Parameters

    @property
    def workshop(self) -> Workshop:
        return Workshop(self.out)

    @property
    def vocab_file(self) -> Path:
        return self.out / "vocab.txt"

    def part_text(self, part: str) -> Path:
        return self.workshop.folder / "text" / f"{part}.txt"

    def held_out_text(self, file: int) -> Path:
        return self.workshop.folder / "text" / f"f{file:05d}_eval.txt"

    def part_samples(self, part: str) -> Path:
        return self.workshop.folder / "samples" / f"{part}.hdf5"

    def parts_of(self, file: int) -> list[str]:
        size = self.texts[file].stat().st_size
        count = self.parameters.parts_per_file or -(-size // PART_BYTES)
        return [f"f{file:05d}_p{part:04d}" for part in range(count)]


@dataclass(frozen=True)
class SplitFile:
    """Deal the documents of one text file to its parts, and every n-th to the held-out text.

    Dealing in turn makes each part a sample of the whole file, so that its shards are alike.
    """

    job: Job

    def __call__(self, file: int) -> Done:
        parts = [self.job.part_text(part) for part in self.job.parts_of(file)]
        held_out = self.job.held_out_text(file)
        outputs = [*parts, held_out]
        return self.job.workshop.step(f"split_{file:05d}", outputs, lambda: self._make(file, parts, held_out))

    def _make(self, file: int, parts: Sequence[Path], held_out: Path) -> Facts:
        every = 0 if self.job.eval_texts else self.job.parameters.eval_every
        counts = {"train_documents": 0, "eval_documents": 0}
        with ExitStack() as stack:
            streams = [
                stack.enter_context(stack.enter_context(unfinished(path)).open("w", encoding="utf-8"))
                for path in (*parts, held_out)
            ]
            for number, document in enumerate(text.documents(self.job.texts[file]), start=1):
                kept_back = every > 0 and number % every == 0
                kind = "eval_documents" if kept_back else "train_documents"
                stream = streams[-1] if kept_back else streams[counts[kind] % len(parts)]
                stream.write("\n".join(document) + "\n\n")
                counts[kind] += 1
            if not counts["train_documents"]:
                raise FlagPerfError("holds no text", where=str(self.job.texts[file]), remedy="leave it out")
        return dict(counts)


def make_vocabulary(job: Job) -> Done:
    """`vocab.txt`: a copy of the given one, or trained on the training text (never on the held-out)."""

    def make() -> Facts:
        chosen = vocabulary.read(job.vocab) if job.vocab else _trained(job)
        with unfinished(job.vocab_file) as temporary:
            temporary.write_text(vocabulary.as_text(chosen), encoding="utf-8")
        return {"vocab_size": chosen.size}

    return job.workshop.step("vocabulary", [job.vocab_file], make)


def _trained(job: Job) -> vocabulary.Vocabulary:
    parts = [part for file in range(len(job.texts)) for part in job.parts_of(file)]
    budget = VOCABULARY_TEXT_BYTES // len(parts)  # of every part the same share
    sentences: list[str] = []
    for part in parts:
        left = budget
        for sentence in text.sentences(job.part_text(part)):
            sentences.append(sentence)
            left -= len(sentence)
            if left < 0:
                break
    return vocabulary.train(sentences, job.parameters.vocab_size)


def make_evaluation_set(job: Job) -> Done:
    """The evaluation file: as many of the held-out text's instances as asked, evenly picked (MLPerf)."""
    target = job.out / shards.EVAL_FILE

    def make() -> Facts:
        held_out = job.eval_texts or [job.held_out_text(file) for file in range(len(job.texts))]
        known = vocabulary.read(job.vocab_file)
        drawn = _draw(held_out, job.parameters, known)
        wanted = job.parameters.eval_samples
        if drawn.count < wanted:
            raise FlagPerfError(
                f"the held-out text gives {drawn.count} samples, {wanted} are asked",
                where="--eval-samples",
                remedy=f"ask for at most {drawn.count}, hold out more (--eval-every), or raise --dup",
            )
        ratio = drawn.count / wanted
        picked = drawn.take([int(number * ratio) for number in range(wanted)])
        shards.write(target, picked.padded(job.parameters.seq_length, job.parameters.max_predictions))
        return {"samples": picked.count, "tokens": picked.tokens, **baselines(picked, known)}

    return job.workshop.step("evaluation_set", [target], make)


def baselines(picked: samples.Samples, known: vocabulary.Vocabulary) -> dict[str, Any]:
    """What a guesser gets that always says the same: the floor beside which a target is read."""
    labels = np.bincount(picked.columns["labels"], minlength=known.size)
    commonest = int(labels.argmax())
    random_next = float(picked.columns["random_next"].mean())
    return {
        "masked_predictions": int(labels.sum()),
        "commonest_masked_token": known.tokens[commonest],
        "mlm_accuracy_of_commonest_token": round(float(labels[commonest] / labels.sum()), 4),
        "nsp_accuracy_of_commonest_label": round(max(random_next, 1 - random_next), 4),
    }


@dataclass(frozen=True)
class MakePart:
    """The shuffled samples of one part of the training text, in the compact form."""

    job: Job

    def __call__(self, part: str) -> Done:
        target = self.job.part_samples(part)

        def make() -> Facts:
            known = vocabulary.read(self.job.vocab_file)
            drawn = _draw([self.job.part_text(part)], self.job.parameters, known)
            with unfinished(target) as temporary:
                drawn.save(temporary)
            return {"samples": drawn.count, "tokens": drawn.tokens}

        return self.job.workshop.step(f"part_{part}", [target], make)


def _draw(texts: Sequence[Path], parameters: Parameters, known: vocabulary.Vocabulary) -> samples.Samples:
    documents = [document for path in texts for document in _tokenised(path, known)]
    rng = random.Random(parameters.seed)  # the same for each part, as MLPerf's preparation has it
    collector = samples.Collector()
    for instance in instances.create(documents, parameters, instances.Tokens.of(known), rng):
        collector.add(instance)
    return collector.samples().take(instances.permutation(collector.count, rng))


def _tokenised(path: Path, known: vocabulary.Vocabulary) -> list[instances.TokenDocument]:
    documents = list(text.documents(path))
    encoded = known.encode(chain.from_iterable(documents))
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
    bounds = shards.shard_bounds(total, shard_count)
    return [
        Shard(index, _pieces(parts, starts, bounds[index], bounds[index + 1])) for index in range(shard_count)
    ]


def _pieces(parts: Sequence[str], starts: Sequence[int], low: int, high: int) -> tuple[Piece, ...]:
    return tuple(
        (part, max(low, begin) - begin, min(high, end) - begin)
        for part, begin, end in zip(parts, starts, starts[1:], strict=False)
        if begin < high and low < end
    )


@dataclass(frozen=True)
class MakeShard:
    """Write one training file."""

    job: Job

    def __call__(self, shard: Shard) -> Done:
        parameters = self.job.parameters
        target = self.job.out / shards.shard_name(shard.index, parameters.shards)

        def make() -> Facts:
            gathered = samples.concatenated(
                samples.load(self.job.part_samples(part), start, stop) for part, start, stop in shard.pieces
            )
            shards.write(target, gathered.padded(parameters.seq_length, parameters.max_predictions))
            return {"samples": gathered.count}

        return self.job.workshop.step(f"shard_{shard.index:05d}", [target], make)
