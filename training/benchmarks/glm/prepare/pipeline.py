"""ReCoRD -> vocabulary -> questions -> manifest: the story of a preparation.

Each step is done once and skipped when its files are intact, so that a killed preparation goes on where it
stopped. What a step makes depends on ReCoRD and the parameters only, never on the number of workers.
"""

from __future__ import annotations

import sys

from benchmarks.glm.prepare import TOOL, steps
from benchmarks.glm.prepare.job import Job
from benchmarks.glm.shards import TRAIN_FOLDER
from utils import manifest
from utils.preparation.recipe import added_up, already_made, files_of
from utils.preparation.workers import Workers


def prepare(job: Job, *, workers: int, restart: bool = False) -> manifest.Manifest:
    """Make the data set of `job`, or find it made; the manifest is written last.

    FlagPerfError for bad input (file and line), too little room on the disk, or files in `job.out` that it did
    not make and would write over.
    """
    recipe = job.recipe(workers)
    made = already_made(job.out, recipe, workers)
    if made is not None:
        print(f"{job.out}: already made and intact", file=sys.stderr)
        return made
    workshop = job.workshop.opened(recipe, job.outputs, inputs=job.inputs, restart=restart)
    with workshop as work, Workers.started(workers) as pool:
        if job.record is None:
            pool.map("write the demo's questions", steps.make_demo, [job])
        (vocab,) = pool.map("vocabulary", steps.make_vocabulary, [job])
        questions = pool.map("questions", steps.MakeQuestions(job), job.all_parts)
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
        work.clear()
    return result
