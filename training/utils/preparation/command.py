"""What the `prepare` commands of all cases have in common: options, verifying, exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from utils import manifest
from utils.errors import FlagPerfError
from utils.preparation.progress import Progress

OK, DATA_ERROR, INTERRUPTED = 0, 1, 130  # argparse exits 2 for wrong arguments


def add_common_options(parser: argparse.ArgumentParser, action: Any) -> None:
    """--out, --workers and --restart; --convert-checkpoint as one of the actions."""
    action.add_argument(
        "--convert-checkpoint",
        type=Path,
        metavar="CHECKPOINT",
        help="write an initial checkpoint, as others made it, as the safetensors file that the case reads: "
        "beside it, or as --out FILE",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the data set is made")
    parser.add_argument(
        "--workers", type=_positive, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)"
    )
    parser.add_argument("--restart", action="store_true", help="discard unfinished work of an earlier call")


def add_parameter_options(
    parser: argparse.ArgumentParser, texts: Mapping[str, str], usual: object, demo: object
) -> None:
    """An option for each parameter in `texts`, which holds its help; its values in `usual` and `demo` are shown."""
    for name, text in texts.items():
        default, of_demo = getattr(usual, name), getattr(demo, name)
        shown = f"{text} ({default})" if default == of_demo else f"{text} ({default}; demo: {of_demo})"
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), help=shown)


def given_parameters(options: argparse.Namespace, texts: Mapping[str, str]) -> dict[str, Any]:
    """Those of the parameters in `texts` that the command line sets."""
    return {name: value for name in texts if (value := getattr(options, name)) is not None}


def guarded(command: Callable[[], int]) -> int:
    """The exit code of `command`: its own, 1 after a FlagPerfError (printed), 130 after Ctrl-C."""
    try:
        return command()
    except FlagPerfError as error:
        print(error, file=sys.stderr)
        return DATA_ERROR
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED


def verify(directory: Path, workers: int) -> int:
    """Print each file that is not what the manifest says; 1 if there is one."""
    known = manifest.read(directory)
    progress = Progress("verify, MB", known.total_bytes // 1_000_000)
    problems = manifest.verify(
        directory, workers=workers, report=lambda done: progress.show(done // 1_000_000)
    )
    progress.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{directory}: {len(known.files)} files, {known.total_bytes} bytes, {len(problems)} problems")
    return DATA_ERROR if problems else OK


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value
