"""The steps of a preparation. Each reads what earlier steps left and depends on nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.preparation import text
from benchmarks.common.preparation.partial import Done, Facts
from benchmarks.cpm.chunks import EVALUATION_FOLDER, PADDING, TRAINING_FOLDER, chunk_arrays, open_chunks
from benchmarks.cpm.prepare import vocabulary
from benchmarks.cpm.prepare.job import Job, Part
from utils.errors import FlagPerfError

VOCABULARY_TEXT = 256 << 20  # characters; more text changes a vocabulary of 30,000 little


@dataclass(frozen=True)
class SplitText:
    """Deal the documents of one text file to its parts, and every n-th to the held-out text.

    A line of white space is no document.
    """

    job: Job

    def __call__(self, number: int) -> Done:
        outputs = [self.job.part_text(part) for part in self.job.inputs.parts_of(number)]
        if self._holds_out(number):
            outputs.append(self.job.part_text(Part(EVALUATION_FOLDER, number)))
        return self.job.partial.step(f"split_{number:05d}", outputs, lambda paths: self._make(number, paths))

    def _holds_out(self, number: int) -> bool:
        return not self.job.inputs.valid and number < len(self.job.inputs.train)

    def _make(self, number: int, paths: Sequence[Path]) -> Facts:
        every = self.job.inputs.parameters.eval_every if self._holds_out(number) else 0
        source = self.job.inputs.texts[number]
        parts, held_out = (paths[:-1], paths[-1]) if every else (paths, None)
        dealt, kept = text.deal(_documents(source), parts, held_out, every, first=1)
        if not dealt:
            raise FlagPerfError("holds no document", where=str(source), remedy="leave the file out")
        trained = dealt if number < len(self.job.inputs.train) else 0
        return {"train_documents": trained, "valid_documents": dealt + kept - trained}


def _documents(path: Path) -> Iterator[str]:
    return (line for line in text.lines(path) if not line.isspace())


def make_vocabulary(job: Job) -> Done:
    """The SentencePiece model: a copy of the given one, or trained on the training text (never on the held-out)."""

    def make(paths: Sequence[Path]) -> Facts:
        chosen = vocabulary.read(job.inputs.vocab) if job.inputs.vocab else _trained(job)
        paths[0].write_bytes(chosen.serialized)
        return {"vocab_size": chosen.size}

    return job.partial.step("vocabulary", [job.vocab_file], make)


def _trained(job: Job) -> vocabulary.Vocabulary:
    parts = [job.part_text(part) for part in job.inputs.parts(TRAINING_FOLDER)]
    documents = text.beginnings(parts, VOCABULARY_TEXT, text.lines)
    return vocabulary.train(documents, job.inputs.parameters.vocab_size)


@dataclass(frozen=True)
class MakeChunks:
    """The chunks of one part of the text, in its order."""

    job: Job

    def __call__(self, part: Part) -> Done:
        def make(paths: Sequence[Path]) -> Facts:
            pieces = vocabulary.read(self.job.vocab_file)
            length = self.job.inputs.parameters.seq_length + 1
            chunks = cut(
                (pieces.encode(document) for document in text.lines(self.job.part_text(part))), length
            )
            with paths[0].open("wb") as stream:
                np.save(stream, chunks)
            tokens = chunks[chunks != PADDING]
            unknown = int((tokens == pieces.unknown).sum())
            return {"samples": len(chunks), "tokens": len(tokens), "unknown_tokens": unknown}

        return self.job.partial.step(f"chunks_{part.name}", [self.job.chunk_file(part)], make)


def cut(documents: Iterable[Sequence[int]], length: int) -> Array:
    """Every document's consecutive chunks of `length` tokens, the last one padded: (samples, length) int32.

    A last chunk of one token has no label and is left out.
    """
    chunks = [
        document[begin : begin + length]
        for document in documents
        for begin in range(0, len(document) - 1, length)
    ]
    table = np.full((len(chunks), length), PADDING, np.int32)
    for row, chunk in zip(table, chunks, strict=True):
        row[: len(chunk)] = chunk
    return table


def evaluation_facts(job: Job) -> Facts:
    """What a guesser gets that always says the same: the floor beside which token accuracy is read."""
    pieces = vocabulary.read(job.vocab_file)
    parts = job.inputs.parts(EVALUATION_FOLDER)
    counts: Any = sum(
        np.bincount(chunk_arrays(open_chunks(job.chunk_file(part))).labels, minlength=pieces.size)
        for part in parts
    )
    commonest = int(counts.argmax())
    return {
        "valid_labels": int(counts.sum()),
        "valid_commonest_token": pieces.piece(commonest),
        "valid_token_accuracy_of_commonest_token": round(float(counts[commonest] / counts.sum()), 4),
    }
