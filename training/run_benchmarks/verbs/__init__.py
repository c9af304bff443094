"""The verbs of `run.py`: one module each, found by its being here. `main` is the way in.

A verb's module has `NAME`, `HELP` (a line), `add_arguments(parser)` and `run(arguments) -> int`, the exit
code. It imports at its top nothing that is heavy or may be missing: all are loaded to make the help text,
and one verb must work where what another one needs does not. What it needs it imports in `run`.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from run_benchmarks import BANNER
from run_benchmarks.commands import run_command
from run_benchmarks.exit_code import MEANINGS, ExitCode
from run_benchmarks.output import NotPrintedError, complain
from run_benchmarks.program import discard_output
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError, ProblemsError, file_error, nearest

DEFAULT_VERB = "run"
_CODES = "\n".join(f"{code:>5}  {meaning}" for code, meaning in MEANINGS.items())
EPILOG = f"exit codes:\n{_CODES}\n\n`run.py VERB --help` says what a verb takes.\n"


class Verb(Protocol):
    """What a module of this folder has."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's options; those that it shares with others come from `options`."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do what the command line says; the exit code. A FlagPerfError says that nothing was done."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says.

    Returns:
        The exit code (see EPILOG).
    """
    arguments = parse(argv)
    verb: Verb = arguments.verb
    try:
        return verb.run(arguments)
    except BrokenPipeError:  # whoever read our output, `head` say, has read enough
        discard_output()
        return ExitCode.NOBODY_READ_ON
    except NotPrintedError as error:
        complain(error)
        return ExitCode.NOT_PRINTED
    except ProblemsError as error:
        return _refuse(error)
    except FlagPerfError as error:
        complain(error)
        return ExitCode.BAD_CONFIG
    except OSError as error:
        if error.filename is None:
            raise
        complain(file_error(error))
        return ExitCode.BAD_CONFIG


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says; where it cannot be read, the process ends with 2, as with argparse."""
    return _parser(find_verbs()).parse_args(argv)


def find_verbs() -> dict[str, Verb]:
    """Name -> the verb, by name, but for the default, which comes first."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.name != "options"]
    verbs: list[Verb] = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {
        verb.NAME: verb for verb in sorted(verbs, key=lambda verb: (verb.NAME != DEFAULT_VERB, verb.NAME))
    }


def _refuse(error: ProblemsError) -> int:
    from run_benchmarks.plan.problems import NoValidCaseError

    for problem in error.problems:
        complain(problem)
    count = len(error.problems)
    complain(f"{count} problem{'s' if count > 1 else ''}; nothing was done")
    return ExitCode.NO_VALID_CASE if isinstance(error, NoValidCaseError) else ExitCode.BAD_CONFIG


class _VerbParser(argparse.ArgumentParser):
    """Says how a value is written that argparse takes for an option."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2, as argparse does."""
        option = re.fullmatch(r"argument (?:.*/)?(--[\w-]+): expected one argument", message)
        if option:
            message += f"\n    -> a value that begins with - stands behind =, as in {option[1]}=-VALUE"
        super().error(message)


class _Parser(_VerbParser):
    """Says which verb was meant where one is misspelt."""

    verbs: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """End with exit code 2, as argparse does."""
        misspelt = re.search(r"invalid choice: '(.*?)'", message)
        if misspelt:
            help_command = run_command("--help")
            remedy = nearest(misspelt[1], self.verbs) or f"{help_command} says what each of them does"
            message = f"{misspelt[1]!r} is none of the verbs {', '.join(self.verbs)}\n    -> {remedy}"
        super().error(message)


def _parser(verbs: Mapping[str, Verb]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="run.py",
        usage="run.py [VERB] [options]",
        description=f"{BANNER}.\nEdit config/cluster_conf.py and config/test_conf.py, then run this without a verb.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.verbs = tuple(verbs)
    # The default verb's options need no verb; every verb's may stand before it.
    verbs[DEFAULT_VERB].add_arguments(parser)
    parser.set_defaults(verb=verbs[DEFAULT_VERB], **options.DEFAULTS)
    rooms = parser.add_subparsers(title="verbs", metavar="", prog="run.py", parser_class=_VerbParser)
    for name, verb in verbs.items():
        room = rooms.add_parser(name, help=verb.HELP, description=verb.HELP)
        verb.add_arguments(room)
        room.set_defaults(verb=verb)
    return parser
