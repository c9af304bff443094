"""A small ReCoRD and the command line of the preparation, for its tests."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.glm.prepare.command import main

PLACES = ("Paris", "New York", "Lima", "Oslo", "Cairo")
PEOPLE = ("Ann Lee", "Bob", "Cy Young", "Dora")
SMALL = ("--vocab-size", "120", "--seq-length", "64", "--parts", "4")


def passage(number: int) -> dict[str, Any]:
    """A line of ReCoRD: people and places of a small world, two questions, the first with two right answers."""
    person, other = PEOPLE[number % 4], PEOPLE[(number + 1) % 4]
    place, away = PLACES[number % 5], PLACES[(number + 2) % 5]
    text = (
        f"{person} lives in {place}. {other} went from {place} to {away}.\n@highlight\n{other} likes {away}"
    )
    spans = [
        {"start": start, "end": start + len(name) - 1}
        for name in {person, other, place, away}
        for start in _places_of(text, name)
    ]
    queries = [
        (f"The home of @placeholder is {place}", [person, other]),
        (f"{other} left for @placeholder.", [away]),
    ]
    return {
        "source": "test",
        "idx": number,
        "passage": {"text": text, "entities": sorted(spans, key=lambda span: span["start"])},
        "qas": [
            {"idx": 2 * number + place_, "query": query, "answers": [_answer(text, name) for name in names]}
            for place_, (query, names) in enumerate(queries)
        ],
    }


def _places_of(text: str, name: str) -> list[int]:
    return [start for start in range(len(text)) if text.startswith(name, start)]


def _answer(text: str, name: str) -> dict[str, Any]:
    start = text.index(name)
    return {"start": start, "end": start + len(name) - 1, "text": name}


def lines(numbers: range) -> list[str]:
    return [json.dumps(passage(number)) for number in numbers]


def write_record(folder: Path, train: range = range(20), val: range = range(20, 26)) -> Path:
    """train.jsonl and val.jsonl."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, numbers in (("train.jsonl", train), ("val.jsonl", val)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines(numbers)), encoding="utf-8")
    return folder


def zipped(folder: Path, path: Path) -> Path:
    """The archive as SuperGLUE distributes it: in a folder ReCoRD, with a Macintosh's leftovers."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("train.jsonl", "val.jsonl"):
            archive.write(folder / name, f"ReCoRD/{name}")
            archive.writestr(f"__MACOSX/ReCoRD/._{name}", b"\0")
    return path


def prepare(record: Path, out: Path, *more: str, workers: int = 1) -> int:
    """Run the command in this process with the small parameters; the later of two options counts."""
    return main(["--record", str(record), "--out", str(out), "--workers", str(workers), *SMALL, *more])
