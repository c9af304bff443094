"""text -> parts -> vocabulary -> evaluation set, samples -> shards -> manifest: the story of a preparation.

Each step is done once and skipped when its files are intact, so that a killed preparation goes on where it
stopped. What a step makes depends on the text and the parameters only, never on the number of workers.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.bert.prepare import TOOL, shards, steps
from benchmarks.bert.prepare.job import Job
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
        split = pool.map("read the text", steps.SplitFile(job), range(len(job.texts)))
        (vocab,) = pool.map("vocabulary", steps.make_vocabulary, [job])
        (evaluation,) = pool.map("evaluation set", steps.make_evaluation_set, [job])
        work.keep()  # all that reads the user's files is done: quick beside the rest
        drawn = pool.map("draw the samples", steps.MakePart(job), job.parts)
        counts = [done.facts["samples"] for done in drawn]
        plan = steps.plan_shards(job.parts, counts, job.parameters.shards)
        _check_room(job, sum(counts))
        written = pool.map("write the shards", steps.MakeShard(job), plan)
        result = manifest.Manifest(
            "bert",
            TOOL,
            recipe,
            _facts(split, vocab, evaluation, drawn),
            files_of([vocab, evaluation, *written]),
        )
        manifest.write(job.out, result)
        work.clear()
    return result


def _check_room(job: Job, samples: int) -> None:
    needed = samples * shards.bytes_per_sample(job.parameters.seq_length, job.parameters.max_predictions)
    present = sum(path.stat().st_size for path in (job.out / shards.TRAIN_FOLDER).glob("*.hdf5"))
    free = shutil.disk_usage(job.out).free
    if needed - present > free:
        raise FlagPerfError(
            f"{samples} samples need {(needed - present) / 1e9:.1f} GB more, {free / 1e9:.1f} GB are free",
            where=str(job.out),
            remedy="make room and give the same command again: it goes on from here",
        )


def _facts(split: Sequence[Done], vocab: Done, evaluation: Done, drawn: Sequence[Done]) -> dict[str, Any]:
    return {
        **added_up(split),
        **vocab.facts,
        **added_up(drawn, "train_"),
        **{f"eval_{name}": value for name, value in evaluation.facts.items()},
    }
