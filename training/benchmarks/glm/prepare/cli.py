"""The command line: prepare a data set, or verify one."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.common.conversion import Original, convert
from benchmarks.common.torch_checkpoint import read_torch_checkpoint, unwrapped
from benchmarks.glm.baselines import BASELINES
from benchmarks.glm.prepare import pipeline
from benchmarks.glm.prepare.job import Job
from benchmarks.glm.prepare.parameters import DEMO, Parameters
from utils import manifest
from utils.errors import ProblemsError
from utils.preparation import command

PARAMETER_HELP = {
    "seq_length": "most tokens of a source and a candidate together",
    "max_candidates": "candidates of a question in training; evaluation has all",
    "seed": "draws the wrong candidates that are kept",
    "parts": "training files; a quarter of that for evaluation",
    "vocab_size": "train a WordPiece vocabulary of this size on the training text; unused with --vocab",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 made or intact, 1 not, 2 wrong arguments, 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.record or options.demo) and options.out is None:
        parser.error("--out DIR is needed")
    try:
        options.parameters = _parameters(options)
    except ProblemsError as error:
        parser.error(str(error))
    return command.guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    if options.verify:
        return command.verify(options.verify, options.workers)
    if options.convert_checkpoint:
        made = convert(options.convert_checkpoint, options.out, _original)
        print(f"{made}: converted")
        return command.OK
    job = Job(options.record, options.vocab, options.out, options.parameters)
    made = pipeline.prepare(job, workers=options.workers, restart=options.restart)
    print(_summary(job.out, made, time.monotonic() - begin))
    return command.OK


def _original(path: Path) -> Original:
    return read_torch_checkpoint(path, unwrapped)


def _parameters(options: argparse.Namespace) -> Parameters:
    given = command.given_parameters(options, PARAMETER_HELP)
    return Parameters(**{**asdict(DEMO if options.demo else Parameters()), **given})


def _summary(out: Path, made: manifest.Manifest, seconds: float) -> str:
    facts = made.facts
    lines = [f"{out}: {len(made.files)} files, {made.total_bytes / 1e6:.1f} MB, {seconds:.1f} s"]
    for label, name in (("training", "train"), ("evaluation", "val")):
        questions = facts[f"{name}_questions"]
        lines.append(
            f"  {label:<11} {questions} questions of {facts[f'{name}_queries']} queries on {facts[f'{name}_passages']} "
            f"passages, {facts[f'{name}_candidates'] / questions:.1f} candidates and "
            f"{facts[f'{name}_tokens'] / questions:.0f} tokens each"
        )
    trivial = ", ".join(
        f"{facts[f'val_exact_match_{name}']:.4f} {name.replace('_', ' ')}" for name in BASELINES
    )
    return "\n".join(
        [
            *lines,
            f"  vocabulary  {facts['vocab_size']} tokens",
            f"  baselines   exact match {trivial}",
            f"  manifest    sha256 {made.digest}",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.glm.prepare",
        description="Make GLM's questions from ReCoRD. "
        "A killed or failed preparation goes on where it stopped when the same command is given again.",
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument(
        "--record", type=Path, metavar="ZIP_OR_DIR", help="ReCoRD.zip, or what was unpacked from it"
    )
    action.add_argument("--demo", action="store_true", help="the embedded text, at the demo's size")
    action.add_argument("--verify", type=Path, metavar="DIR", help="name every file that is not as made")
    command.add_common_options(parser, action)
    parser.add_argument("--vocab", type=Path, help="vocab.txt of bert-large-uncased")
    command.add_parameter_options(parser, PARAMETER_HELP, Parameters(), DEMO)
    return parser
