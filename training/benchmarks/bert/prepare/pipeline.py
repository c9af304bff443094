"""text -> parts -> vocabulary -> evaluation set, samples -> shards -> manifest: the story of a preparation.

Each step is done once and skipped when its outputs are intact, so that a killed preparation goes on
where it stopped. What a step makes depends on the text and the parameters only, never on the number of
workers.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.bert.prepare import TOOL, shards, steps, vocabulary
from benchmarks.bert.prepare.steps import Job
from benchmarks.bert.prepare.workers import Workers
from utils import manifest
from utils.errors import FlagPerfError
from utils.resumable import Done, refuse_other_recipe

SLACK = 1.02  # HDF5's own structures


def prepare(job: Job, workers: int) -> manifest.Manifest:
    """Make the data set of `job`, or find it made; the manifest is written last."""
    recipe = recipe_of(job)
    made = _already_made(job, recipe, workers)
    if made is not None:
        return made
    with job.workshop.opened(recipe), Workers.started(workers) as pool:
        parts = [part for file in range(len(job.texts)) for part in job.parts_of(file)]
        split = pool.map("read and split the text", steps.SplitFile(job), range(len(job.texts)))
        vocab = pool.map("vocabulary", steps.make_vocabulary, [job])
        evaluation = pool.map("evaluation set", steps.make_evaluation_set, [job])
        drawn = pool.map("draw the samples", steps.MakePart(job), parts)
        counts = [done.facts["samples"] for done in drawn]
        _check_room(job, sum(counts))
        plan = steps.plan_shards(parts, counts, job.parameters.shards)
        written = pool.map("write the shards", steps.MakeShard(job), plan)
        result = _manifest(recipe, split, vocab[0], evaluation[0], drawn, written)
    manifest.write(job.out, result)
    job.workshop.clear()
    return result


def recipe_of(job: Job) -> dict[str, Any]:
    """What decides the data set; equal recipes make equal files. Stands in the manifest."""
    recipe = asdict(job.parameters)
    recipe["text"] = _fingerprints(job.texts)
    if job.vocab is not None:
        vocabulary.read(job.vocab)  # a bad one is refused before anything is made
        recipe["vocab"] = _fingerprints([job.vocab])
        del recipe["vocab_size"]
    if job.eval_texts:
        recipe["eval_text"] = _fingerprints(job.eval_texts)
        del recipe["eval_every"]
    return recipe


def _fingerprints(paths: Sequence[Path]) -> list[str]:
    try:
        return [f"{path.name} sha256:{manifest.sha256_of(path)}" for path in paths]
    except OSError as error:
        raise FlagPerfError(f"cannot be read: {error.strerror}", where=str(error.filename)) from None


def _already_made(job: Job, recipe: dict[str, Any], workers: int) -> manifest.Manifest | None:
    """The finished, intact data set of this recipe, if `job.out` holds it."""
    if not (job.out / manifest.MANIFEST_NAME).exists():
        return None
    made = manifest.read(job.out)
    refuse_other_recipe(made.parameters, recipe, str(job.out))
    return None if manifest.verify(job.out, workers=workers) else made


def _check_room(job: Job, samples: int) -> None:
    parameters = job.parameters
    row = 6 * parameters.seq_length + 8 * parameters.max_predictions + 1
    present = sum(path.stat().st_size for path in (job.out / shards.TRAIN_FOLDER).glob("*.hdf5"))
    needed, free = int(samples * row * SLACK) - present, shutil.disk_usage(job.out).free
    if needed > free:
        raise FlagPerfError(
            f"{samples} samples need {needed / 1e9:.1f} GB more, {free / 1e9:.1f} GB are free",
            where=str(job.out),
            remedy="make room and give the same command again: it goes on from here",
        )


def _manifest(
    recipe: dict[str, Any],
    split: Sequence[Done],
    vocab: Done,
    evaluation: Done,
    drawn: Sequence[Done],
    written: Sequence[Done],
) -> manifest.Manifest:
    samples, tokens = (sum(done.facts[name] for done in drawn) for name in ("samples", "tokens"))
    facts = {
        **{name: sum(done.facts[name] for done in split) for name in split[0].facts},
        **vocab.facts,
        "train_samples": samples,
        "train_tokens": tokens,
        "train_fill": round(tokens / (samples * recipe["seq_length"]), 4),
        **{f"eval_{name}": value for name, value in evaluation.facts.items()},
    }
    files = [entry for done in (vocab, evaluation, *written) for entry in done.files]
    return manifest.Manifest("bert", TOOL, recipe, facts, tuple(sorted(files, key=lambda entry: entry.path)))
