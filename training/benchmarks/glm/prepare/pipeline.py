"""ReCoRD -> vocabulary -> questions -> manifest: the story of a preparation.

Each step is done once and skipped when its files are intact, so that a killed preparation goes on where it
stopped. What a step makes depends on ReCoRD and the parameters only, never on the number of workers.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from benchmarks.glm.prepare import TOOL, steps
from benchmarks.glm.prepare.job import Job
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER
from utils import manifest
from utils.errors import FlagPerfError
from utils.preparation.recipe import added_up, already_made, files_of
from utils.preparation.workers import Workers
from utils.preparation.workshop import Done


def prepare(job: Job, *, workers: int, restart: bool = False) -> manifest.Manifest:
    """Make the data set of `job`, or find it made; the manifest is written last.

    FlagPerfError for bad input (file and line), or too little room on the disk.
    """
    recipe = job.recipe(workers)
    made = already_made(job.out, recipe, workers)
    if made is not None:
        print(f"{job.out}: already made and intact", file=sys.stderr)
        return made
    with job.workshop.opened(recipe, restart=restart), Workers.started(workers) as pool:
        vocab, questions = _read_record(job, pool)
        training = questions[: len(job.parts(TRAIN_FOLDER))]
        evaluation = questions[len(training) :]
        facts = {
            **vocab.facts,
            **added_up(training, "train_"),
            **added_up(evaluation, "val_"),
            **steps.evaluation_facts(job),
        }
        result = manifest.Manifest("glm", TOOL, recipe, facts, files_of([vocab, *questions]))
        manifest.write(job.out, result)
        job.workshop.clear()
    return result


def _read_record(job: Job, pool: Workers) -> tuple[Done, list[Done]]:
    """All that reads the user's files. Bad input leaves nothing behind."""
    try:
        if job.record is None:
            pool.map("write the demo's questions", steps.make_demo, [job])
        (vocab,) = pool.map("vocabulary", steps.make_vocabulary, [job])
        questions = pool.map("questions", steps.MakeQuestions(job), job.all_parts)
    except FlagPerfError:
        _remove_what_was_made(job)
        raise
    return vocab, questions


def _remove_what_was_made(job: Job) -> None:
    for path in (job.vocab_file, *map(job.question_file, job.all_parts)):
        path.unlink(missing_ok=True)
    for folder in (TRAIN_FOLDER, EVAL_FOLDER):
        with suppress(OSError):  # it was not made, or holds files of somebody else
            (job.out / folder).rmdir()
    job.workshop.clear()
