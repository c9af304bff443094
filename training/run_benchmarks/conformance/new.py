"""A new vendor's folder from the template, every place to be filled in marked."""

from __future__ import annotations

import re
from pathlib import Path

from run_benchmarks.exports.destination import new_folder
from run_benchmarks.plan.vendors import NO_VENDORS
from utils.errors import FlagPerfError

TEMPLATE = Path(__file__).parent / "template"
SUFFIX = ".in"  # so that no tool takes the template's files for the tree's own
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_CHIP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def make_vendor(name: str, chip: str, training: Path, tool: str = "") -> list[Path]:
    """Write the folder `name`, of a vendor whose first chip is `chip`, listed by `tool` (else `NAME-smi`); its files.

    Raises:
        FlagPerfError: one of the names cannot be, there is such a folder, or it cannot be written.
    """
    if not _NAME.fullmatch(name) or name in NO_VENDORS:
        remedy = (
            "use lower-case letters, digits and _, 40 at most, a letter first; not a folder of FlagPerf's"
        )
        raise FlagPerfError("cannot be a vendor's name", where=repr(name), remedy=remedy)
    if not _CHIP.fullmatch(chip):
        raise FlagPerfError(
            "cannot be a chip's name", where=repr(chip), remedy="use letters, digits, _ . and -"
        )
    if tool and not _CHIP.fullmatch(tool):
        raise FlagPerfError(
            "cannot be a tool's name", where=repr(tool), remedy="use letters, digits, _ . and -"
        )
    words = {"acme-smi": tool or f"{name}-smi", "accl": f"{name}ccl"}
    words |= {"acme": name, "Acme": name.capitalize(), "ACME": name.upper(), "A1": chip}
    with new_folder(training / name) as folder:
        for source in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
            path = folder / _replaced(str(source.relative_to(TEMPLATE)), words).removesuffix(SUFFIX)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_replaced(source.read_text("utf-8"), words), encoding="utf-8")
    return sorted(path for path in (training / name).rglob("*") if path.is_file())


def _replaced(text: str, words: dict[str, str]) -> str:
    return re.sub("|".join(words), lambda match: words[match[0]], text)
