"""The manifest: what it records, what it finds, and how a node without Python is checked with it."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from utils import manifest
from utils.errors import FlagPerfError, Problem

FILES = {"vocab.txt": b"a\nb\n", "shards/part_0.hdf5": b"x" * 5000, "shards/part_1.hdf5": b"y" * 3000}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory of three files with its manifest."""
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    entries = manifest.describe(tmp_path, list(FILES), workers=2)
    manifest.write(tmp_path, manifest.Manifest("bert", "tool 1", {"seed": 1}, {"samples": 2}, entries))
    return tmp_path


def found(problems: list[Problem]) -> dict[str, str]:
    """File -> first word of what is wrong with it."""
    return {problem.name: problem.message.split()[0].rstrip(":,") for problem in problems}


def test_a_manifest_read_back_is_the_one_written(data: Path) -> None:
    known = manifest.read(data)
    assert [(entry.path, entry.bytes) for entry in known.files] == sorted(
        (name, len(content)) for name, content in FILES.items()
    )
    assert (known.dataset, known.tool, known.parameters, known.facts) == (
        "bert",
        "tool 1",
        {"seed": 1},
        {"samples": 2},
    )
    assert known.total_bytes == 8004
    assert not list(data.glob(".*")), "a temporary file was left"


def test_it_is_written_through_no_link_that_others_left(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Another user's folder may hold links of any name that can be foreseen."""
    own = tmp_path_factory.mktemp("own") / "file"
    own.write_text("precious")
    for name in ("manifest.json", ".manifest.json.tmp"):
        (data / name).unlink(missing_ok=True)
        (data / name).symlink_to(own)
    entries = manifest.describe(data, list(FILES))
    written = manifest.write(data, manifest.Manifest("bert", "tool 1", {}, {}, entries))
    assert own.read_text() == "precious"
    assert not written.is_symlink()
    assert manifest.read(data).files == entries


def test_the_digest_is_that_of_the_file_and_says_nothing_of_time_or_place(data: Path, tmp_path: Path) -> None:
    digest = manifest.read(data).digest
    assert digest == manifest.sha256_of(data / "manifest.json")
    assert str(tmp_path) not in (data / "manifest.json").read_text()


def test_an_intact_directory_has_no_problems(data: Path) -> None:
    (data / "model.ckpt").write_bytes(b"anything: the data directory itself may hold more")
    (data / "other").mkdir()
    (data / "other" / "file").touch()
    assert manifest.verify(data) == []


def test_every_missing_short_long_altered_and_unexpected_file_is_named(data: Path) -> None:
    (data / "vocab.txt").unlink()
    (data / "shards" / "part_0.hdf5").write_bytes(b"x" * 4999)
    (data / "shards" / "part_1.hdf5").write_bytes(b"y" * 2999 + b"z")
    (data / "shards" / "part_2.hdf5").write_bytes(b"from another set")
    by_size = {
        "vocab.txt": "missing",
        "shards/part_0.hdf5": "shorter",
        "shards/part_2.hdf5": "unexpected",
    }
    assert found(manifest.verify(data, workers=2)) == {**by_size, "shards/part_1.hdf5": "altered"}
    (data / "shards" / "part_0.hdf5").write_bytes(b"x" * 5001)
    assert found(manifest.verify(data))["shards/part_0.hdf5"] == "longer"


def test_a_folder_in_the_place_of_a_file_is_a_missing_file(data: Path) -> None:
    (data / "vocab.txt").unlink()
    (data / "vocab.txt").mkdir()
    assert found(manifest.verify(data)) == {"vocab.txt": "missing"}


def test_links_to_the_files_are_followed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "part_0.hdf5"
    (data / "shards" / "part_0.hdf5").rename(elsewhere)
    (data / "shards" / "part_0.hdf5").symlink_to(elsewhere)
    assert manifest.verify(data) == []
    elsewhere.unlink()
    assert found(manifest.verify(data)) == {"shards/part_0.hdf5": "missing"}


def test_progress_is_told_in_bytes(data: Path) -> None:
    told: list[int] = []
    manifest.verify(data, report=told.append)
    assert told == [5000, 8000, 8004]


def test_a_directory_without_manifest_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="there is no manifest") as error:
        manifest.verify(tmp_path)
    assert str(tmp_path / "manifest.json") in str(error.value)
    assert "prepare" in error.value.remedy


