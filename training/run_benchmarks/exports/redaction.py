"""Secrets taken out of what leaves this machine: by name, as everywhere, and by every value that can be had here.

Values come from this controller's settings and environment, and from the run's own files: what is assigned to a
secret's name in one of them is hidden in all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from run_benchmarks.plan.config_file import read_leniently
from run_benchmarks.plan.machine import MACHINE_CONF
from run_benchmarks.plan.redact import (
    HIDDEN,
    redact_key,
    redact_program,
    redact_text,
    secrets_in_text,
)
from run_benchmarks.plan.secrets import Secrets, secrets_of
from utils.errors import FlagPerfError
from utils.secret_names import is_secret_name

# In what a host has installed names are packages', `base-passwd` among them.
PACKAGES = ("packages", "system_packages")
_KEY_BEGINS, LONGEST_KEY = re.compile("-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"), 200
_OF_KEY = re.compile(r"[A-Za-z0-9+/=]{16,}")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
MOST_LINES, MOST_OF_LINES, PARTS = 200_000, 2**22, 16
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# In code names speak of variables; what is set for a run stands in its configuration, and in files of other kinds.
_PROGRAMS, _CONFIGURATION = (
    (".py", ".pyx", ".pyi", ".c", ".h", ".cc", ".cpp", ".hpp", ".cu", ".cuh"),
    "/config/",
)
# A word alone is as likely what a program says (`token: missing`); where it is assigned it is hidden all the same.
_WORD = re.compile(r"[A-Za-z_.]+|[\W\d_]+|\d{4}-\d\d-\d\dT[\d:.+Z-]+")


def secrets_here(config: Path, training_dir: Path) -> Secrets:
    """What this controller has to hide, whatever else is wrong with its settings."""
    folders = {"cluster_conf.py": config, "test_conf.py": config}
    folders[MACHINE_CONF] = training_dir / "run_benchmarks" / "config"
    files = [read_leniently(folder / name) for name, folder in folders.items()]
    lists = [marks for file in files if isinstance(marks := file.get("SECRETS"), (list, tuple))]
    marked = [name for marks in lists for name in marks if isinstance(name, str)]
    secrets = secrets_of(marked, *files)
    own = {value for name, value in os.environ.items() if secrets.are_named(name)}
    return replace(secrets, held=secrets.held | own | _planned(config, training_dir))


def shown_here(config: Path, training_dir: Path) -> Secrets:
    """What is hidden in what is shown of a run: the same, and by name too."""
    return replace(secrets_here(config, training_dir), by_name=True)


def _planned(config: Path, training_dir: Path) -> frozenset[str]:
    """What the whole plan adds: pip's settings of this machine, the cases' environment; none where it is not valid."""
    from run_benchmarks.plan.load import load_plan

    try:
        return load_plan(config, training_dir).secrets.held
    except FlagPerfError:
        return frozenset()


@dataclass
class Searched:
    """How files of one node are searched: by blocks, and line by line only where a block has something to hide.

    lines, size: those that were looked at by themselves so far, and their characters.
    """

    lines: int = 0
    size: int = 0

    def parts(self, block: str, is_clean: Callable[[str], bool]) -> Iterator[tuple[str, bool]]:
        """Whole lines in parts that are clean, and single lines that are not; each with which it is.

        Raises:
            FlagPerfError: there are so many of the latter that nobody wrote them but to do harm.
        """
        yield from self._parts(_LINES.findall(block), is_clean)

    def _parts(self, lines: Sequence[str], is_clean: Callable[[str], bool]) -> Iterator[tuple[str, bool]]:
        text = "".join(lines)
        if is_clean(text):
            yield text, True
        elif len(lines) == 1:
            self.lines += 1
            self.size += len(text)
            if self.lines > MOST_LINES or self.size > MOST_OF_LINES:
                most = f"{MOST_LINES} lines, or {MOST_OF_LINES} characters of lines, that name secrets"
                raise FlagPerfError(f"is one of a node's files with more than {most}")
            yield text, False
        else:
            size = -(-len(lines) // PARTS)
            for start in range(0, len(lines), size):
                yield from self._parts(lines[start : start + size], is_clean)


@dataclass(frozen=True)
class Redaction:
    """Takes secrets out of texts and names."""

    secrets: Secrets

    def line(self, line: str) -> str:
        """A line without secrets; JSON in it stays JSON."""
        hidden = self._text(line)
        if hidden == line:
            return line
        content = _json_in(line)
        if content is None:
            return hidden
        before, end = line[: line.find("{")], line[len(line.rstrip()) :]
        try:
            return f"{self._text(before)}{json.dumps(self.plain(content), ensure_ascii=False)}{end}"
        except RecursionError:  # nobody writes such a line but to do harm
            return hidden

    def by_value(self, line: str) -> str:
        """A text without the values that are known, however they are spelled."""
        return self._by_value.hide(line)

    def document(self, text: str) -> str:
        """A whole JSON file without secrets; where it is none, line by line."""
        try:
            content = json.loads(text)  # lines in it are escaped: a .netrc's would not be known
            clean = self.plain(content)
        except (ValueError, RecursionError):
            return "".join(map(self.line, text.splitlines(keepends=True)))
        return text if clean == content else json.dumps(clean, indent=2, ensure_ascii=False) + "\n"

    def name(self, name: str) -> str:
        """The name of a file without secrets."""
        return self._text(name)

    def plain(self, content: Any, name: str = "") -> Any:
        """Plain data without secrets: texts and numbers under a secret's name, and values wherever they stand."""
        if isinstance(content, str):
            return HIDDEN if content and self.secrets.are_named(name) else self._text(content)
        if (
            isinstance(content, (int, float))
            and not isinstance(content, bool)
            and self.secrets.are_named(name)
        ):
            return HIDDEN  # a PIN, say
        if isinstance(content, Mapping):
            of_packages = name in PACKAGES
            return {
                self._text(key): self.plain(item, "" if of_packages else key) for key, item in content.items()
            }
        return [self.plain(item, name) for item in content] if isinstance(content, list) else content

    def markdown(self, line: str) -> str:
        """A line of Markdown without secrets; one that backslashes part is hidden with these."""
        line = self.line(line)
        plain = _ESCAPED.sub(r"\1", line)
        hidden = self._by_value.hide(plain)
        return line if hidden == plain else hidden

    def code(self, name: str, text: str) -> str:
        """A file of the code without secrets."""
        if name.endswith(_PROGRAMS) and _CONFIGURATION not in name:
            return self._by_value.hide(redact_program(text))
        text = redact_key(text)
        if name.endswith(".json"):
            return self.document(text)
        return "".join(map(self.line, text.splitlines(keepends=True)))

    @cached_property
    def _by_value(self) -> Secrets:
        return replace(self.secrets, held=self.secrets.values, open_texts=frozenset())

    def _text(self, text: str) -> str:
        return self._by_value.hide(redact_text(text, self.secrets.marked))


