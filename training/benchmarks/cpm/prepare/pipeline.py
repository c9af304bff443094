"""text -> parts -> vocabulary -> chunks -> manifest: the story of a preparation.

Each step is done once and skipped when its files are intact, so that a killed preparation goes on where it
stopped. What a step makes depends on the text and the parameters only, never on the number of workers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import jieba
import sentencepiece

from benchmarks.cpm.chunks import EVALUATION_FOLDER, TRAINING_FOLDER
from benchmarks.cpm.prepare import TOOL, steps
from benchmarks.cpm.prepare.job import Job
from utils import manifest
from utils.errors import FlagPerfError
from utils.preparation.recipe import added_up, already_made, files_of
from utils.preparation.workers import Workers
from utils.preparation.workshop import Done


def prepare(job: Job, *, workers: int, restart: bool = False) -> manifest.Manifest:
    """Make the data set of `job`, or find it made; the manifest is written last.

    FlagPerfError for bad input (file and line), too little text, too little room on the disk, or files in
    `job.out` that it did not make and would write over.
    """
    recipe = job.recipe(workers)
    made = already_made(job.out, recipe, workers)
    if made is not None:
        print(f"{job.out}: already made and intact", file=sys.stderr)
        return made
    workshop = job.workshop.opened(recipe, job.outputs, inputs=job.inputs, restart=restart)
    with workshop as work, Workers.started(workers) as pool:
        split = pool.map("read the text", steps.SplitText(job), range(len(job.texts)))
        (vocab,) = pool.map("vocabulary", steps.make_vocabulary, [job])
        sets = {folder: job.parts(folder) for folder in (TRAINING_FOLDER, EVALUATION_FOLDER)}
        chunked = pool.map(
            "cut into chunks", steps.MakeChunks(job), [part for parts in sets.values() for part in parts]
        )
        training = chunked[: len(sets[TRAINING_FOLDER])]
        evaluation = chunked[len(sets[TRAINING_FOLDER]) :]
        _check_evaluation(evaluation)
        facts = {
            **added_up(split),
            **vocab.facts,
            **added_up(training, "train_"),
            **added_up(evaluation, "valid_"),
            **steps.evaluation_facts(job),
            "jieba": jieba.__version__,
            "sentencepiece": sentencepiece.__version__,
        }
        result = manifest.Manifest("cpm", TOOL, recipe, facts, files_of([vocab, *chunked]))
        manifest.write(job.out, result)
        work.clear()
    return result


def _check_evaluation(evaluation: Sequence[Done]) -> None:
    if not sum(done.facts["samples"] for done in evaluation):
        raise FlagPerfError(
            "no document is held out for evaluation",
            where="--eval-every",
            remedy="give a lower --eval-every, or --valid FILE",
        )
