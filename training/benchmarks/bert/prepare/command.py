"""text -> parts -> vocabulary -> evaluation set, samples -> shards: the story of a preparation, and its command."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bert import shards
from benchmarks.bert.prepare import TOOL, adopt, md5, steps
from benchmarks.bert.prepare.job import Inputs, Job
from benchmarks.bert.prepare.originals import read_original
from benchmarks.bert.prepare.parameters import DEMO, Parameters
from benchmarks.common.conversion import Original
from benchmarks.common.preparation.command import Preparation
from benchmarks.common.preparation.partial import Done, Facts, PartialDataset, ResumableError
from benchmarks.common.preparation.recipe import added_up
from benchmarks.common.preparation.workers import Workers
from utils import manifest

DEMO_TEXT = Path(__file__).parents[1] / "demo_data" / "kjv.txt.xz"


class BertPreparation(Preparation[Inputs]):
    """The layout of MLPerf's Wikipedia set."""

    model, tool, source = "bert", TOOL, "text"
    about = "Make BERT's pre-training data (the layout of MLPerf's Wikipedia set) from plain text."
    usual, demo = Parameters(), DEMO
    converts = True

    def make(self, inputs: Inputs, partial: PartialDataset, pool: Workers) -> tuple[Facts, Sequence[Done]]:
        """What a step makes depends on the text and the parameters only, never on the number of workers."""
        job = Job(inputs, partial)
        split = pool.map("read the text", steps.SplitFile(job), range(len(inputs.texts)))
        (vocab,) = pool.map("vocabulary", steps.make_vocabulary, [job])
        (evaluation,) = pool.map("evaluation set", steps.make_evaluation_set, [job])
        drawn = pool.map("draw the samples", steps.MakePart(job), inputs.parts)
        counts = [done.facts["samples"] for done in drawn]
        plan = steps.plan_shards(inputs.parts, counts, job.parameters.shards)
        _check_room(job, sum(counts))
        written = pool.map("write the shards", steps.MakeShard(job), plan)
        facts = {
            **added_up(split),
            **vocab.facts,
            **added_up(drawn, "train_"),
            **{f"eval_{name}": value for name, value in evaluation.facts.items()},
        }
        return facts, [vocab, evaluation, *written]

    def inputs(self, options: argparse.Namespace, parameters: Parameters) -> Inputs:
        texts = (DEMO_TEXT,) if options.demo else tuple(options.text)
        if options.text_md5:
            md5.check([*texts, *options.eval_text], options.text_md5, options.workers)
        return Inputs(texts, tuple(options.eval_text), options.vocab, parameters)

    def read_checkpoint(self, path: Path) -> Original:
        return read_original(path)

    def other_action(self, options: argparse.Namespace) -> bool:
        if not options.write_manifest:
            return False
        made = adopt.adopt(options.write_manifest, workers=options.workers)
        print(f"{options.write_manifest}: {len(made.files)} files, manifest sha256 {made.digest}")
        return True

    def add_options(self, parser: argparse.ArgumentParser, action: Any) -> None:
        action.add_argument(
            "--text",
            type=Path,
            nargs="+",
            help="UTF-8 (.xz, .gz, .bz2 too), a sentence a line, blank line between documents",
        )
        action.add_argument("--write-manifest", type=Path, metavar="DIR", help="of a data set made elsewhere")
        parser.add_argument(
            "--eval-text", type=Path, nargs="+", default=[], help="text held out for evaluation"
        )
        parser.add_argument("--vocab", type=Path, help="vocab.txt of an uncased BERT model")
        parser.add_argument(
            "--text-md5", type=Path, metavar="FILE", help="check the text against these MD5 sums"
        )

    def check_options(self, parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
        if options.demo and options.eval_text:
            parser.error("--demo holds chapters of its own corpus out: leave --eval-text away")

    def summary(self, made: manifest.Manifest) -> list[str]:
        facts = made.facts
        fill = facts["train_tokens"] / (facts["train_samples"] * made.parameters["seq_length"])
        return [
            f"training    {facts['train_samples']} samples of {facts['train_documents']} documents, "
            f"{fill:.1%} of the positions filled",
            f"evaluation  {facts['eval_samples']} samples, {facts['eval_masked_predictions']} predictions",
            f"baseline    MLM accuracy {facts['eval_mlm_accuracy_of_commonest_token']:.4f} "
            f"by always guessing {facts['eval_commonest_masked_token']!r}",
        ]


main = BertPreparation().main


def _check_room(job: Job, samples: int) -> None:
    needed = samples * shards.bytes_per_sample(job.parameters.seq_length, job.parameters.max_predictions)
    present = sum(path.stat().st_size for path in (job.partial.data / shards.TRAINING_FOLDER).glob("*.hdf5"))
    free = shutil.disk_usage(job.partial.folder).free
    if needed - present > free:
        raise ResumableError(
            f"{samples} samples need {(needed - present) / 1e9:.1f} GB more, {free / 1e9:.1f} GB are free",
            where=str(job.partial.folder),
            remedy="make room and give the same command again: it goes on from here",
        )
