"""Data whose bytes are not those of their manifest, at equal size: real files, on this machine as the host."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from run_benchmarks.names import work_folder
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages import data_content
from run_benchmarks.stages.checks import Check, HostUse, Place, Status, outcome
from run_benchmarks.stages.data import data
from run_benchmarks.stages.data_content import DataFolder, altered_files
from run_benchmarks.stages.readings import Readings
from run_benchmarks.transports.base import Completed
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.stages.checked_host import Site, assert_bad, assert_ok, prepare
from utils import manifest
from utils.records import FailureClass

ALTERED = "train/shard_1.hdf5: altered: its SHA-256 is not that of the manifest"


class CountingHost(LocalTransport):
    """This machine; `read` has the files that it was asked to read, command by command."""

    def __init__(self) -> None:
        super().__init__("node1")
        self.read: list[list[str]] = []

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if data_content.READ in argv:
            self.read.append([Path(name).name for name in options["stdin"].decode().split("\0")[:-1]])
        return await super().run(argv, **options)


@pytest.fixture
def host(site: Site, monkeypatch: pytest.MonkeyPatch) -> CountingHost:
    """The host of a site with data, which count as left alone for a while."""
    prepare(site.folder / "data")
    monkeypatch.setattr(data_content, "SETTLED_S", -3600.0)
    site.transport = host = CountingHost()
    return host


def shard(site: Site, number: int = 1) -> Path:
    return site.folder / "data" / "train" / f"shard_{number}.hdf5"


def alter(file: Path) -> None:
    """Other bytes, and whatever a program can restore of what it was: size and time of writing."""
    before = file.stat()
    file.write_bytes(b"z" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def memory(site: Site) -> Path:
    (file,) = Path(work_folder(site.plan.run)).glob("data-*")
    return file


def test_other_bytes_of_equal_size_are_refused(site: Site, host: CountingHost) -> None:
    alter(shard(site))
    check = site.check(data)
    assert_bad(check, Status.ERROR, ALTERED, "copy them there from a host that passes this check")
    assert check.failure_class is FailureClass.DATA_ALTERED
    assert "shard_0" not in check.detail


def test_what_was_read_is_not_read_again(site: Site, host: CountingHost) -> None:
    assert_ok(site.check(data), "2 files as in the manifest, by SHA-256")
    assert_ok(site.check(data), "2 files as in the manifest, by SHA-256")
    assert host.read == [["shard_0.hdf5", "shard_1.hdf5"]]
    assert memory(site).stat().st_mode & 0o777 == 0o600


def test_what_was_changed_since_is_read_again(site: Site, host: CountingHost) -> None:
    assert_ok(site.check(data), "by SHA-256")
    alter(shard(site))
    assert_bad(site.check(data), Status.ERROR, ALTERED, "")
    assert host.read[1:] == [["shard_1.hdf5"]], "the other one was not touched"
    shard(site).write_bytes(b"y" * 200)
    assert_ok(site.check(data), "by SHA-256")


def test_a_manifest_of_other_data_is_not_taken_for_the_one_that_was_read(
    site: Site, host: CountingHost
) -> None:
    assert_ok(site.check(data), "by SHA-256")
    path = site.folder / "data" / manifest.MANIFEST_NAME
    digest = manifest.sha256_of(shard(site))
    path.write_text(path.read_text().replace(digest, "0" * 64))
    assert_bad(site.check(data), Status.ERROR, ALTERED, "")


def test_what_was_changed_just_before_it_was_read_is_not_remembered(
    site: Site, host: CountingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock of 4 ms, as file systems have, may give a further change the same time."""
    monkeypatch.setattr(data_content, "SETTLED_S", 3600.0)
    for _ in range(2):
        assert_ok(site.check(data), "by SHA-256")
    assert len(host.read) == 2


