"""The check of a host's data: real folders and manifests."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from run_benchmarks.stages import data as stage
from run_benchmarks.stages.checks import Status
from run_benchmarks.stages.data import data
from run_benchmarks.transports.base import Completed
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.together import Together
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.stages.checked_host import Site, assert_bad, assert_ok, prepare
from utils import manifest


def test_data_without_a_manifest(site: Site) -> None:
    assert_ok(site.check(data), f"{site.folder}/data (no manifest)")


def test_images_that_were_not_prepared_are_no_data_of_a_search(site: Site) -> None:
    roles = 'class Case:\n    roles = ("controller", "worker")\n    def work(self, engine, perf_log): ...\n'
    site.tree.write("benchmarks/toy/pytorch/case.py", roles)
    site.tree.write("benchmarks/toy/pytorch/config/_base.py", 'case_kind = "measure"\nsearch_seconds = 75\n')
    site.tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "")
    remedy = "prepare them into another folder, and name that one in test_conf.py; how is told by: cd "
    assert_bad(site.check(data), Status.ERROR, "has no manifest.json that can be read", remedy)
    prepare(site.folder / "data")
    assert_ok(site.check(data), "2 files as in the manifest")


def test_a_manifest_of_one_file_is_told_as_one(site: Site) -> None:
    prepare(site.folder / "data")
    folder = site.folder / "data"
    (folder / "train" / "shard_1.hdf5").unlink()
    files = manifest.describe(folder, ["train/shard_0.hdf5"])
    manifest.write(folder, manifest.Manifest("toy", "test", {}, {}, files))
    assert_ok(site.check(data), "1 file as in the manifest")


def test_data_as_in_its_manifest(site: Site) -> None:
    prepare(site.folder / "data")
    check = site.check(data)
    assert_ok(check, "2 files as in the manifest")
    folder = site.folder / "data"
    assert check.facts == {str(folder): manifest.sha256_of(folder / manifest.MANIFEST_NAME)}


def test_data_that_is_not_there(site: Site) -> None:
    (site.folder / "data").rmdir()
    check = site.check(data)
    assert_bad(
        check,
        Status.ERROR,
        f"{site.folder}/data does not exist (toy:pytorch:X1:1:2:1)",
        "put the data there on node1",
    )


def test_data_that_is_not_there_and_that_the_case_can_make(site: Site) -> None:
    (site.folder / "data").rmdir()
    site.tree.write("benchmarks/toy/prepare/__main__.py", "")
    words = (sys.executable, "-m", "benchmarks.toy.prepare", "--help")
    command = f"cd {site.plan.training_dir} && {shlex.join(words)}"
    given = f"with what), given --out {site.folder}/data and from what (a demo's: --demo), as is told by: {command}"
    assert_bad(site.check(data), Status.ERROR, "does not exist", given)


def test_what_the_data_and_the_mounts_below_them_are_is_asked_in_one_session(site: Site) -> None:
    """Of a thousand hosts a session more takes the controller more than a second."""
    sessions = []

    class Counting(LocalTransport):
        async def run(self, argv: Sequence[str], **options: Any) -> Completed:
            sessions.append(argv)
            return await super().run(argv, **options)

    site.transport = Together(Counting("node1"))
    assert_ok(site.check(data), "no manifest")
    assert len(sessions) == 1


def test_data_below_which_a_container_could_write_are_refused(site: Site) -> None:
    """FAKE: the host's mounts; an engine of root's cannot make one read-only that FUSE keeps for another user."""
    theirs = f"25 22 0:7 / {site.folder}/data/theirs rw - fuse.sshfs them@h: rw,user_id=1001,group_id=1001\n"
    site.transport = AnsweringHost({
        "/proc/self/mountinfo": (0, f"{site.folder}/data\0{theirs}", ""),
        "SecurityOptions": (0, "", ""),
    })  # fmt: skip
    check = site.check(data)
    assert_bad(check, Status.ERROR, f"{site.folder}/data/theirs (user ID 1001)", "allow_other")
    site.conf('RUNTIME = "process"\n')
    assert_ok(site.check(data), "no manifest")


@pytest.mark.parametrize("harm", ["missing", "short", "unexpected"])
def test_data_that_is_not_as_in_its_manifest(harm: str, site: Site) -> None:
    prepare(site.folder / "data")
    shard = site.folder / "data" / "train" / "shard_1.hdf5"
    harms: dict[str, Callable[[], object]] = {
        "missing": shard.unlink,
        "short": lambda: shard.write_bytes(b"y"),
        "unexpected": lambda: shard.with_name("shard_2.hdf5").touch(),
    }
    harms[harm]()
    check = site.check(data)
    assert_bad(check, Status.ERROR, harm, "copy them there from a host that passes this check")
    assert "train/shard_" in check.detail
    assert "prepare the data on node1 again" in check.remedy
    assert harm != "short" or "train/shard_1.hdf5 (1 bytes): shorter than the" in check.detail


def test_data_of_which_much_is_wrong_is_told_in_a_few_words(site: Site) -> None:
    prepare(site.folder / "data")
    for number in range(2, 50):
        (site.folder / "data" / "train" / f"shard_{number}.hdf5").touch()
    check = site.check(data)
    assert_bad(check, Status.ERROR, "and 43 more", "prepare the data on node1 again")


def test_data_with_a_broken_manifest(site: Site) -> None:
    (site.folder / "data" / manifest.MANIFEST_NAME).write_text("{")
    assert_bad(site.check(data), Status.ERROR, "manifest cannot be read", "prepare")


def test_all_folders_that_are_missing_are_said_at_once(site: Site) -> None:
    site.conf('CASES["toy:pytorch:X1:1:2:3"] = "/no/such/data"\n')
    (site.folder / "data").rmdir()
    check = site.check(data)
    assert_bad(
        check, Status.ERROR, f"{site.folder}/data does not exist (toy:pytorch:X1:1:2:1)", "put the data"
    )
    assert "/no/such/data does not exist (toy:pytorch:X1:1:2:3)" in check.detail


def test_the_same_manifest_of_many_hosts_is_parsed_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(site.folder / "data")
    parsed: list[str] = []
    parse = manifest.parse

    def counted(text: str, *, where: str) -> manifest.Manifest:
        parsed.append(where)
        return parse(text, where=where)

    monkeypatch.setattr(manifest, "parse", counted)
    monkeypatch.setattr(stage, "_READ", {})
    for _ in range(3):
        assert_ok(site.check(stage.data), "by SHA-256")
    assert len(parsed) == 1


def test_a_manifest_that_is_far_too_large_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(site.folder / "data")
    monkeypatch.setattr(stage, "LARGEST_MANIFEST", 100)
    assert_bad(site.check(stage.data), Status.ERROR, "printed more than", "")
