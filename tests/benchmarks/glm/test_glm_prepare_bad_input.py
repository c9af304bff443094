"""Bad input names file and line (exit 1), wrong arguments the option (exit 2); nothing half-written stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.glm.prepare_data import (
    lines,
    passage,
    prepare,
    write_record,
    zipped,
)

Change = Callable[[dict[str, Any]], object]


def _changed(change: Change) -> bytes:
    line = passage(7)
    change(line)
    return json.dumps(line).encode()


BAD_LINES = {
    "no JSON": (b'{"idx": 1,,}', "not JSON: Expecting property name"),
    "cut off": (lines(range(1))[0].encode()[:-9], "not JSON"),
    "not an object": (b"[1, 2]", "the line is list, not dict"),
    "latin-1": ('{"idx": "Caf\u00e9"}'.encode("latin-1"), "not UTF-8: byte 0xe9 at column 13"),
    "blank": (b"", "not JSON"),
    "no passage": (_changed(lambda line: line.pop("passage")), "'passage' is missing"),
    "no entity": (_changed(lambda line: line["passage"].update(entities=[])), "the passage has no entity"),
    "no question": (_changed(lambda line: line.update(qas=[])), "the passage has no question"),
    "a span beyond the passage": (
        _changed(lambda line: line["passage"]["entities"].append({"start": 5, "end": 5000})),
        "the entity 5 to 5000 is not within the passage's",
    ),
    "no placeholder": (
        _changed(lambda line: line["qas"][1].update(query="Who?")),
        "question 15 holds @placeholder 0",
    ),
    "two placeholders": (
        _changed(lambda line: line["qas"][0].update(query="@placeholder and @placeholder")),
        "question 14 holds @placeholder 2 times",
    ),
    "no answer": (_changed(lambda line: line["qas"][0].update(answers=[])), "question 14 has no answer"),
    "an answer that is not in the passage": (
        _changed(lambda line: line["qas"][0]["answers"][0].update(text="Zanzibar")),
        "the answer 'Zanzibar' of question 14 is not in the passage",
    ),
    "an answer without text": (
        _changed(lambda line: line["qas"][0]["answers"][0].pop("text")),
        "'text' is missing",
    ),
    "a query that leaves no room": (
        _changed(lambda line: line["qas"][0].update(query="@placeholder " + "home of " * 50)),
        "question 14: no room for the passage in 64 tokens",
    ),
}


TOLD_BY_PROCESSES = [("train.jsonl", 2, "no JSON"), ("val.jsonl", 2, "no placeholder")]


@pytest.mark.parametrize(
    ("name", "workers", "bad"),
    [*((name, 1, bad) for name in ("train.jsonl", "val.jsonl") for bad in BAD_LINES), *TOLD_BY_PROCESSES],
)
def test_a_malformed_line_is_named_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, workers: int, bad: str
) -> None:
    record = write_record(tmp_path / "record")
    path, (line, why) = record / name, BAD_LINES[bad]
    whole = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*whole[:3], line, *whole[3:]]))
    assert prepare(record, tmp_path / "out", workers=workers) == 1
    printed = capsys.readouterr().err
    assert f"{path}, line 4: " in printed
    assert why in printed
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["train.jsonl", "val.jsonl"])
def test_an_empty_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    record = write_record(tmp_path / "record")
    (record / name).write_bytes(b"")
    assert prepare(record, tmp_path / "out") == 1
    assert f"{record / name}: an empty file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = write_record(tmp_path / "record")
    (record / "val.jsonl").unlink()
    assert prepare(record, tmp_path / "out") == 1
    assert f"{record / 'val.jsonl'}: cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_bad_line_in_the_archive_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = write_record(tmp_path / "record")
    with (record / "train.jsonl").open("a") as stream:
        stream.write("{]\n")
    archive = zipped(record, tmp_path / "ReCoRD.zip")
    assert prepare(archive, tmp_path / "out") == 1
    assert f"{archive}/train.jsonl, line 21: not JSON" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("keep", [0.5, 0.0])
def test_an_archive_that_is_cut_off_or_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keep: float
) -> None:
    archive = zipped(write_record(tmp_path / "record"), tmp_path / "ReCoRD.zip")
    data = archive.read_bytes()
    archive.write_bytes(data[: int(keep * len(data))])
    assert prepare(archive, tmp_path / "out") == 1
    assert "cannot be read after line 0" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_archive_whose_data_are_damaged_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = zipped(write_record(tmp_path / "record"), tmp_path / "ReCoRD.zip")
    data = bytearray(archive.read_bytes())
    data[400:420] = bytes(20)
    archive.write_bytes(data)
    assert prepare(archive, tmp_path / "out") == 1
    assert "cannot be read after line" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_vocabulary_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\nword\n")
    record = write_record(tmp_path / "record")
    assert prepare(record, tmp_path / "out", "--vocab", str(tmp_path / "vocab.txt")) == 1
    assert "lacks [UNK], [CLS], [SEP], [MASK]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
