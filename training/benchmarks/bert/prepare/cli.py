"""The command line: prepare a data set, verify one, or write the manifest of one made elsewhere."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.bert.prepare import adopt, md5, pipeline
from benchmarks.bert.prepare.job import Job
from benchmarks.bert.prepare.originals import read_original
from benchmarks.bert.prepare.parameters import DEMO, Parameters
from benchmarks.common.conversion import convert
from utils import manifest
from utils.errors import ProblemsError
from utils.preparation import command

DEMO_TEXT = Path(__file__).parents[1] / "demo_data" / "kjv.txt.xz"
PARAMETER_HELP = {
    "seq_length": "tokens in a sample",
    "max_predictions": "most masked tokens in a sample",
    "mask_prob": "share of the tokens that are masked",
    "short_seq_prob": "share of the documents cut to a random shorter length",
    "seed": "of all random draws",
    "dup": "passes over the text, each with other pairs and masks",
    "eval_samples": "samples in the evaluation set",
    "eval_every": "hold every n-th document out for evaluation; unused with --eval-text",
    "shards": "training files",
    "parts_per_file": "parts a text file is cut into; 0: one for each 64 MiB",
    "vocab_size": "train a WordPiece vocabulary of this size on the training text; unused with --vocab",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 made or intact, 1 not, 2 wrong arguments, 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.text or options.demo) and options.out is None:
        parser.error("--out DIR is needed")
    if options.demo and options.eval_text:
        parser.error("--demo holds chapters of its own corpus out: leave --eval-text away")
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
        print(f"{convert(options.convert_checkpoint, options.out, read_original)}: converted")
        return command.OK
    if options.write_manifest:
        made = adopt.adopt(options.write_manifest, workers=options.workers)
        print(f"{options.write_manifest}: {len(made.files)} files, manifest sha256 {made.digest}")
        return command.OK
    job = _job(options)
    if options.text_md5:
        md5.check([*job.texts, *job.eval_texts], options.text_md5, options.workers)
    made = pipeline.prepare(job, workers=options.workers, restart=options.restart)
    print(_summary(job.out, made, time.monotonic() - begin))
    return command.OK


def _parameters(options: argparse.Namespace) -> Parameters:
    given = command.given_parameters(options, PARAMETER_HELP)
    return Parameters(**{**asdict(DEMO if options.demo else Parameters()), **given})


def _job(options: argparse.Namespace) -> Job:
    texts = (DEMO_TEXT,) if options.demo else tuple(options.text)
    return Job(texts, tuple(options.eval_text), options.vocab, options.out, options.parameters)


def _summary(out: Path, made: manifest.Manifest, seconds: float) -> str:
    facts = made.facts
    fill = facts["train_tokens"] / (facts["train_samples"] * made.parameters["seq_length"])
    return "\n".join(
        [
            f"{out}: {len(made.files)} files, {made.total_bytes / 1e6:.1f} MB, {seconds:.1f} s",
            f"  training    {facts['train_samples']} samples of {facts['train_documents']} documents, "
            f"{fill:.1%} of the positions filled",
            f"  evaluation  {facts['eval_samples']} samples, {facts['eval_masked_predictions']} predictions",
            f"  baseline    MLM accuracy {facts['eval_mlm_accuracy_of_commonest_token']:.4f} "
            f"by always guessing {facts['eval_commonest_masked_token']!r}",
            f"  manifest    sha256 {made.digest}",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.bert.prepare",
        description="Make BERT's pre-training data (the layout of MLPerf's Wikipedia set) from plain text. "
        "A killed or failed preparation goes on where it stopped when the same command is given again.",
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument(
        "--text",
        type=Path,
        nargs="+",
        help="UTF-8 (.xz, .gz, .bz2 too), a sentence a line, blank line between documents",
    )
    action.add_argument("--demo", action="store_true", help="the embedded corpus, at the demo's size")
    action.add_argument("--verify", type=Path, metavar="DIR", help="name every file that is not as made")
    action.add_argument("--write-manifest", type=Path, metavar="DIR", help="of a data set made elsewhere")
    command.add_common_options(parser, action)
    parser.add_argument("--eval-text", type=Path, nargs="+", default=[], help="text held out for evaluation")
    parser.add_argument("--vocab", type=Path, help="vocab.txt of an uncased BERT model")
    parser.add_argument("--text-md5", type=Path, metavar="FILE", help="check the text against these MD5 sums")
    command.add_parameter_options(parser, PARAMETER_HELP, Parameters(), DEMO)
    return parser
