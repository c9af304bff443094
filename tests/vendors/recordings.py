"""What vendors' tools printed: `tests/<vendor>/recordings/NAME.txt`, whose first line says where it is from."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def recording(vendor: str, name: str) -> str:
    """What the tool printed, without the line that says where that is from."""
    source, _, printed = (TESTS / vendor / "recordings" / f"{name}.txt").read_text("utf-8").partition("\n")
    assert source.startswith("SOURCE: "), f"{vendor}/{name}: the first line names no source"
    return printed


def recordings_of(vendor: str) -> set[str]:
    """The names of all: a test that has a table of them sees that none is left out."""
    return {path.stem for path in (TESTS / vendor / "recordings").glob("*.txt")}
