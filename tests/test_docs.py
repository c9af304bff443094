"""The documents: every link leads somewhere, and their examples import what there is."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from utils.records import FailureClass

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted(
    path
    for folder, pattern in (
        (ROOT, "*.md"),
        (ROOT / "docs", "**/*.md"),
        (ROOT / "tests", "**/README.md"),
        (ROOT / "training", "**/*.md"),
    )
    for path in folder.glob(pattern)
    if not any(part == "result" or part.startswith(".") for part in path.relative_to(ROOT).parts)
)
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
OWN = ("benchmarks", "run_benchmarks", "utils")


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    links = [link for link in LINK.findall(FENCE.sub("", path.read_text())) if "://" not in link]
    assert [link for link in links if not _leads_somewhere(path, link)] == []


def _leads_somewhere(path: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    return target.exists() and (not anchor or anchor in _anchors(target))


def _anchors(path: Path) -> set[str]:
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def test_the_examples_import_what_there_is() -> None:
    imports = set(_imports_of_examples(ROOT / "CONTRIBUTING.md"))
    assert ("utils.telemetry", "Sample") in imports  # the examples were read
    assert [pair for pair in sorted(imports) if not hasattr(importlib.import_module(pair[0]), pair[1])] == []


def _imports_of_examples(path: Path) -> Iterator[tuple[str, str]]:
    for language, text in FENCE.findall(path.read_text()):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OWN:
                yield from ((node.module, alias.name) for alias in node.names)


def test_every_failure_class_leads_to_what_to_do() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "docs/failures.md").read_text(), re.MULTILINE)
    assert headings == ["NOT_CONVERGED", *(each.value for each in FailureClass)]


def test_every_page_stands_in_the_index() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(LINK.findall((ROOT / "docs/README.md").read_text()))


def test_the_readme_is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 130