def change(content: dict[str, Any], key: str, value: Any) -> str:
    (content if key in content else content["files"][0])[key] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("path", "../outside"),
        ("path", "/etc/passwd"),
        ("path", "two\nlines"),
        ("path", "back\\slash"),
        ("path", ""),
        ("path", "half of \ud800"),
        ("dataset", "half of \ud800"),
        ("bytes", math.inf),
        ("bytes", "many"),
        ("sha256", "short"),
    ],
)
def test_a_manifest_that_is_not_one_is_refused(data: Path, key: str, value: str | float) -> None:
    content = json.loads((data / "manifest.json").read_text())
    with pytest.raises(FlagPerfError, match="the manifest cannot be read"):
        manifest.parse(change(content, key, value), where="host1:/data/manifest.json")


@pytest.mark.parametrize("many", ["deep", "long", "wide"])
def test_what_stands_beside_the_files_is_bounded(data: Path, many: str) -> None:
    """To write a megabyte of numbers again, three hundred levels deep, took half a minute."""
    content = json.loads((data / "manifest.json").read_text())
    deep: list[Any] = []
    for _ in range(manifest.DEEPEST):
        deep = [deep]
    long = [0] * manifest.MOST_WORDS
    content["parameters"] = {"deep": {"a": deep}, "long": {"a": long}, "wide": dict(enumerate(long))}[many]
    with pytest.raises(FlagPerfError, match=r"beside its files more than 10000 values, or 16 levels"):
        manifest.parse(json.dumps(content), where="host1:/data/manifest.json")


def test_a_manifest_of_no_files_proves_nothing(data: Path) -> None:
    content = json.loads((data / "manifest.json").read_text())
    with pytest.raises(FlagPerfError, match="lists no files"):
        manifest.parse(json.dumps({**content, "files": []}), where="host1:/data/manifest.json")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"format": "flagperf-manifest-1",\n  files', "line 2, column 3"),
        (b'{"format": "flagperf-manifest-9"}', "flagperf-manifest-9"),
        (b"[]", "TypeError"),
        (b"{}", "'format'"),
        (b"\xff\xfe", "not UTF-8"),
        pytest.param(b"[" * 200_000, "RecursionError", id="deep"),
    ],
)
def test_a_malformed_manifest_names_the_file_and_the_place(data: Path, content: bytes, why: str) -> None:
    (data / "manifest.json").write_bytes(content)
    with pytest.raises(FlagPerfError, match=why) as error:
        manifest.read(data)
    assert error.value.where == str(data / "manifest.json")


def test_a_manifest_with_a_path_outside_is_not_written(tmp_path: Path) -> None:
    entry = manifest.FileEntry("../outside", 1, "0" * 64)
    with pytest.raises(FlagPerfError, match="not a path of a file below"):
        manifest.write(tmp_path, manifest.Manifest("bert", "tool", {}, {}, (entry,)))
    assert list(tmp_path.iterdir()) == []


def listing(known: manifest.Manifest, data: Path) -> list[Problem]:
    """What a node finds with GNU find alone."""
    done = subprocess.run(
        manifest.listing_command(known, str(data)), capture_output=True, text=True, check=True
    )
    return manifest.compare_sizes(known, manifest.listed_in(done.stdout, "host1:/data"), "host1:/data")


def test_a_node_without_python_finds_the_same(data: Path) -> None:
    known = manifest.read(data)
    (data / "model.ckpt").touch()
    assert listing(known, data) == []
    (data / "vocab.txt").unlink()
    (data / "shards" / "part_0.hdf5").write_bytes(b"x" * 4999)
    (data / "shards" / "part_1.hdf5").write_bytes(b"y" * 2999 + b"z")
    (data / "shards" / "part_2.hdf5").touch()
    by_contents = found(manifest.verify(data))
    assert by_contents.pop("shards/part_1.hdf5") == "altered", "of the right size"
    assert found(listing(known, data)) == by_contents
    assert {problem.where for problem in listing(known, data)} == {"host1:/data"}


def test_a_listing_that_is_no_listing_is_an_error(data: Path) -> None:
    with pytest.raises(FlagPerfError, match="cannot read this entry"):
        manifest.listed_in("find: command not found\n", "host1:/data")
