"""The `prepare` command, the same for every case: arguments, actions, errors, exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from benchmarks.common.conversion import Original, convert
from benchmarks.common.preparation.bars import progress
from benchmarks.common.preparation.partial import Done, Facts, PartialDataset
from benchmarks.common.preparation.recipe import RecipeParameters, already_made, files_of, option_of
from benchmarks.common.preparation.workers import Workers
from benchmarks.common.torch_checkpoint import read_torch_checkpoint, unwrapped
from utils import manifest
from utils.errors import FlagPerfError, ProblemsError

OK, DATA_ERROR, INTERRUPTED = 0, 1, 130  # argparse exits 2 for wrong arguments


class Inputs(Protocol):
    """The files that are read, and the parameters."""

    def recipe(self, workers: int) -> Mapping[str, Any]:
        """What decides the data set: equal recipes make equal files. Reads every input once."""
        ...


InputsT = TypeVar("InputsT", bound=Inputs)


class Preparation(ABC, Generic[InputsT]):
    """A case's preparation. `main` is its command.

    Attributes:
        model: the case's folder below `benchmarks`; the data set's name in the manifest.
        tool: stands in the manifest. Its number changes when the same input would give other samples.
        about: what the command's help says of it.
        usual, demo: the parameters by default, and of `--demo`; None: it has none.
        source: the option that names the text; None: the data need none.
        converts: it can convert initial checkpoints, by `read_checkpoint`.
    """

    model: ClassVar[str]
    tool: ClassVar[str]
    about: ClassVar[str]
    usual: ClassVar[RecipeParameters] = RecipeParameters()
    demo: ClassVar[RecipeParameters | None] = None
    source: ClassVar[str | None] = None
    converts: ClassVar[bool] = False

    def inputs(self, options: argparse.Namespace, parameters: Any) -> InputsT:
        """What the command line asks for: the parameters alone, unless files are read too.

        Raises:
            FlagPerfError: an input is wrong.
        """
        asked: InputsT = parameters
        return asked

    @abstractmethod
    def make(self, inputs: InputsT, partial: PartialDataset, pool: Workers) -> tuple[Facts, Sequence[Done]]:
        """The story: make every file of the data set.

        Returns:
            The facts of the manifest, and the steps whose files it lists.
        """

    def add_options(self, parser: argparse.ArgumentParser, action: Any) -> None:
        """Options of the case's own; `action` takes those of which one is given."""

    def check_options(self, parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
        """End by `parser.error` where options do not go together."""

    def other_action(self, options: argparse.Namespace) -> bool:
        """Do an action of the case's own, if one is asked for."""
        return False

    def read_checkpoint(self, path: Path) -> Original:
        """An initial checkpoint as others write it: a file of `torch.save`; FlagPerfError where it is none."""
        return read_torch_checkpoint(path, unwrapped)

    def summary(self, made: manifest.Manifest) -> list[str]:
        """Lines that say what was made."""
        return []

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Exit code: 0 made or intact, 1 not, 2 wrong arguments, 130 interrupted."""
        parser = self._parser()
        options = parser.parse_args(arguments)
        wants_data = self.source is None or options.demo or getattr(options, self.source)
        if wants_data and not options.verify and options.out is None:
            parser.error("--out DIR is needed")
        self.check_options(parser, options)
        try:
            parameters = self._parameters(options)
        except ProblemsError as error:
            parser.error(str(error))
        try:
            return self._run(options, parameters)
        except FlagPerfError as error:
            print(error, file=sys.stderr)
            return DATA_ERROR
        except KeyboardInterrupt:
            print("interrupted: the same command goes on from where it stopped", file=sys.stderr)
            return INTERRUPTED

    def _run(self, options: argparse.Namespace, parameters: RecipeParameters) -> int:
        if options.verify:
            return _verify(options.verify, options.workers)
        if self.converts and options.convert_checkpoint:
            made = convert(options.convert_checkpoint, options.out, self.read_checkpoint)
            print(f"{made}: converted from {options.convert_checkpoint}")
        elif not self.other_action(options):
            self._prepare(options, parameters)
        return OK

    def _prepare(self, options: argparse.Namespace, parameters: RecipeParameters) -> None:
        """Make the data set, or find it made, and say what it is."""
        begin, out = time.monotonic(), options.out.resolve()
        inputs = self.inputs(options, parameters)
        recipe = inputs.recipe(options.workers)
        made = already_made(out, recipe, options.workers)
        if made is None:
            partial = PartialDataset.of(out, recipe)
            with partial.opened(), Workers.started(options.workers) as pool:
                facts, done = self.make(inputs, partial, pool)
                made = manifest.Manifest(self.model, self.tool, recipe, facts, files_of(done))
                partial.finish(made)
        else:
            print(f"{out}: already made and intact", file=sys.stderr)
        seconds = time.monotonic() - begin
        print(f"{out}: {len(made.files)} files, {made.total_bytes / 1e6:.1f} MB, {seconds:.1f} s")
        for line in [*self.summary(made), f"manifest    sha256 {made.digest}"]:
            print(f"  {line}")

    def _parameters(self, options: argparse.Namespace) -> RecipeParameters:
        given = {name: value for name in asdict(self.usual) if (value := getattr(options, name)) is not None}
        base = self.demo if self.demo is not None and options.demo else self.usual
        return type(base)(**{**asdict(base), **given})

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python3 -m benchmarks.{self.model}.prepare",
            description=f"{self.about} It is built beside --out DIR and renamed when it is whole; where a "
            "preparation was killed or failed, the same command goes on.",
        )
        action = parser.add_mutually_exclusive_group(required=self.source is not None)
        if self.demo is not None:
            action.add_argument(
                "--demo", action="store_true", help="the demo's data, of its size: no input is needed"
            )
        action.add_argument("--verify", type=Path, metavar="DIR", help="name every file that is not as made")
        if self.converts:
            action.add_argument(
                "--convert-checkpoint",
                type=Path,
                metavar="CHECKPOINT",
                help="write an initial checkpoint, as others made it, as the safetensors file that the case "
                "begins from: beside it, or as --out FILE",
            )
        parser.add_argument(
            "--out", type=Path, metavar="DIR", help="where the data set is made: new or empty"
        )
        cores = len(os.sched_getaffinity(0))
        parser.add_argument("--workers", type=_positive, default=cores, help="processes (%(default)s)")
        self.add_options(parser, action)
        self._add_parameter_options(parser)
        return parser

    def _add_parameter_options(self, parser: argparse.ArgumentParser) -> None:
        for each in fields(self.usual):
            usual, demo = (getattr(one, each.name, each.default) for one in (self.usual, self.demo))
            shown = f"{usual}" if usual == demo else f"{usual}; demo: {demo}"
            parser.add_argument(
                option_of(each.name), type=type(usual), help=f"{each.metadata['help']} ({shown})"
            )


def _verify(directory: Path, workers: int) -> int:
    """Print each file that is not what the manifest says; 1 if there is one."""
    listed = manifest.read(directory)
    with progress("verify", listed.total_bytes, unit="B", unit_scale=True) as bar:
        problems = manifest.verify(directory, workers=workers, report=lambda done: _advance(bar, done))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{directory}: {len(listed.files)} files, {listed.total_bytes} bytes, {len(problems)} problems")
    return DATA_ERROR if problems else OK


def _advance(bar: Any, done: int) -> None:
    bar.update(done - bar.n)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value
