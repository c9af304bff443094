"""ReCoRD -> vocabulary -> questions: the story of a preparation, and its command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.preparation.command import Preparation
from benchmarks.common.preparation.partial import Done, Facts, PartialDataset
from benchmarks.common.preparation.recipe import added_up
from benchmarks.common.preparation.workers import Workers
from benchmarks.glm.baselines import BASELINES
from benchmarks.glm.prepare import TOOL, steps
from benchmarks.glm.prepare.job import Inputs, Job
from benchmarks.glm.prepare.parameters import DEMO, Parameters
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER
from utils import manifest


class GlmPreparation(Preparation[Inputs]):
    """ReCoRD's questions in tokens."""

    model, tool, source = "glm", TOOL, "record"
    about = "Make GLM's questions from ReCoRD."
    usual, demo = Parameters(), DEMO
    converts = True

    def make(self, inputs: Inputs, partial: PartialDataset, pool: Workers) -> tuple[Facts, Sequence[Done]]:
        """What a step makes depends on ReCoRD and the parameters only, never on the number of workers."""
        job = Job(inputs, partial)
        if inputs.record is None:
            pool.map("write the demo's questions", steps.make_demo, [job])
        (vocab,) = pool.map("vocabulary", steps.make_vocabulary, [job])
        training, evaluation = inputs.parts(TRAIN_FOLDER), inputs.parts(EVAL_FOLDER)
        questions = pool.map("questions", steps.MakeQuestions(job), [*training, *evaluation])
        facts = {
            **vocab.facts,
            **added_up(questions[: len(training)], "train_"),
            **added_up(questions[len(training) :], "val_"),
            **steps.evaluation_facts(job),
        }
        return facts, [vocab, *questions]

    def inputs(self, options: argparse.Namespace, parameters: Parameters) -> Inputs:
        return Inputs(options.record, options.vocab, parameters)

    def add_options(self, parser: argparse.ArgumentParser, action: Any) -> None:
        action.add_argument(
            "--record", type=Path, metavar="ZIP_OR_DIR", help="ReCoRD.zip, or what was unpacked from it"
        )
        parser.add_argument("--vocab", type=Path, help="vocab.txt of bert-large-uncased")

    def summary(self, made: manifest.Manifest) -> list[str]:
        facts, lines = made.facts, []
        for label, name in (("training", "train"), ("evaluation", "val")):
            questions = facts[f"{name}_questions"]
            lines.append(
                f"{label:<11} {questions} questions of {facts[f'{name}_queries']} queries on "
                f"{facts[f'{name}_passages']} passages, {facts[f'{name}_candidates'] / questions:.1f} candidates "
                f"and {facts[f'{name}_tokens'] / questions:.0f} tokens each"
            )
        trivial = ", ".join(
            f"{facts[f'val_exact_match_{name}']:.4f} {name.replace('_', ' ')}" for name in BASELINES
        )
        return [
            *lines,
            f"vocabulary  {facts['vocab_size']} tokens",
            f"baselines   exact match {trivial}",
        ]


main = GlmPreparation().main
