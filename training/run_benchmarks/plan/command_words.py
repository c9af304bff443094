"""Commands as lists of words: what an engine would not take for an option, and what no shell will read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from run_benchmarks.plan.problems import UnfitError

# Options of engines' that take no value, of those that a container of chips may get: a bare word is none behind these.
FLAGS = frozenset(
    {
        "--privileged",
        "--init",
        "--read-only",
        "--oom-kill-disable",
        "--no-healthcheck",
        "--interactive",
        "--tty",
    }
    | {"--detach", "-d", "-i", "-t", "-it", "-ti", "-itd"}
)
# Options of FlagPerf's own -> why no others can be given.
OWN = {
    "--name": "gives task and monitor one name, which no two containers can have; FlagPerf names each",
    "--rm": "takes a task's exit code and last output away with it; FlagPerf removes each container, once it has them",
    "--restart": "starts a task again that has ended, and its exit code is lost; FlagPerf starts each once",
}
NUMBER = "{n}"
_BRACES = re.compile(r"(?<!\{)\{\w*\}(?!\})")  # twice is a template of the engine's: {{.Name}}
_OF_SHELL = re.compile(r"[|&;<>]+|\d?>+(&\d)?|(?!-e|--env|-l|--label)\S+;")  # a variable may end so
SHELL = "no shell reads them: neither pipes nor a second command"


def check_options(words: Sequence[str]) -> None:
    """Refuse words that an engine would take for the image, or that FlagPerf says itself; the word is not shown.

    Raises:
        UnfitError: there is one.
    """
    before = ""
    for place, word in enumerate(words, 1):
        is_value = word[:1] != "-" and before[:1] == "-" and "=" not in before and before not in FLAGS
        if _OF_SHELL.fullmatch(word) and not is_value:
            raise UnfitError(f"its word {place} is a shell's", f"write options alone; {SHELL}")
        if word[:1] != "-" and not is_value:
            message = f"its word {place} is no option: an engine would take it for the image"
            raise UnfitError(message, f"write --OPTION=VALUE, each beginning with -; {SHELL}")
        if (name := word.partition("=")[0]) in OWN:
            raise UnfitError(f"{name} {OWN[name]}", f"remove {name}")
        before = word


def check_numbers(words: Sequence[str]) -> None:
    """Refuse braces that stand for nothing: `{n}` is a rank's number; raises UnfitError."""
    for word in words:
        for braces in _BRACES.findall(word):
            if braces != NUMBER:
                raise UnfitError(
                    f"{braces} stands for nothing", f"write {NUMBER}, for the number of each rank, from 0"
                )


def check_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command, unless it was written for a shell; raises UnfitError."""
    for word in words[:1]:
        if re.search(r"[|&;<>]", word) or (re.search(r"\s", word) and not word.startswith("/")):
            message = f"{word!r} is no program: a command is started as it stands, without a shell"
            raise UnfitError(
                message,
                'write each word for itself, e.g. ["acme-smi", "-L"], and let parse_device_list choose',
            )
    for word in words[1:]:
        if re.fullmatch(r"[|&;<>]+", word):
            raise UnfitError(
                f"{word!r} is a shell's, and a command is started without one",
                "write one program and its arguments; parse_device_list chooses",
            )
    return words
