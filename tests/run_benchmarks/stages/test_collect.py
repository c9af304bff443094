"""A node's folder comes back whole, verified, or not at all. The host is this machine, by the real commands."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from run_benchmarks.stages import collect
from run_benchmarks.stages.collect import collect_folder
from run_benchmarks.transports.base import ByteSink, Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from utils.errors import FlagPerfError

ODD_NAMES = (
    "rank0.out.log",
    "sub/dir/telemetry.jsonl",
    " two  spaces",
    "new\nline",
    "-rf",
    "Ümläut",
    "back\\slash",
)


class Host(LocalTransport):
    """This machine, with a stream that a test can tamper with: `alter` gets and returns what `tar` printed."""

    def __init__(self, alter: Callable[[bytes], bytes] = lambda stream: stream) -> None:
        super().__init__("node1")
        self.alter = alter
        self.streams = 0

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
    ) -> Completed:
        if argv[0] != "tar":
            return await super().run(argv, stdin=stdin, stdout=stdout, timeout=timeout)
        self.streams += 1
        stream = bytearray()

        async def keep(chunk: bytes) -> None:
            stream.extend(chunk)

        completed = await super().run(argv, stdout=keep, timeout=timeout)
        assert stdout is not None
        await stdout(self.alter(bytes(stream)))
        return completed


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "host" / "logs of node1"
    for number, name in enumerate(ODD_NAMES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\0line\n" * (number * 1000))
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "result" / "case" / "round1" / "node1_noderank0"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two attempts."""
    monkeypatch.setattr(collect, "PAUSE_S", 0.0)


def fetch(host: LocalTransport, source: Path, target: Path) -> None:
    asyncio.run(collect_folder(host, str(source), target, timeout=60))


def failing_fetch(host: LocalTransport, source: Path, target: Path) -> FlagPerfError:
    """The error of a collection that must fail; nothing may be left here, and everything must be left there."""
    before = files_of(source)
    with pytest.raises(FlagPerfError) as caught:
        fetch(host, source, target)
    assert not target.exists()
    assert list(target.parent.iterdir()) == []
    assert files_of(source) == before
    assert str(source) in caught.value.remedy
    return caught.value


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def with_entry(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> Callable[[bytes], bytes]:
    """Tampering that puts one more entry before the stream's own."""

    def alter(stream: bytes) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, link, len(content)
            archive.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()[: 512 + (len(content) + 511) // 512 * 512] + stream

    return alter


def test_the_folder_comes_back_as_it_is(source: Path, target: Path) -> None:
    (source / "empty folder").mkdir()
    fetch(Host(), source, target)
    assert files_of(target) == files_of(source)
    assert set(files_of(target)) == set(ODD_NAMES)
    assert (target / "empty folder").is_dir()
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_an_empty_folder_comes_back_too(tmp_path: Path, target: Path) -> None:
    (tmp_path / "empty").mkdir()
    fetch(Host(), tmp_path / "empty", target)
    assert target.is_dir()


def test_a_file_with_two_names_comes_back_under_both(source: Path, target: Path) -> None:
    os.link(source / "rank0.out.log", source / "latest.log")
    fetch(Host(), source, target)
    assert "latest.log" in files_of(target)
    assert files_of(target) == files_of(source)


def test_an_altered_file_is_noticed(source: Path, target: Path) -> None:
    host = Host(lambda stream: stream.replace(b"\0line", b"\0lime", 1))
    error = failing_fetch(host, source, target)
    assert "was altered on its way" in error.message
    assert host.streams == collect.ATTEMPTS
    assert error.where == "node1"


def test_a_missing_file_is_noticed(source: Path, target: Path) -> None:
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    error = failing_fetch(Host(lambda _: empty.getvalue()), source, target)
    assert "is missing from the stream" in error.message


@pytest.mark.parametrize("length", [0, 300, 512, 5000])
def test_a_stream_that_is_cut_off_is_noticed(length: int, source: Path, target: Path) -> None:
    failing_fetch(Host(lambda stream: stream[:length]), source, target)


@pytest.mark.parametrize("name", ["../escaped", "sub/../../escaped", "/escaped"])
def test_a_path_outside_the_folder_is_refused(name: str, source: Path, target: Path) -> None:
    error = failing_fetch(Host(with_entry(name, b"evil")), source, target)
    assert "a path outside its folder" in error.message
    assert not (target.parent / "escaped").exists()
    assert not Path("/escaped").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_have_no_place_among_logs(
    kind: bytes, source: Path, target: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    fetch(Host(with_entry("odd", kind=kind, link=str(outside))), source, target)
    assert "odd" not in {path.name for path in target.rglob("*")}
    assert files_of(target) == files_of(source)


def test_nothing_is_written_through_a_link(source: Path, target: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    through = with_entry("odd/file", b"evil")
    link = with_entry("odd", kind=tarfile.SYMTYPE, link=str(outside))
    fetch(Host(lambda stream: link(through(stream))), source, target)
    assert list(outside.iterdir()) == []
    assert (target / "odd/file").read_bytes() == b"evil"  # as a file of its own, where the host said


def test_links_on_the_host_are_left_out(source: Path, target: Path) -> None:
    (source / "link").symlink_to("/etc/passwd")
    fetch(Host(), source, target)
    assert not (target / "link").exists()


def test_an_entry_that_is_file_and_folder_is_an_error_and_no_crash(source: Path, target: Path) -> None:
    error = failing_fetch(Host(with_entry("sub", b"a file where others are a folder")), source, target)
    assert "cannot be written here" in error.message


def test_a_stream_that_fails_once_is_asked_for_again(source: Path, target: Path) -> None:
    class Flaky(Host):
        async def run(self, argv: Sequence[str], **options: object) -> Completed:
            if argv[0] == "tar" and self.streams == 0:
                self.streams += 1
                raise TransportError("contact was lost", where=self.host)
            return await super().run(argv, **options)  # type: ignore[arg-type]

    host = Flaky()
    fetch(host, source, target)
    assert host.streams == 2
    assert files_of(target) == files_of(source)


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path, target: Path) -> None:
    with pytest.raises(FlagPerfError) as caught:
        fetch(Host(), tmp_path / "nowhere", target)
    assert "nowhere" in caught.value.message
    assert not target.exists()


def test_a_log_path_that_cannot_be_written_is_an_error_and_no_crash(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FlagPerfError) as caught:
        fetch(Host(), source, tmp_path / "file" / "round1" / "node1_noderank0")
    assert "cannot be written here" in caught.value.message


def test_what_was_collected_before_is_not_overwritten(source: Path, target: Path) -> None:
    fetch(Host(), source, target)
    (source / "rank0.out.log").write_text("another run's")
    with pytest.raises(FlagPerfError):
        fetch(Host(), source, target)
    assert (target / "rank0.out.log").read_bytes() == b""