def test_much_data_are_read_and_remembered_in_parts(
    site: Site, host: CountingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_content, "BATCH_FILES", 1)
    alter(shard(site))
    for _ in range(2):
        assert_bad(site.check(data), Status.ERROR, ALTERED, "")
    assert host.read == [["shard_0.hdf5"], ["shard_1.hdf5"], ["shard_1.hdf5"]]
    host.read.clear()
    shard(site, 0).touch()
    alter(shard(site, 0))
    assert_bad(site.check(data), Status.ERROR, "shard_0", "")
    assert host.read == [["shard_0.hdf5"]], "what is wrong is said before the rest is read"


def test_a_batch_is_no_larger_than_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_content, "BATCH_BYTES", 100)
    entries = [
        manifest.FileEntry(str(number), size, "0" * 64) for number, size in enumerate((60, 40, 1, 300, 5))
    ]
    batches = data_content._batches(entries)
    assert [[entry.bytes for entry in batch] for batch in batches] == [[60, 40], [1], [300], [5]]


async def on_two_hosts(site: Site, host: CountingHost, *paths: Path) -> list[list[str]]:
    """The names of the files that are wrong, host by host, each of which sees files with the same stamps."""
    readings, made = Readings(), manifest.read(paths[0])
    argv = manifest.listing_command(made, str(paths[0]))
    listed = manifest.listed_in((await host.run(argv)).stdout, str(paths[0]))
    folders = [
        DataFolder(
            HostUse(host, (), readings=readings), f"{site.folder}/fp{number}/w", str(path), made, listed
        )
        for number, path in enumerate(paths)
    ]
    problems = await asyncio.gather(*map(altered_files, folders))
    return [[problem.name for problem in of_one] for of_one in problems]


