"""The steps of a preparation. Each reads what earlier steps left and depends on nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import wordpiece
from benchmarks.common.preparation.partial import Done, Facts
from benchmarks.glm import shards
from benchmarks.glm.baselines import BASELINES
from benchmarks.glm.clozes import Clozes
from benchmarks.glm.prepare import demo
from benchmarks.glm.prepare.job import SOURCES, Job, Part
from benchmarks.glm.prepare.questions import QuestionMaker, as_clozes, vocabulary_of
from benchmarks.glm.prepare.record import PLACEHOLDER, passages
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER


def make_demo(job: Job) -> Done:
    """The demo's passages and questions, in ReCoRD's form."""
    outputs = [job.demo_record / name for name in SOURCES.values()]
    return job.partial.step("demo", outputs, demo.write_record)


def make_vocabulary(job: Job) -> Done:
    """`vocab.txt`: a copy of the given one, or trained on the training passages and queries alone."""

    def make(paths: Sequence[Path]) -> Facts:
        chosen = wordpiece.read(job.inputs.vocab) if job.inputs.vocab else _trained(job)
        paths[0].write_text(wordpiece.as_text(chosen), encoding="utf-8")
        return {"vocab_size": vocabulary_of(chosen).size}

    return job.partial.step("vocabulary", [job.vocab_file], make)


def _trained(job: Job) -> wordpiece.Vocabulary:
    return wordpiece.train(list(_training_text(job)), job.inputs.parameters.vocab_size)


def _training_text(job: Job) -> Iterator[str]:
    for passage in passages(job.source, SOURCES[TRAIN_FOLDER], 0, 1):
        yield passage.text
        for query in passage.queries:
            yield query.before + query.after.replace(PLACEHOLDER, "")


@dataclass(frozen=True)
class MakeQuestions:
    """The questions of one part of the passages."""

    job: Job

    def __call__(self, part: Part) -> Done:
        output = self.job.question_file(part)
        return self.job.partial.step(
            f"questions_{part.name}", [output], lambda paths: self._make(part, paths[0])
        )

    def _make(self, part: Part, path: Path) -> Facts:
        vocabulary = wordpiece.read(self.job.vocab_file)
        maker = QuestionMaker(vocabulary, self.job.inputs.parameters, is_training=part.folder == TRAIN_FOLDER)
        chosen = list(passages(self.job.source, SOURCES[part.folder], part.number, part.parts))
        clozes = as_clozes(list(maker.of(chosen)))
        shards.write(path, clozes, vocabulary_of(vocabulary))
        return {
            "passages": len(chosen),
            "queries": sum(len(passage.queries) for passage in chosen),
            "questions": len(clozes),
            "candidates": len(clozes.candidate_lengths),
            "tokens": clozes.tokens,
            "unknown_tokens": int((clozes.sources == vocabulary.id_of("[UNK]")).sum()),
        }


def evaluation_facts(job: Job) -> Facts:
    """What answers get that need no understanding: beside these the exact match is read."""
    clozes: Clozes = shards.read_folder(job.partial.data, EVAL_FOLDER).clozes
    trivial: dict[str, Any] = {
        f"val_exact_match_{name}": round(of(clozes), 4) for name, of in BASELINES.items()
    }
    answerable = np.maximum.reduceat(
        clozes.exact_match, np.append(0, np.cumsum(clozes.candidate_counts)[:-1])
    )
    return {**trivial, "val_answerable_questions": int(answerable.sum())}
