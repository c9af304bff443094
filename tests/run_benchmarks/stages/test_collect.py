"""What a node's task left comes back as data: whole, verified, bounded. The host is this machine; commands are real."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from run_benchmarks.full_disk import NoRoomError
from run_benchmarks.stages import collect, collect_listing, collect_stream
from run_benchmarks.stages.collect import collect_folder
from run_benchmarks.stages.collect_listing import (
    LARGEST_FILE,
    LARGEST_LISTING,
    LARGEST_WHOLE,
    LIST,
    MOST_FILES,
    MOST_FOLDERS_ASKED,
    Entry,
    LeftOut,
    Room,
    choose,
    note_on,
    read_listing,
    streams_of,
)
from run_benchmarks.stages.collect_stream import END_SIZE, SEND
from run_benchmarks.transports.base import ByteSink, CommandTimeoutError, Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from utils.errors import FlagPerfError
from utils.monitors import power
from utils.monitors.host import CpuUtilisation, MemoryUtilisation
from utils.monitors.source import Source
from utils.telemetry.lines import HOST_LOGS

ODD_NAMES = (
    "rank0.out.log",
    "sub/dir/telemetry.jsonl",
    " two  spaces",
    "new\nline",
    "-rf",
    "Ümläut",
    "back\\slash\\n",
    "*?[a]",
    "n" * 98,
)
# Of a node.
NODE_LOGS = frozenset(
    {*(f"rank{rank}.out.log" for rank in range(12)), "start_pytorch_task.log", "acme_monitor.log"}
)
NODE = "runs/uid/run/case/round1/node1_noderank0"
SECRET = "the host's own"
MIB, GIB = 2**20, 2**30


class Host(LocalTransport):
    """This machine, with a stream that a test can tamper with: `alter` gets and returns what SEND printed."""

    def __init__(
        self,
        alter: Callable[[bytes], bytes] = lambda stream: stream,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__("node1")
        self.alter = alter
        self.meanwhile = meanwhile
        self.streams = 0

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Completed:
        if SEND not in argv:
            return await super().run(argv, stdin=stdin, stdout=stdout, timeout=timeout, **options)
        self.meanwhile()
        self.streams += 1
        stream = bytearray()

        async def keep(chunk: bytes) -> None:
            stream.extend(chunk)

        completed = await super().run(argv, stdin=stdin, stdout=keep, timeout=timeout)
        assert stdout is not None
        await stdout(self.alter(bytes(stream)))
        return completed


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "host" / "work folder"


@pytest.fixture
def source(work: Path) -> Path:
    folder = work / NODE
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


def fetch(host: LocalTransport, source: Path, target: Path) -> tuple[LeftOut, ...] | None:
    work = source.parents[len(Path(NODE).parts) - 1]
    return asyncio.run(collect_folder(host, str(work), NODE, target, timeout=60, own_logs=NODE_LOGS))


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


def why_of(left_out: tuple[LeftOut, ...] | None) -> dict[str, str]:
    return {item.path: item.why for item in left_out or ()}


# ---- what lies there


def test_the_folder_comes_back_as_it_is(source: Path, target: Path) -> None:
    assert fetch(Host(), source, target) == ()
    assert files_of(target) == files_of(source)
    assert set(files_of(target)) == set(ODD_NAMES)
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_an_empty_folder_comes_back_too(source: Path, target: Path) -> None:
    subprocess.run(["find", source, "-mindepth", "1", "-delete"], check=True)
    assert fetch(Host(), source, target) == ()
    assert target.is_dir()


def test_a_folder_that_was_never_made_is_none(tmp_path: Path, target: Path) -> None:
    (tmp_path / "host").mkdir()
    assert asyncio.run(collect_folder(Host(), str(tmp_path / "host"), NODE, target, timeout=60)) is None
    assert not target.exists()


def test_a_file_with_two_names_comes_back_under_both(source: Path, target: Path) -> None:
    os.link(source / "rank0.out.log", source / "latest.log")
    fetch(Host(), source, target)
    assert "latest.log" in files_of(target)
    assert files_of(target) == files_of(source)


def test_nothing_of_modes_is_taken_over(source: Path, target: Path) -> None:
    (source / "rank0.out.log").chmod(0o4777)
    umask = os.umask(0o027)
    try:
        fetch(Host(), source, target)
    finally:
        os.umask(umask)
    assert stat.S_IMODE((target / "rank0.out.log").stat().st_mode) == 0o640
    assert stat.S_IMODE(target.stat().st_mode) == 0o750


def test_a_node_folder_that_is_a_link_is_not_followed(source: Path, target: Path, tmp_path: Path) -> None:
    """What a task of the process runtime did: `mv $d $d.x; ln -s SECRET $d; exit 0`."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text(SECRET)
    source.rename(source.with_suffix(".x"))
    source.symlink_to(secret)
    error = failing_fetch(Host(), source, target)
    assert "is not the folder that was made there" in error.message


