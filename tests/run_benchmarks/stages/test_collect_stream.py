"""The reader of what a node sends: against streams that no honest host sends, and archives made by hand."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from run_benchmarks.stages.collect_stream import BLOCK, unpack
from utils.errors import FlagPerfError

LARGEST = {"rank0.out.log": 5000, "telemetry.jsonl": 5000}
END = bytes(2 * BLOCK)


def entry(
    name: str = "./rank0.out.log",
    content: bytes = b"line\n",
    *,
    kind: bytes = tarfile.REGTYPE,
    size: int | None = None,
    form: int = tarfile.USTAR_FORMAT,
    **more: str,
) -> bytes:
    """A file as it stands in an archive; `size` is what its header says."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content) if size is None else size
    info.linkname = more.get("link", "")
    return info.tobuf(form) + content + bytes(-len(content) % BLOCK)


def sum_of(name: str, content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()}  {name}\0".encode()


def read(stream: bytes, target: Path) -> set[str]:
    return unpack(io.BytesIO(stream), target, LARGEST)


def refused(stream: bytes, target: Path) -> str:
    with pytest.raises(FlagPerfError) as caught:
        read(stream, target)
    return caught.value.message


WHOLE = entry() + END + sum_of("./rank0.out.log", b"line\n")


def test_a_plain_file(tmp_path: Path) -> None:
    assert read(WHOLE, tmp_path) == {"rank0.out.log"}
    assert (tmp_path / "rank0.out.log").read_bytes() == b"line\n"


def test_a_file_whose_sum_is_another_or_missing_is_not_kept(tmp_path: Path) -> None:
    assert read(WHOLE.replace(b"line\n", b"lime\n", 1), tmp_path) == set()
    assert read(entry() + END, tmp_path) == set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_links_devices_and_folders_are_refused(kind: bytes, tmp_path: Path) -> None:
    assert "something else than a file" in refused(entry(kind=kind, content=b"", link="/etc"), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../rank0.out.log", "/etc/passwd", "./sub/rank0.out.log", "", "other.log"])
def test_what_was_not_asked_for_is_refused(name: str, tmp_path: Path) -> None:
    assert "not asked for" in refused(entry(name) + END, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_larger_than_listed_is_refused_before_it_is_read(tmp_path: Path) -> None:
    assert "not asked for" in refused(entry(size=5001), tmp_path)


def test_a_sparse_archive_is_refused(tmp_path: Path) -> None:
    """10 KB of one became 3 GB: in the old form the map is in the header, in the new one in headers of its own."""
    old = bytearray(entry(kind=tarfile.GNUTYPE_SPARSE, content=b""))
    assert "something else than a file" in refused(bytes(old), tmp_path)
    info = tarfile.TarInfo("./rank0.out.log")
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.realsize": str(3 * 2**30),
    }
    assert "something else than a file" in refused(info.tobuf(tarfile.PAX_FORMAT), tmp_path)


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    assert "broken" in refused(gzip.compress(WHOLE), tmp_path)


def test_a_header_that_says_how_long_the_next_name_is_is_refused(tmp_path: Path) -> None:
    long = entry("././@LongLink", b"n" * 4096, kind=tarfile.GNUTYPE_LONGNAME, form=tarfile.GNU_FORMAT)
    assert "something else than a file" in refused(long * 2000, tmp_path)


@pytest.mark.parametrize("size", [b"\x80" + b"\xff" * 11, b"-0000000001\0", b"99999999999\0", b"0_1\0", b""])
def test_a_size_that_is_none_is_refused(size: bytes, tmp_path: Path) -> None:
    block = entry()
    assert "broken" in refused(block[:124] + size.ljust(12, b"\0") + block[136:], tmp_path)


@pytest.mark.parametrize("length", range(1, len(WHOLE) - len(END) - 80, 97))
def test_a_stream_that_is_cut_off_is_noticed(length: int, tmp_path: Path) -> None:
    refused(WHOLE[:length], tmp_path)


@given(stream=some.binary(max_size=4 * BLOCK), place=some.integers(0, len(WHOLE)))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_whatever_comes_only_what_was_asked_for_is_written(
    stream: bytes, place: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    with contextlib.suppress(FlagPerfError):
        read(WHOLE[:place] + stream, folder)
    assert {path.name for path in folder.iterdir()} <= set(LARGEST)
    assert all(path.stat().st_size <= 5000 for path in folder.iterdir())
