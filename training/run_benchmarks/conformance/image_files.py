"""Lint of what images are made of: Dockerfiles, and the shell scripts of a vendor's folder."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from run_benchmarks.conformance.records import CheckResult, failed
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.plan.shell_file import syntax_error
from run_benchmarks.plan.source_code import text_of
from utils.errors import FlagPerfError, nearest
from utils.monitors.tool import run_tool
from utils.text_files import one_line

BASE = "BASE_IMAGE"
UNBUFFERED = "PYTHONUNBUFFERED=1"
# Tags that are given to another image every now and then.
MOVING = "latest|nightly|dev|develop|edge|main|master|rolling|stable"
# A tag that says which one, or a digest: what is built tomorrow is built on what was built on today.
_PINNED = re.compile(rf"[^\s@]+(?<=[\w.-])(:(?!({MOVING})$)[\w.-]+|(:[\w.-]+)?@sha256:[0-9a-f]{{64}})")
# Of Docker's and Podman's builds.
INSTRUCTIONS = (
    "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME "
    "WORKDIR"
)
# What pip is told without a value; behind another option stands what is no package.
_PIP_FLAGS = re.compile(
    r"-[qvUI]+|--(quiet|verbose|upgrade|user|pre|no-[\w-]+|force-reinstall|break-system-packages)"
)
_PIP = re.compile(r"pip3?(\.\d+)?")
_UNPINNED = re.compile(r"[A-Za-z][\w.-]*(\[[\w,.-]+\])?((>=|<=|~=|!=|>|<)[^=]*)?")
_COPIED = re.compile(r"--from=(\S+)")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_INSTRUCTION = re.compile(r"\s*(?P<word>[A-Za-z]+)\s+(?P<rest>.*)", re.DOTALL)
INSTALLS = "docker_image/*/*_install.sh"
SOURCED = "*-*/config/environment_variables.sh"
LIMIT_S = 60.0
# Characters of a line: nobody writes what is installed into a longer one, and shlex's time is quadratic.
LONGEST_LINE = 2**14


def dockerfile_trouble(path: Path) -> Iterator[CheckResult]:
    """A base that cannot be replaced or may be another one tomorrow, and output that is lost with a killed rank."""
    text = text_of(path)
    instructions = list(_instructions(text))
    declared = [(line, rest.partition("=")) for line, word, rest in instructions if word == "ARG"]
    arguments = {name: (line, default) for line, (name, _, default) in declared}
    bases = [(line, rest.split()) for line, word, rest in instructions if word == "FROM"]
    if not bases or f"${{{BASE}}}" not in bases[0][1] or BASE not in arguments:
        remedy = f"begin with `ARG {BASE}=<image>:<tag>` and `FROM ${{{BASE}}}`: sites have mirrors"
        yield failed("its base image cannot be replaced", path, remedy)
    stages = {words[-1] for _, words in bases if len(words) > 2}
    copies = [(line, _COPIED.findall(rest)) for line, word, rest in instructions if word == "COPY"]
    for line, words in (*bases, *copies):
        for image in [word for word in words if not word.startswith("--")][:1]:
            line = next((arguments[name][0] for name in _VARIABLE.findall(image) if name in arguments), line)
            image = _VARIABLE.sub(lambda name: arguments.get(name[1], (0, ""))[1], image)
            if not (image in stages or image.isdecimal() or _PINNED.fullmatch(image)):
                digest = image.partition("@sha256:")[2]
                short = f" (its digest has {len(digest)} characters in place of 64)" if digest else ""
                what = f"its base image is not pinned: {image or 'it has no default'}{short}"
                remedy = "name a tag other than latest, or a digest: else the same file makes another image tomorrow"
                yield failed(what, f"{path}:{line}", remedy)
    if not any(word == "ENV" and UNBUFFERED in rest for _, word, rest in instructions):
        yield failed("a rank that is killed would lose its last lines", path, f"add `ENV {UNBUFFERED}`")
    for line, detail, remedy in _of_lines(path.parent, instructions, has_documents="<<" in text):
        yield failed(detail, f"{path}:{line}", remedy)


def _of_lines(
    folder: Path, instructions: Iterable[tuple[int, str, str]], *, has_documents: bool
) -> Iterator[tuple[int, str, str]]:
    """Line, what is wrong with it by itself, what to do. A file with here-documents has lines that are none."""
    for line, word, rest in instructions:
        if word not in INSTRUCTIONS.split() and not has_documents:
            yield (
                line,
                f"{word} is no instruction",
                nearest(word, INSTRUCTIONS.split()) or f"use {INSTRUCTIONS}",
            )
        elif word == "ARG" and Secrets().are_named(rest.partition("=")[0]):
            name = rest.partition("=")[0]
            remedy = f"mount it: RUN --mount=type=secret,id={name} (docs/images.md, Secrets of a build)"
            yield line, f"`ARG {name}` would put a secret into the image's history", remedy
        elif word in ("COPY", "ADD"):
            for source in _missing(folder, rest):
                yield (
                    line,
                    f"there is no {source} in {folder.name}/, which is all that a build sees",
                    "put it there",
                )
        elif word == "RUN":
            for detail, remedy in unpinned(rest):
                yield line, detail, remedy


def _missing(folder: Path, rest: str) -> Iterator[str]:
    """What COPY or ADD takes from the folder that is not there, as far as its name tells."""
    words = [word for word in rest.split() if not word.startswith("--")]
    is_elsewhere = "--from=" in rest or rest.startswith("[") or "<<" in rest
    for source in () if is_elsewhere else words[:-1]:
        if not re.search(r"[$*?\[\\]|://|^git@", source) and not (folder / source.lstrip("/")).exists():
            yield source


def unpinned(line: str) -> Iterator[tuple[str, str]]:
    """What `pip install` in a shell's line names without its version, as far as the line tells, and what to do."""
    if len(line) > LONGEST_LINE:
        return
    lexer = shlex.shlex(line.rstrip("\\"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quotation goes on in the next line
        return
    before, is_pip = "", False
    for word in words:
        if re.fullmatch(r"[();<>|&]+", word):
            is_pip = False
        elif word == "install" and _PIP.fullmatch(before.rpartition("/")[2]):
            is_pip = True
        elif is_pip and _UNPINNED.fullmatch(word) and (before[:1] != "-" or _PIP_FLAGS.fullmatch(before)):
            remedy = f"write {re.split('[<>=!~]', word)[0]}==VERSION"
            yield f"pip installs {word} of any version: tomorrow's image is another", remedy
        before = word


def _instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, word and rest of each instruction, of several lines or one."""
    begun, parts = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (line.strip() or parts):
            continue
        begun = begun if parts else number
        parts += line.rstrip().removesuffix("\\") + " "
        if not line.rstrip().endswith("\\"):
            if match := _INSTRUCTION.fullmatch(parts):
                yield begun, match["word"].upper(), match["rest"].strip()
            parts = ""


def shells(vendor: Path) -> list[Path]:
    """The scripts that images are installed with, and those that are sourced before ranks start."""
    return sorted([*vendor.glob(INSTALLS), *vendor.glob(SOURCED)])


def shell_trouble(script: Path) -> Iterator[CheckResult]:
    """What its own shell cannot parse, errors that would be passed over, and what shellcheck says where it is."""
    lines = text_of(script).splitlines() or [""]
    shell = "sh" if lines[0] == "#!/bin/sh" else "bash"
    if script.match(INSTALLS.rpartition("/")[2]):
        if not re.fullmatch(r"#!(/bin/sh|/bin/bash|/usr/bin/env bash)", lines[0]):
            yield failed(f"its first line is {lines[0]!r}", f"{script}:1", "write #!/bin/sh")
        if not any(re.match(r"set -\w*e", line) for line in lines):
            yield failed(
                "it goes on after an error, and an image without a part is kept", script, "add `set -eu`"
            )
    for number, line in enumerate(lines, 1):
        for detail, remedy in unpinned(line):
            yield failed(detail, f"{script}:{number}", remedy)
    remedy = "correct it; it is parsed by its own shell"
    if shell == "sh":
        yield from _lint([shell, "-n", str(script)], script, remedy)
    elif refused := syntax_error(script):
        yield failed(f"bash cannot parse it: {refused[1]}", refused[0], remedy)
    if shutil.which("shellcheck"):
        argv = ["shellcheck", "--severity=warning", f"--shell={shell}", "--format=gcc", str(script)]
        yield from _lint(argv, script, "mend it as shellcheck says")


def _lint(argv: list[str], script: Path, remedy: str) -> Iterator[CheckResult]:
    try:
        run_tool(argv, LIMIT_S)
    except FlagPerfError as error:
        yield failed(one_line(error.message), script, remedy)
