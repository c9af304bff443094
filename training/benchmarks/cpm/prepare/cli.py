"""The command line: prepare a data set, or verify one."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.common.conversion import Original, convert
from benchmarks.common.torch_checkpoint import read_torch_checkpoint, unwrapped
from benchmarks.cpm.prepare import pipeline
from benchmarks.cpm.prepare.job import Job
from benchmarks.cpm.prepare.parameters import DEMO, Parameters
from utils import manifest
from utils.errors import ProblemsError
from utils.preparation import command

DEMO_TEXT = Path(__file__).parents[1] / "demo_data" / "verse.txt.xz"
PARAMETER_HELP = {
    "seq_length": "inputs of a sample; a chunk has a token more",
    "eval_every": "hold every n-th document out for evaluation; unused with --valid",
    "parts_per_file": "parts a text file is cut into; 0: one for each 32 MiB",
    "vocab_size": "train a SentencePiece vocabulary of this size on the training text; unused with --vocab",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 made or intact, 1 not, 2 wrong arguments, 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.train or options.demo) and options.out is None:
        parser.error("--out DIR is needed")
    if options.demo and options.valid:
        parser.error("--demo holds documents of its own corpus out: leave --valid away")
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
    made = pipeline.prepare(_job(options), workers=options.workers, restart=options.restart)
    print(_summary(options.out, made, time.monotonic() - begin))
    return command.OK


def _original(path: Path) -> Original:
    return read_torch_checkpoint(path, unwrapped)


def _parameters(options: argparse.Namespace) -> Parameters:
    given = command.given_parameters(options, PARAMETER_HELP)
    return Parameters(**{**asdict(DEMO if options.demo else Parameters()), **given})


def _job(options: argparse.Namespace) -> Job:
    train = (DEMO_TEXT,) if options.demo else tuple(options.train)
    return Job(train, tuple(options.valid), options.vocab, options.out, options.parameters)


def _summary(out: Path, made: manifest.Manifest, seconds: float) -> str:
    facts = made.facts
    length = made.parameters["seq_length"] + 1
    lines = [f"{out}: {len(made.files)} files, {made.total_bytes / 1e6:.1f} MB, {seconds:.1f} s"]
    for label, name in (("training", "train"), ("evaluation", "valid")):
        samples, tokens = facts[f"{name}_samples"], facts[f"{name}_tokens"]
        lines.append(
            f"  {label:<11} {samples} samples of {facts[f'{name}_documents']} documents, {tokens} tokens, "
            f"{tokens / (samples * length):.1%} of the positions filled, "
            f"{facts[f'{name}_unknown_tokens'] / tokens:.2%} unknown"
        )
    return "\n".join(
        [
            *lines,
            f"  vocabulary  {facts['vocab_size']} pieces",
            f"  baseline    token accuracy {facts['valid_token_accuracy_of_commonest_token']:.4f} "
            f"by always guessing {facts['valid_commonest_token']!r}",
            f"  manifest    sha256 {made.digest}",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.cpm.prepare",
        description="Make CPM's training data from text, a document a line. "
        "A killed or failed preparation goes on where it stopped when the same command is given again.",
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument(
        "--train", type=Path, nargs="+", help="UTF-8 (.xz, .gz, .bz2 too), a document a line: train.txt"
    )
    action.add_argument("--demo", action="store_true", help="the embedded corpus, at the demo's size")
    action.add_argument("--verify", type=Path, metavar="DIR", help="name every file that is not as made")
    command.add_common_options(parser, action)
    parser.add_argument("--valid", type=Path, nargs="+", default=[], help="text for evaluation: valid.txt")
    parser.add_argument("--vocab", type=Path, help="a SentencePiece model: chinese_vocab.model of CPM-1")
    command.add_parameter_options(parser, PARAMETER_HELP, Parameters(), DEMO)
    return parser
