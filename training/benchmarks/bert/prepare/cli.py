"""The command line: prepare a data set, verify one, or write the manifest of one that is there."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from benchmarks.bert.prepare import pipeline
from benchmarks.bert.prepare.parameters import DEMO, Parameters
from benchmarks.bert.prepare.steps import Job
from utils import manifest
from utils.errors import FlagPerfError

DEMO_TEXT = Path(__file__).parents[1] / "demo_data" / "kjv.txt.xz"
HELP = {
    "seq_length": "tokens in a sample",
    "max_predictions": "most masked tokens in a sample",
    "mask_prob": "share of tokens that are masked",
    "short_seq_prob": "share of documents cut to a random shorter length",
    "seed": "of all random draws",
    "dup": "passes over the text",
    "eval_samples": "samples in the evaluation set",
    "eval_every": "hold every n-th document out for evaluation; unused with --eval-text",
    "shards": "training files",
    "parts_per_file": "parts a text file is cut into; 0: one for each 64 MiB",
    "vocab_size": "train a WordPiece vocabulary of this size on the training text; unused with --vocab",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """0: done or intact; 1: the data are not; 2: the arguments are wrong."""
    options = _parser().parse_args(arguments)
    try:
        if options.verify is not None:
            return _verify(options.verify, options.workers)
        return _prepare(options)
    except FlagPerfError as error:
        print(error, file=sys.stderr)
        return 1


def _prepare(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    job = _job(options)
    made = pipeline.prepare(job, options.workers)
    print(_summary(job.out, made, time.monotonic() - begin))
    return 0


def _verify(directory: Path, workers: int) -> int:
    problems = manifest.verify(directory, workers=workers)
    for problem in problems:
        print(problem, file=sys.stderr)
    files = manifest.read(directory).files
    print(f"{directory}: {len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


def _job(options: argparse.Namespace) -> Job:
    given = {name: getattr(options, name) for name in HELP if getattr(options, name) is not None}
    defaults = DEMO if options.demo else Parameters()
    parameters = Parameters(**{**_as_dict(defaults), **given})
    texts = (DEMO_TEXT,) if options.demo else tuple(options.text)
    return Job(texts, tuple(options.eval_text), options.vocab, options.out, parameters)


def _as_dict(parameters: Parameters) -> dict[str, int | float]:
    return {field.name: getattr(parameters, field.name) for field in fields(parameters)}


def _summary(out: Path, made: manifest.Manifest, seconds: float) -> str:
    facts = made.facts
    return "\n".join(
        [
            f"{out}: {len(made.files)} files, {made.total_bytes / 1e6:.1f} MB, {seconds:.1f} s",
            f"  training    {facts['train_samples']} samples of {facts['train_documents']} documents, "
            f"{facts['train_fill']:.1%} of the positions filled",
            f"  evaluation  {facts['eval_samples']} samples, {facts['eval_masked_predictions']} predictions",
            f"  baseline    always {facts['eval_commonest_masked_token']!r}: MLM accuracy "
            f"{facts['eval_mlm_accuracy_of_commonest_token']:.4f}",
            f"  manifest    sha256 {made.digest}",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.bert.prepare",
        description="Make BERT's pre-training data (the layout of MLPerf's Wikipedia set) from plain text.",
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--text", type=Path, nargs="+", help="UTF-8, a sentence a line")
    action.add_argument("--demo", action="store_true", help="the embedded corpus, at the demo's size")
    action.add_argument("--verify", type=Path, metavar="DIR", help="name every file that is wrong")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the data set is made")
    parser.add_argument("--eval-text", type=Path, nargs="+", default=[], help="text held out for evaluation")
    parser.add_argument("--vocab", type=Path, help="vocab.txt of an uncased BERT model")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    for name, text in HELP.items():
        default, demo = getattr(Parameters(), name), getattr(DEMO, name)
        parser.add_argument(
            "--" + name.replace("_", "-"), type=type(default), help=f"{text} ({default}; demo: {demo})"
        )
    return parser