def values_in(
    blocks: Iterable[str],
    searched: Searched,
    marked: frozenset[str] = frozenset(),
    *,
    is_document: bool = False,
) -> Iterator[str]:
    """What lines assign to names of secrets, and the lines of private keys (PEM).

    Args:
        blocks: of whole lines; of a document all of it, which is one JSON value.
        marked: further names of secrets, beside those that speak for themselves.

    Raises:
        FlagPerfError: there are too many such lines.
    """
    of_key = 0
    names_nothing = partial(_names_nothing, marked=marked)
    for block in blocks:
        for part, is_clean in [(block, False)] if is_document else searched.parts(block, names_nothing):
            for line in _LINES.findall(part) if of_key else () if is_clean else (part,):
                yield from _values_in(line, marked)
                if _KEY_BEGINS.search(line):
                    of_key = LONGEST_KEY
                elif of_key:  # headers and an empty line may stand before what is encoded
                    of_key = 0 if "-----END" in line else of_key - 1
                    if _OF_KEY.fullmatch(line.strip()):
                        yield line.strip()


def _names_nothing(text: str, marked: frozenset[str]) -> bool:
    return not _KEY_BEGINS.search(text) and next(secrets_in_text(text, marked), None) is None


def _values_in(line: str, marked: frozenset[str]) -> Iterator[str]:
    """What a line assigns to names of secrets."""
    named = list(secrets_in_text(line, marked))
    content = _json_in(line) if named else None
    with suppress(RecursionError):
        named = named if content is None else list(_texts_under_names(content, marked))
    yield from (value for value in named if HIDDEN not in value and not _WORD.fullmatch(value))


def _json_in(line: str) -> Any:
    """The object that a line or a file ends with; None where there is none."""
    start = line.find("{")
    try:
        return json.loads(line[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        return None


def _texts_under_names(content: Any, marked: frozenset[str], name: str = "") -> Iterator[str]:
    if isinstance(content, Mapping):
        for key, item in content.items():
            yield from _texts_under_names(item, marked, "" if name in PACKAGES else key)
    elif isinstance(content, list):
        for item in content:
            yield from _texts_under_names(item, marked, name)
    elif isinstance(content, str):
        is_secret = name in marked or is_secret_name(name)
        yield from [content] if is_secret else secrets_in_text(content, marked)
