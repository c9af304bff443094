"""Lint of what images are made of: Dockerfiles, and the shell scripts of a vendor's folder."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from run_benchmarks.conformance.records import Check, failed

BASE = "BASE_IMAGE"
UNBUFFERED = "PYTHONUNBUFFERED=1"
# A tag that says which one, or a digest: what is built tomorrow is built on what was built on today.
_PINNED = re.compile(r"\S+?[\w.-]+(:(?!latest$)[\w.-]+|(:[\w.-]+)?@sha256:[0-9a-f]{64})")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_INSTRUCTION = re.compile(r"\s*(?P<word>[A-Za-z]+)\s+(?P<rest>.*)", re.DOTALL)
INSTALLS = "docker_image/*/*_install.sh"
SOURCED = "*-*/config/environment_variables.sh"
LIMIT_S = 60.0


def dockerfile_trouble(path: Path) -> Iterator[Check]:
    """A base that cannot be replaced or may be another one tomorrow, and output that is lost with a killed rank."""
    instructions = list(_instructions(path.read_text(errors="replace")))
    arguments = {
        name: value
        for _, word, rest in instructions
        if word == "ARG"
        for name, _, value in [rest.partition("=")]
    }
    bases = [(line, rest.split()) for line, word, rest in instructions if word == "FROM"]
    if not bases or f"${{{BASE}}}" not in bases[0][1] or BASE not in arguments:
        remedy = f"begin with `ARG {BASE}=<image>:<tag>` and `FROM ${{{BASE}}}`: sites have mirrors"
        yield failed("its base image cannot be replaced", path, remedy)
    stages = {words[-1] for _, words in bases if len(words) > 2}
    for line, words in bases:
        image = next(word for word in words if not word.startswith("--"))
        image = _VARIABLE.sub(lambda name: arguments.get(name[1], ""), image)
        if image not in stages and not _PINNED.fullmatch(image):
            remedy = (
                "name a tag other than latest, or a digest: else the same file makes another image tomorrow"
            )
            yield failed(
                f"its base image is not pinned: {image or 'it has no default'}", f"{path}:{line}", remedy
            )
    if not any(word == "ENV" and UNBUFFERED in rest for _, word, rest in instructions):
        yield failed("a rank that is killed would lose its last lines", path, f"add `ENV {UNBUFFERED}`")


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


def shell_trouble(script: Path) -> Iterator[Check]:
    """What its own shell cannot parse, errors that would be passed over, and what shellcheck says where it is."""
    lines = script.read_text(errors="replace").splitlines() or [""]
    shell = "sh" if lines[0] == "#!/bin/sh" else "bash"
    if script.match(INSTALLS.rpartition("/")[2]):
        if not re.fullmatch(r"#!(/bin/sh|/bin/bash|/usr/bin/env bash)", lines[0]):
            yield failed(f"its first line is {lines[0]!r}", f"{script}:1", "write #!/bin/sh")
        if not any(re.match(r"set -\w*e", line) for line in lines):
            yield failed(
                "it goes on after an error, and an image without a part is kept", script, "add `set -eu`"
            )
    yield from _lint([shell, "-n", str(script)], script, "correct it; it is parsed by its own shell")
    if shutil.which("shellcheck"):
        argv = ["shellcheck", "--severity=warning", f"--shell={shell}", "--format=gcc", str(script)]
        yield from _lint(argv, script, "mend it as shellcheck says")


def _lint(argv: list[str], script: Path, remedy: str) -> Iterator[Check]:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        yield failed("; ".join(words[:3]) or f"{argv[0]} ended with {done.returncode}", script, remedy)