def test_a_round_folder_that_is_a_link_is_not_followed(source: Path, target: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    source.parent.rename(elsewhere)
    source.parent.symlink_to(elsewhere)
    assert "is not the folder that was made there" in failing_fetch(Host(), source, target).message


def test_a_work_folder_that_is_reached_by_a_link_of_the_users_own_is_one(
    source: Path, work: Path, target: Path
) -> None:
    """FLAGPERF_PATH may be a link, or lie below one, /data say: what counts is what it leads to."""
    there = work.parent.with_name("where it is")
    work.parent.rename(there)
    work.parent.symlink_to(there)
    assert fetch(Host(), source, target) == ()


@pytest.mark.parametrize("kind", ["link", "open"])
def test_a_work_folder_that_is_a_link_or_open_to_others_is_none(
    kind: str, source: Path, work: Path, target: Path
) -> None:
    """Ours is neither. It may have gone, and somebody have put in its place a link to /tmp, which is root's."""
    if kind == "open":
        work.chmod(0o1777)
    else:
        work.rename(work.with_name("where it is"))
        work.symlink_to("where it is")
    assert "no folder of" in failing_fetch(Host(), source, target).message


def test_links_and_devices_are_left_out_and_named(source: Path, target: Path) -> None:
    (source / "link").symlink_to("/etc/passwd")
    (source / "folder").symlink_to("/etc")
    os.mkfifo(source / "pipe")
    assert why_of(fetch(Host(), source, target)) == {"folder": "a link", "link": "a link", "pipe": "a pipe"}
    assert set(files_of(target)) == set(ODD_NAMES)


def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(
    source: Path, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET)

    def replace() -> None:
        (source / "rank0.out.log").unlink(missing_ok=True)
        (source / "rank0.out.log").symlink_to(tmp_path / "secret")

    streams: list[bytes] = []

    def look(stream: bytes) -> bytes:
        streams.append(stream)
        return stream

    left_out = why_of(fetch(Host(look, replace), source, target))
    assert left_out == {"rank0.out.log": "a link"}
    assert hashlib.sha256(SECRET.encode()).hexdigest().encode() not in b"".join(streams)
    assert SECRET.encode() not in b"".join(files_of(target).values())


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    source: Path, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/telemetry.jsonl").write_text(SECRET)

    def replace() -> None:
        subprocess.run(["rm", "-rf", source / "sub/dir"], check=True)
        (source / "sub/dir").symlink_to(tmp_path / "secret")

    assert why_of(fetch(Host(meanwhile=replace), source, target)) == {"sub/dir": "a link"}
    assert SECRET.encode() not in b"".join(files_of(target).values())


def test_a_sparse_core_costs_no_other_file(source: Path, target: Path) -> None:
    with (source / "core").open("wb") as core:
        core.truncate(20 * 2**30)
    assert why_of(fetch(Host(), source, target)) == {"core": "20.0 GiB, and a file may have 1"}
    assert set(files_of(target)) == set(ODD_NAMES)


class Nobody(LocalTransport):
    """This machine, as a user who may do nothing in particular."""

    async def _run(self, argv: tuple[str, ...], *rest: Any) -> tuple[int, str]:
        return await super()._run(
            ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv), *rest
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_what_the_user_may_not_read_costs_no_other_file(target: Path) -> None:
    """As on a host whose containers write as root, and whose ssh user is an ordinary one."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        os.chown(work, 65534, 65534)
        source = Path(work, NODE)
        (source / "root's own").mkdir(parents=True)
        for name in ("rank0.out.log", "root's log", "root's own/log"):
            (source / name).write_text(name)
        (source / "root's own").chmod(0o700)
        (source / "root's log").chmod(0o600)
        assert why_of(fetch(Nobody("node1"), source, target)) == {
            "root's own": "the ssh user may not read this folder",
            "root's log": "the ssh user may not read it",
        }
    assert set(files_of(target)) == {"rank0.out.log"}


def test_a_name_that_is_not_utf8_and_one_too_long_cost_no_other_file(source: Path, target: Path) -> None:
    Path(os.fsdecode(bytes(source) + b"/caf\xe9.log")).write_text("x")
    (source / ("n" * 99)).write_text("x")
    left_out = fetch(Host(), source, target)
    assert sorted(why_of(left_out).values()) == ["a name has more than 98 bytes", "its name is not UTF-8"]
    assert set(files_of(target)) == set(ODD_NAMES)


def test_a_file_below_many_folders_costs_no_other(source: Path, target: Path) -> None:
    here = os.open(source, os.O_RDONLY)
    # one is too deep for a recursive function, the other's path too long for the system
    for name, depth in (("d", 1200), ("n" * 90, 60)):
        at = os.dup(here)
        for _ in range(depth):
            os.mkdir(name, dir_fd=at)
            below = os.open(name, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(os.open("log", os.O_CREAT, dir_fd=at))
        os.close(at)
    os.close(here)
    try:
        left_out = why_of(fetch(Host(), source, target))
    finally:
        subprocess.run(["rm", "-rf", source / "d", source / ("n" * 90)], check=True)
    assert left_out == {"/".join([name] * 9): "it lies deeper than 8 folders" for name in ("d", "n" * 90)}
    assert set(files_of(target)) == set(ODD_NAMES)


def test_a_file_below_as_many_folders_as_may_be_is_brought(source: Path, target: Path) -> None:
    deep = source / "/".join("d" * 8)
    deep.mkdir(parents=True)
    (deep / "log").write_text("x")
    assert fetch(Host(), source, target) == ()
    assert files_of(target) == files_of(source)


def test_more_files_than_logs_ever_are(source: Path, target: Path) -> None:
    (source / "flood").mkdir()
    for number in range(MOST_FILES):
        (source / "flood" / str(number)).touch()
    left_out = fetch(Host(), source, target)
    assert left_out is not None and len(left_out) == len(ODD_NAMES)
    assert len(files_of(target)) == MOST_FILES
    assert "rank0.out.log" in files_of(target)


def list_in(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a list have no more than `room` bytes."""
    monkeypatch.setattr(collect, "LIST", LIST.replace(str(LARGEST_LISTING), str(room)))
    monkeypatch.setattr(collect_listing, "LARGEST_LISTING", room)


OWN_LOGS = (
    "rank0.out.log",
    "rank11.out.log",
    "start_pytorch_task.log",
    "telemetry.jsonl",
    "cpu_monitor.log",
    "inventory.json",
)


@pytest.mark.parametrize("name", ["{}", "{}monitor.log", "start_{}_task.log", "rank{}00.out.log"])
@pytest.mark.parametrize("room", [LARGEST_LISTING, 4096])
def test_a_flood_costs_none_of_flagperfs_own_logs(
    room: int, name: str, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty files stand before logs in every order but this; a list that is cut ends before it comes to the logs."""
    list_in(room, monkeypatch)
    for number in range(1, MOST_FILES + 1):
        (source / name.format(number)).touch()
    for name in OWN_LOGS:
        (source / name).write_text("content")
    left_out = why_of(fetch(Host(), source, target))
    assert left_out and not set(OWN_LOGS) & set(left_out)
    assert all((target / name).read_text() == "content" for name in OWN_LOGS)


def test_the_monitor_writes_no_log_of_a_host_that_is_not_own() -> None:
    sources = [CpuUtilisation, MemoryUtilisation, power.MachinePower, power.RaplPower]
    assert sorted(source.log_name for source in sources) == sorted(HOST_LOGS)
    others = {each for each in Source.__subclasses__() if each.log_name} - {*sources}
    assert not others


def test_an_own_log_that_was_made_a_link_is_named_although_the_list_is_full(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_in(4096, monkeypatch)
    for number in range(MOST_FILES):
        (source / str(number)).touch()
    (source / "rank0.out.log").unlink()
    (source / "rank0.out.log").symlink_to("/etc/passwd")
    assert why_of(fetch(Host(), source, target))["rank0.out.log"] == "a link"


def test_a_list_too_long_is_asked_for_again_without_what_lies_deeper(source: Path, target: Path) -> None:
    class Flooded(LocalTransport):
        async def run(self, argv: Sequence[str], **options: Any) -> Completed:
            done = await super().run(argv, **options)
            if LIST not in argv or argv[5] == "1":
                return done
            flood = ". 0 \0" + "".join(f"r 1 flood/{number:0100}\0" for number in range(45_000))
            return Completed(done.host, done.argv, 0, flood[:LARGEST_LISTING], "")

    assert why_of(fetch(Flooded("node1"), source, target)) == {
        "the rest": "the list of the folder is longer than 512 KiB"
    }
    assert set(files_of(target)) == set(ODD_NAMES) - {"sub/dir/telemetry.jsonl"}


# ---- what comes


def test_a_log_that_grows_comes_as_it_was_read(source: Path, target: Path) -> None:
    def grow() -> None:
        with (source / "rank0.out.log").open("a") as log:
            log.write("one more\n")

    assert fetch(Host(meanwhile=grow), source, target) == ()
    assert (target / "rank0.out.log").read_text().startswith("one more\n")
    assert set(files_of(target)) == set(ODD_NAMES)


def test_a_file_that_vanishes_costs_no_other(source: Path, target: Path) -> None:
    assert fetch(Host(meanwhile=lambda: (source / "-rf").unlink(missing_ok=True)), source, target) == ()
    assert set(files_of(target)) == set(ODD_NAMES) - {"-rf"}


def test_an_altered_file_is_noticed_and_costs_no_other(source: Path, target: Path) -> None:
    (source / "Ümläut").write_text("accuracy 0.91")
    host = Host(lambda stream: stream.replace(b"0.91", b"0.99"))
    assert why_of(fetch(host, source, target)) == {"Ümläut": collect.ALTERED}
    assert host.streams == collect.ATTEMPTS + 1  # the one below in `sub` has come at once
    assert set(files_of(target)) == set(ODD_NAMES) - {"Ümläut"}


def test_a_stream_that_fails_once_is_asked_for_again(source: Path, target: Path) -> None:
    class Flaky(Host):
        async def run(self, argv: Sequence[str], **options: object) -> Completed:
            if SEND in argv and self.streams == 0:
                self.streams += 1
                raise TransportError("contact was lost", where=self.host)
            return await super().run(argv, **options)  # type: ignore[arg-type]

    assert fetch(Flaky(), source, target) == ()
    assert files_of(target) == files_of(source)


class Broken(Host):
    """This machine, and this controller, on which a stream with `name` always ends in `error`."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__()
        self.name, self.error = name, error

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if SEND in argv and self.name.encode() in options["stdin"]:
            await options["stdout"](b"half of it")
            raise self.error
        return await super().run(argv, **options)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TransportError("contact was lost"), "contact was lost"),
        (CommandTimeoutError("not done in time"), collect.LATE),
        (
            OSError(28, "No space left on device"),
            "cannot be written here: [Errno 28] No space left on device",
        ),
    ],
)
def test_what_goes_wrong_with_a_large_file_costs_no_log(
    error: Exception, why: str, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the top came in one stream: a core dump on a slow link, or for a small disk, cost every log."""
    monkeypatch.setattr(collect_listing, "SMALL_STREAM", 500_000)
    (source / "core").write_bytes(bytes(10**6))
    (source / "rank0.out.log").write_text("FINISHED")
    items = fetch(Broken("core", error), source, target)
    left_out = why_of(items)
    assert not any(item.is_full for item in items or ()), "no verdict needs it"
    assert set(left_out) <= {"core", "sub/dir/telemetry.jsonl"} and left_out["core"].endswith(why)
    assert (target / "rank0.out.log").read_text() == "FINISHED"
    assert set(files_of(target)) == set(ODD_NAMES) - set(left_out)


def test_what_has_no_room_here_is_left_out_before_anything_comes(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = shutil._ntuple_diskusage(10 * 2**30, 0, 2**30 + 10 * 2**20)
    monkeypatch.setattr(collect.shutil, "disk_usage", lambda path: disk)
    (source / "core").write_bytes(b"")
    os.truncate(source / "core", 900 * 2**20)
    host = Host()
    why = "no room for it on the controller, whose disk has 1034 MiB free, of which 1024 are kept for later rounds"
    assert why_of(fetch(host, source, target)) == {"core": why}
    assert host.streams == 2, "small files come at once: the top's, and those of the folder below"
    assert set(files_of(target)) == set(ODD_NAMES)


def test_of_a_disk_without_room_nothing_is_told_as_kept(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(2**20, 2**20, 0))
    (source / "rank0.out.log").write_text("FINISHED")
    (source / "core").write_text("content")
    left_out = fetch(Host(), source, target)
    assert why_of(left_out)["rank0.out.log"].endswith("has 0 MiB free")
    assert all(item.has_no_room and not item.is_full for item in left_out or ()), "nothing was written"


@pytest.mark.parametrize(("number", "is_full"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_a_log_that_writing_found_no_room_for_is_told_apart(
    number: int, is_full: bool, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect_listing, "SMALL_STREAM", 500_000)
    (source / "acme_monitor.log").write_bytes(bytes(10**6))
    (source / "rank0.out.log").write_text("FINISHED")
    left_out = fetch(Broken("acme_monitor.log", OSError(number, "the disk's words")), source, target)
    (item,) = (each for each in left_out or () if each.path == "acme_monitor.log")
    assert (item.is_full, item.has_no_room) == (is_full, is_full)


def test_logs_of_which_none_can_be_written_here_for_want_of_room_are_told_apart(
    source: Path, target: Path
) -> None:
    (source / "rank0.out.log").write_text("FINISHED")
    for number, kind in ((errno.ENOSPC, NoRoomError), (errno.EIO, FlagPerfError)):
        with pytest.raises(FlagPerfError) as caught:
            fetch(Broken(".", OSError(number, "the disk's words")), source, target)
        assert type(caught.value) is kind and "the disk's words" in caught.value.message


def test_what_a_task_leaves_does_not_take_the_room_of_later_rounds(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds full of junk filled the disk to its last byte, and honest ones after them were lost, with the summary."""
    disk = shutil._ntuple_diskusage(10 * 2**30, 0, 50 * 2**20)
    monkeypatch.setattr(collect.shutil, "disk_usage", lambda path: disk)
    for name in OWN_LOGS:
        (source / name).write_text("content")
    left_out = why_of(fetch(Host(), source, target))
    assert set(files_of(target)) == set(OWN_LOGS), "a small disk costs no verdict"
    assert set(left_out) == set(ODD_NAMES) - set(OWN_LOGS)
    assert "50 MiB free, of which 1024 are kept" in left_out["-rf"]


class Ends(LocalTransport):
    """This machine, where `meanwhile` happens before both ends of a log are read."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__("node1")
        self.meanwhile = meanwhile

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if collect.SEND_ENDS in argv:
            self.meanwhile()
        return await super().run(argv, **options)


@pytest.fixture
def long_log(source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rank 0's log of 10 kB, where a file may have 4096 bytes and of a longer log 2 * 1000 come."""
    for bound in ("LARGEST_FILE", "SMALL_STREAM"):
        monkeypatch.setattr(collect_listing, bound, 4096)
    monkeypatch.setattr(collect, "SEND_ENDS", collect.SEND_ENDS.replace(f"={END_SIZE} ", "=1000 "))
    for module in (collect, collect_stream):
        monkeypatch.setattr(module, "END_SIZE", 1000)
    subprocess.run(["find", source, "-mindepth", "1", "-delete"], check=True)
    (source / "telemetry.jsonl").write_text("small")
    (source / "rank0.out.log").write_text("begin\n" + "x" * 10_000 + "\nFINISHED\n")
    return source / "rank0.out.log"


def test_of_rank_0s_log_both_ends_come_however_long_it_is(long_log: Path, target: Path) -> None:
    """Days of training had no verdict, for a log above 1 GiB was left out."""
    left_out = fetch(Ends(), long_log.parent, target)
    assert why_of(left_out) == {"the middle of rank0.out.log": "0.0 GiB, and a file may have 0"}
    text = (target / "rank0.out.log").read_text()
    assert text.startswith("begin\nxxx") and text.endswith("xxx\nFINISHED\n")
    assert "\n[FlagPerf] 8016 bytes of this log were not collected\n" in text
    assert len(text) < 2100


@pytest.mark.parametrize(("is_link", "why"), [(True, "dd"), (False, "cut off")])
def test_both_ends_are_those_of_the_listed_file(
    is_link: bool, why: str, long_log: Path, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET * 1000)

    def replace() -> None:
        if is_link:
            long_log.unlink()
            long_log.symlink_to(tmp_path / "secret")
        else:
            os.truncate(long_log, 500)

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(collect, "ATTEMPTS", 1)
    left_out = why_of(fetch(Ends(replace), long_log.parent, target))
    monkeypatch.undo()
    assert why in left_out["rank0.out.log"]
    assert set(files_of(target)) == {"telemetry.jsonl"}


class Slow(Host):
    """This machine; what begins with `slow` takes all the time that it is given, by the clock of the loop."""

    def __init__(self, slow: str) -> None:
        super().__init__()
        self.slow = slow

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if SEND not in argv or not argv[-1].startswith(NODE + self.slow):
            return await super().run(argv, **options)
        self.streams += 1
        loop = asyncio.get_running_loop()
        later = loop.time() + options["timeout"]
        loop.time = lambda: later  # type: ignore[method-assign]
        raise CommandTimeoutError("not done in time", where=self.host)


def test_the_time_is_for_all_folders_together(source: Path, target: Path) -> None:
    """Each had the whole time, three times over: a task that makes many could hold the round for days."""
    for number in range(20):
        (source / "slow" / str(number)).mkdir(parents=True)
        (source / "slow" / str(number) / "file").write_bytes(bytes(10**5))  # the large come last
    host = Slow("/slow")
    left_out = why_of(fetch(host, source, target))
    assert left_out == {f"slow/{number}/file": collect.LATE for number in range(20)}
    assert host.streams == 3, "the top's, that of the other folder, and the one that took all the time"
    assert set(files_of(target)) == set(ODD_NAMES)


def test_without_time_for_the_logs_there_is_an_error_at_once(source: Path, target: Path) -> None:
    host = Slow("")
    assert failing_fetch(host, source, target).message == "the logs were not collected: not done within 60 s"
    assert host.streams == 1


def test_a_host_that_is_lost_is_said_so(source: Path, target: Path) -> None:
    class Lost(Host):
        async def run(self, argv: Sequence[str], **options: object) -> Completed:
            raise TransportError("contact was lost", where=self.host)

    error = failing_fetch(Lost(), source, target)
    assert "contact was lost" in error.message and "they still lie on" in error.remedy


def test_of_a_host_that_keeps_nothing_no_log_is_said_to_lie_there(source: Path, target: Path) -> None:
    class Pod(Host):
        keeps = False

        async def run(self, argv: Sequence[str], **options: object) -> Completed:
            raise TransportError("it is not there any more", where=self.host)

    with pytest.raises(FlagPerfError) as caught:
        fetch(Pod(), source, target)
    assert caught.value.remedy.startswith("they go with it") and str(source) not in caught.value.remedy


def test_a_host_that_is_lost_and_then_silent_is_told_by_how_it_was_lost(source: Path, target: Path) -> None:
    class Lost(Host):
        asked = 0

        async def run(self, argv: Sequence[str], **options: object) -> Completed:
            self.asked += 1
            if self.asked > 1:
                raise CommandTimeoutError("not done after 1.3 s, ended: sh -c ...", where=self.host)
            raise TransportError("it refuses connections", where=self.host)

    error = failing_fetch(Lost(), source, target)
    assert error.message == "the logs were not collected: it refuses connections"
    assert "they still lie on" in error.remedy


def test_more_than_was_listed_is_not_taken(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "GROWTH", 0)
    host = Host(lambda stream: stream + bytes(10**6))
    assert "more comes than was listed" in failing_fetch(host, source, target).message


class Lying(LocalTransport):
    """A host that lists each of its files as empty."""

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        done = await super().run(argv, **options)
        return replace(done, stdout=re.sub(r"\br \d+ ", "r 0 ", done.stdout)) if LIST in argv else done


def test_what_comes_beyond_the_list_leaves_the_room_that_is_kept(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host listed a hundred folders with an empty file each and sent 16 MiB as each of them."""
    shutil.rmtree(source)
    for number in range(30):
        (source / str(number)).mkdir(parents=True)
        (source / str(number) / "grown").write_bytes(bytes(MIB))
    disk = shutil._ntuple_diskusage(10 * GIB, 0, GIB + 10 * MIB)
    monkeypatch.setattr(collect.shutil, "disk_usage", lambda path: disk)
    monkeypatch.setattr(collect, "ATTEMPTS", 1)
    left_out = fetch(Lying("node1"), source, target)
    came = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    assert 0 < came <= 10 * MIB
    assert left_out and len(left_out) == 30 - came // MIB


def test_a_log_that_grows_comes_also_to_a_small_disk(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = shutil._ntuple_diskusage(10 * GIB, 0, 50 * MIB)
    monkeypatch.setattr(collect.shutil, "disk_usage", lambda path: disk)
    (source / "rank0.out.log").write_text("FINISHED")
    fetch(Lying("node1"), source, target)
    assert (target / "rank0.out.log").read_text() == "FINISHED"


def test_a_host_without_find_is_no_empty_folder(source: Path, target: Path) -> None:
    class Bare(LocalTransport):
        async def _run(self, argv: tuple[str, ...], *rest: Any) -> tuple[int, str]:
            script = argv[2].replace("find .", "no-find-here .")
            return await super()._run((*argv[:2], script, *argv[3:]), *rest)

    assert "is GNU find there?" in failing_fetch(Bare("node1"), source, target).message


# ---- where it is written


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


# ---- the list


def test_the_whole_is_bounded_and_small_files_go_first() -> None:
    large = [Entry("r", LARGEST_FILE, f"trace{number}") for number in range(9)]
    chosen, left_out = choose([*large, Entry("r", 10, "rank0.out.log")])
    assert "rank0.out.log" in chosen and sum(chosen.values()) <= LARGEST_WHOLE
    assert len(left_out) == 10 - len(chosen) and left_out[0].has_content


def test_telemetry_of_a_day_comes_whole() -> None:
    entries = [
        Entry("r", 3 * LARGEST_FILE, name) for name in ("telemetry.jsonl", "x/telemetry.jsonl", "core")
    ]
    chosen, left_out = choose(entries)
    assert (set(chosen), {item.path for item in left_out}) == (
        {"telemetry.jsonl"},
        {"x/telemetry.jsonl", "core"},
    )
    (stream,) = (each for each in streams_of(chosen, Room(2**40, 2**41))[0] if each.sizes)
    assert stream.total == 3 * LARGEST_FILE
    assert choose([Entry("r", 5 * LARGEST_FILE, "telemetry.jsonl")])[0] == {}


@pytest.mark.parametrize(
    ("sizes", "room", "streams", "no_room"),
    [
        ({}, 0, [[]], []),
        ({"a": 1, "b": 2, "d/c": 3}, 999, [["a", "b"], ["d/c"]], []),
        ({"log": 1, "core": 65 * MIB, "c": 1}, 999 * MIB, [["log"], ["core"], ["c"]], []),
        ({"log": 65 * MIB, "a": 1, "b": 1}, 999 * MIB, [["log"], ["a", "b"]], []),
        ({"log": 60 * MIB, "core": 60 * MIB, "a": 5}, 130 * MIB, [["log", "a"]], ["core"]),
        ({"rank0.out.log": 9 * LARGEST_FILE}, 2 * LARGEST_FILE, [["rank0.out.log"]], []),
        ({"rank0.out.log": 9 * LARGEST_FILE}, LARGEST_FILE, [[]], ["rank0.out.log"]),
    ],
)
def test_what_is_large_comes_in_a_stream_of_its_own(
    sizes: dict[str, int], room: int, streams: list[list[str]], no_room: list[str]
) -> None:
    made, others = streams_of(sizes, Room(room + 2**30, 0))
    assert [stream.paths() for stream in made] == streams
    assert others == no_room


@pytest.mark.parametrize(
    ("free", "total", "sharing", "name", "size", "comes"),
    [
        (2 * GIB, 93 * GIB, 1, "rank0.out.log", 650 * MIB, True),
        (2 * GIB, 93 * GIB, 1, "rank0.out.log", 700 * MIB, False),  # more than it would leave
        (2 * GIB, 93 * GIB, 1, "core", 1, False),
        (48 * MIB, 48 * MIB, 1, "telemetry.jsonl", 14 * MIB, True),
        (48 * MIB, 48 * MIB, 1, "x/telemetry.jsonl", 1, False),
        (900 * GIB, 999 * GIB, 1, "core", GIB, True),
        (900 * GIB, 999 * GIB, 1000, "core", GIB, False),  # of each of a thousand nodes
        (900 * GIB, 999 * GIB, 1000, "rank3.out.log", 400 * MIB, True),
        (2 * GIB, 93 * GIB, 1, "rank12.out.log", 1, False),  # the node has no such rank
        (2 * GIB, 93 * GIB, 1, "z1monitor.log", 1, False),  # nor has a name that is like one
        (2 * GIB, 93 * GIB, 1, "other_monitor.log", 1, False),
        (2 * GIB, 93 * GIB, 1, "start_other_task.log", 1, False),
        (400 * GIB, 10_000 * GIB, 1, "rank3.out.log", 65 * MIB, True),
        (400 * GIB, 10_000 * GIB, 1, "core", 1, False),
        *(
            (2 * GIB, 93 * GIB, 1, name, 60 * MIB, True)
            for name in ("acme_monitor.log", "pwr_monitor.log", "rank3.out.log")
        ),
        *(
            (2 * GIB, 93 * GIB, 1, name, 65 * MIB, False)
            for name in ("acme_monitor.log", "pwr_monitor.log", "rank3.out.log")
        ),
    ],
)
def test_a_log_that_a_verdict_needs_may_fill_what_junk_may_not(
    free: int, total: int, sharing: int, name: str, size: int, comes: bool
) -> None:
    assert (streams_of({name: size}, Room(free, total, sharing, NODE_LOGS))[1] == []) == comes


@given(
    some.dictionaries(some.sampled_from("abcdef"), some.integers(0, 2 * LARGEST_FILE)),
    some.integers(0, 2**34),
)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_there_is_room_for_each_stream_beside_those_before_it(sizes: dict[str, int], room: int) -> None:
    paths = {path if path < "d" else f"x/{path}": size for path, size in sizes.items()}
    made, _ = streams_of(paths, Room(room + 2**30, 0))
    for stream in made:
        assert 2 * stream.total <= room
        room -= stream.total
    assert made[0].folder == "." and all(stream.sizes for stream in made[1:])


def test_a_list_is_read_beside_the_loop(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of half a million entries takes seconds, in which no other host would be heard."""
    threads = []

    def choose_here(entries: Iterable[Entry], own_logs: Collection[str]) -> Any:
        threads.append(threading.current_thread())
        return choose(entries, own_logs)

    monkeypatch.setattr(collect, "choose", choose_here)
    assert fetch(Host(), source, target) == ()
    assert threads and threading.main_thread() not in threads


def test_files_in_more_folders_than_are_asked_for_are_left_out() -> None:
    entries = [Entry("r", 1, f"{number:03}/{name}") for number in range(990) for name in "ab"]
    chosen, left_out = choose([*entries, Entry("r", 1, "rank0.out.log")])
    assert "rank0.out.log" in chosen and {"000/a", "000/b", "099/b"} <= set(chosen)
    assert len({path.rpartition("/")[0] for path in chosen}) == MOST_FOLDERS_ASKED + 1
    assert {item.why for item in left_out} == {"with it there are files in more than 100 folders"}


@pytest.mark.parametrize("path", ["../up", "/etc/passwd", "a/../../up", "a//b", "./a", "", "."])
def test_a_list_that_leaves_its_folder_is_refused(path: str) -> None:
    with pytest.raises(FlagPerfError, match="broken"):
        read_listing(f". 0 \0r 5 {path}\0")


@given(some.lists(some.tuples(some.sampled_from("rfdlpscb?"), some.integers(), some.text(max_size=200))))
@settings(derandomize=True, max_examples=100, deadline=None)
def test_whatever_a_host_lists_nothing_outside_is_chosen(entries: list[tuple[str, int, str]]) -> None:
    listing = ". 0 \0" + "".join(f"{kind} {size} {path}\0" for kind, size, path in entries)
    try:
        chosen, left_out = choose(read_listing(listing))
    except FlagPerfError:
        return
    for path in chosen:
        assert ".." not in path.split("/") and not path.startswith("/")
    assert sum(chosen.values()) <= LARGEST_WHOLE
    assert len(note_on(left_out, "/there")) < 2000


def test_a_note_names_some_and_counts_the_rest() -> None:
    left_out = [LeftOut("link", "a link"), *(LeftOut(f"core{number}", "too large") for number in range(8))]
    note = note_on(left_out, "/srv/node")
    assert note.startswith("not collected: link (a link), core0, core1, core2, core3 (too large), and 4 more")
    assert note.endswith("and 4 more; it still lies in /srv/node")
    assert "lies in" not in note_on([LeftOut("link", "a link", has_content=False)], "/srv/node")
    assert note_on(left_out, "").endswith("and 4 more; it goes with its host")