def test_hosts_that_share_a_file_system_read_it_once(
    site: Site, host: CountingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE: this machine's own file system counts as one of a network."""
    path = site.folder / "data"
    (kind,) = {
        file.file_system
        for file in manifest.listed_in(
            asyncio.run(host.run(manifest.listing_command(manifest.read(path), str(path)))).stdout, ""
        ).values()
    }
    monkeypatch.setattr(data_content, "NETWORK", {kind})
    alter(shard(site))
    assert asyncio.run(on_two_hosts(site, host, path, path)) == 2 * [["train/shard_1.hdf5"]]
    assert host.read == [["shard_0.hdf5", "shard_1.hdf5"]]
    assert len(list(site.folder.glob("fp?/w/data-*"))) == 2, "each remembers what is right"
    host.read.clear()
    copy = site.folder / "copy"
    shutil.copytree(path, copy)
    assert asyncio.run(on_two_hosts(site, host, path, copy)) == 2 * [["train/shard_1.hdf5"]]
    assert len(host.read) == 2, "another folder, whatever its stamps, is read itself"


def test_what_was_read_before_the_machine_was_started_is_read_again(site: Site, host: CountingHost) -> None:
    """The disk, with what is remembered on it, may be a copy of another machine's."""
    assert_ok(site.check(data), "by SHA-256")
    boot, *lines = memory(site).read_text().splitlines(keepends=True)
    assert boot.strip() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    memory(site).write_text("".join(("another start\n", *lines)))
    assert_ok(site.check(data), "by SHA-256")
    assert len(host.read) == 2


@pytest.mark.parametrize("source", ["localhost:/data", "127.0.0.1:/data", "//LOCALHOST/data", "[::1]:/data"])
def test_what_a_host_has_mounted_from_itself_is_shared_with_nobody(source: str) -> None:
    assert data_content.OWN_ADDRESS.match(source)
    assert not data_content.OWN_ADDRESS.match("server:/localhost")


def test_a_copy_of_a_disk_with_another_byte_is_read_itself(site: Site, host: CountingHost) -> None:
    """Names, inodes and times are those of the original, as `dd` copies them."""
    copy = site.folder / "copy"
    shutil.copytree(site.folder / "data", copy)
    (copy / "train" / "shard_1.hdf5").write_bytes(b"z" * 200)
    wrong = asyncio.run(on_two_hosts(site, host, site.folder / "data", copy))
    assert wrong == [[], ["train/shard_1.hdf5"]]


def test_files_of_another_device_are_not_taken_for_those_that_were_read(
    site: Site, host: CountingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE: the device's number, as that of a copy of the disk that is mounted in the place of the first."""
    assert_ok(site.check(data), "by SHA-256")
    listed_in = manifest.listed_in

    def elsewhere(listing: str, where: str) -> dict[str, manifest.Listed]:
        return {path: replace(file, device="7") for path, file in listed_in(listing, where).items()}

    monkeypatch.setattr(manifest, "listed_in", elsewhere)
    assert_ok(site.check(data), "by SHA-256")
    assert len(host.read) == 2


def test_a_line_break_in_a_name_beside_the_data_is_no_obstacle(site: Site, host: CountingHost) -> None:
    (site.folder / "data" / "a\nb").write_text("")
    assert_ok(site.check(data), "2 files as in the manifest, by SHA-256")


@pytest.mark.parametrize("there", [True, False])
def test_a_host_that_is_only_seen_remembers_where_there_is_a_folder_for_it(
    there: bool, site: Site, host: CountingHost
) -> None:
    work = Path(work_folder(site.plan.run))
    if there:
        work.mkdir(parents=True, mode=0o700)
    for _ in range(2):
        assert_ok(seen_only(site), "by SHA-256")
    assert len(host.read) == (1 if there else 2)
    assert work.exists() == there


def seen_only(site: Site) -> Check:
    """As doctor makes the check."""
    plan, runtime = site.plan, site.runtime

    async def check() -> Check:
        places = tuple(Place(case, 0, case.hosts) for case in plan.cases)
        use = HostUse(site.transport, places, is_only_seen=True)
        return await outcome(data, plan, cast(Runtime, runtime), use)

    return asyncio.run(check())


def test_a_link_in_the_place_of_the_memory_is_not_followed(site: Site, host: CountingHost) -> None:
    assert_ok(site.check(data), "by SHA-256")
    kept = memory(site)
    kept.rename(site.folder / "elsewhere")
    kept.symlink_to(site.folder / "elsewhere")
    assert_ok(site.check(data), "by SHA-256")
    assert len(host.read) == 2
    assert not kept.is_symlink()
    kept.write_bytes(b"\xff\0" * 10_000)  # whatever lies there is only compared
    assert_ok(site.check(data), "by SHA-256")
    assert len(host.read) == 3


def test_what_the_ssh_user_cannot_read_is_a_warning(site: Site, host: CountingHost) -> None:
    """FAKE: the tests' user is root, who can read everything."""
    site.transport = AnsweringHost({data_content.READ: (0, "1700000000\n", "Permission denied")})
    check = site.check(data)
    assert_bad(check, Status.WARNING, "2 files could not be read, such as train/shard_0", "ssh user")


def test_what_cannot_be_remembered_is_said_and_read_again(
    site: Site, host: CountingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_content, "REMEMBER", "echo no space left >&2; exit 1")
    for _ in range(2):
        assert_ok(site.check(data), "by SHA-256")
    assert len(host.read) == 2


def test_a_disk_that_is_far_too_slow_ends_the_check(
    site: Site, host: CountingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE: the reading, which never ends."""
    monkeypatch.setattr(data_content, "READ", "exec sleep 600")
    monkeypatch.setattr(data_content, "STARTING_S", 0.1)
    assert_bad(site.check(data), Status.ERROR, "were not read in 0 s", "what slows the disk")


def test_no_size_that_a_manifest_names_makes_the_check_endless(
    site: Site, host: CountingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE: the reading. By the pace that a disk must have, what is said to be 15 TiB would be waited for 19 days."""
    monkeypatch.setattr(data_content, "READ", "exec sleep 600")
    monkeypatch.setattr(data_content, "SLOWEST_BYTES_PER_S", 1e-9)
    monkeypatch.setattr(data_content, "STARTING_S", 0.1)
    monkeypatch.setattr(data_content, "LONGEST_READING_S", 0.2)
    assert_bad(site.check(data), Status.ERROR, "were not read in 0 s", "what slows the disk")
