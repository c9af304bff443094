"""text -> parts -> vocabulary -> chunks: the story of a preparation, and its command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jieba
import sentencepiece

from benchmarks.common.preparation.command import Preparation
from benchmarks.common.preparation.partial import Done, Facts, PartialDataset
from benchmarks.common.preparation.recipe import added_up
from benchmarks.common.preparation.workers import Workers
from benchmarks.cpm.chunks import EVALUATION_FOLDER, TRAINING_FOLDER
from benchmarks.cpm.prepare import TOOL, steps
from benchmarks.cpm.prepare.job import Inputs, Job
from benchmarks.cpm.prepare.parameters import DEMO, Parameters
from utils import manifest
from utils.errors import FlagPerfError

DEMO_TEXT = Path(__file__).parents[1] / "demo_data" / "verse.txt.xz"


class CpmPreparation(Preparation[Inputs]):
    """Chunks of documents in tokens."""

    model, tool, source = "cpm", TOOL, "train"
    about = "Make CPM's training data from text, a document a line."
    usual, demo = Parameters(), DEMO
    converts = True

    def make(self, inputs: Inputs, partial: PartialDataset, pool: Workers) -> tuple[Facts, Sequence[Done]]:
        """What a step makes depends on the text and the parameters only, never on the number of workers."""
        job = Job(inputs, partial)
        split = pool.map("read the text", steps.SplitText(job), range(len(inputs.texts)))
        (vocab,) = pool.map("vocabulary", steps.make_vocabulary, [job])
        training, evaluation = inputs.parts(TRAINING_FOLDER), inputs.parts(EVALUATION_FOLDER)
        chunked = pool.map("cut into chunks", steps.MakeChunks(job), [*training, *evaluation])
        _check_evaluation(chunked[len(training) :])
        facts = {
            **added_up(split),
            **vocab.facts,
            **added_up(chunked[: len(training)], "train_"),
            **added_up(chunked[len(training) :], "valid_"),
            **steps.evaluation_facts(job),
            "jieba": jieba.__version__,
            "sentencepiece": sentencepiece.__version__,
        }
        return facts, [vocab, *chunked]

    def inputs(self, options: argparse.Namespace, parameters: Parameters) -> Inputs:
        train = (DEMO_TEXT,) if options.demo else tuple(options.train)
        return Inputs(train, tuple(options.valid), options.vocab, parameters)

    def add_options(self, parser: argparse.ArgumentParser, action: Any) -> None:
        action.add_argument(
            "--train", type=Path, nargs="+", help="UTF-8 (.xz, .gz, .bz2 too), a document a line: train.txt"
        )
        parser.add_argument(
            "--valid", type=Path, nargs="+", default=[], help="text for evaluation: valid.txt"
        )
        parser.add_argument("--vocab", type=Path, help="a SentencePiece model: chinese_vocab.model of CPM-1")

    def check_options(self, parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
        if options.demo and options.valid:
            parser.error("--demo holds documents of its own corpus out: leave --valid away")

    def summary(self, made: manifest.Manifest) -> list[str]:
        facts, lines = made.facts, []
        length = made.parameters["seq_length"] + 1
        for label, name in (("training", "train"), ("evaluation", "valid")):
            samples, tokens = facts[f"{name}_samples"], facts[f"{name}_tokens"]
            lines.append(
                f"{label:<11} {samples} samples of {facts[f'{name}_documents']} documents, {tokens} tokens, "
                f"{tokens / (samples * length):.1%} of the positions filled, "
                f"{facts[f'{name}_unknown_tokens'] / tokens:.2%} unknown"
            )
        return [
            *lines,
            f"vocabulary  {facts['vocab_size']} pieces",
            f"baseline    token accuracy {facts['valid_token_accuracy_of_commonest_token']:.4f} "
            f"by always guessing {facts['valid_commonest_token']!r}",
        ]


main = CpmPreparation().main


def _check_evaluation(evaluation: Sequence[Done]) -> None:
    if not sum(done.facts["samples"] for done in evaluation):
        raise FlagPerfError(
            "no document is held out for evaluation",
            where="--eval-every",
            remedy="give a lower --eval-every, or --valid FILE",
        )
