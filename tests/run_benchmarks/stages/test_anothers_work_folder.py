"""The work folder goes while a run lasts, and another user makes one of that name: nothing in it is used or removed.

The hosts are this machine, by the real shell.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from run_benchmarks.hosts.base import Host
from run_benchmarks.images.build import BuildSite
from run_benchmarks.images.files import MEASURE, ImageFiles, Maker, sif, squash_fs
from run_benchmarks.images.layers import ImagePlan, Layer
from run_benchmarks.images.pip_handover import settings_on_host
from run_benchmarks.images.store import ImageStore
from run_benchmarks.names import HostPaths
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages.deploy import _unpack
from run_benchmarks.stages.file_systems import FileSystems
from run_benchmarks.stages.passing import Content, Place, Site, bring, give, keep
from run_benchmarks.stages.tree import pack_tree
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.stages.training_folder import make_training
from utils.errors import FlagPerfError

NOBODY = 65534
UID = "run20261120094218-d7e6a7"
HOST = Host("node1", "127.0.0.1", LocalTransport("node1"))
REFUSED = "is no folder of root alone"
FILE = b"what was sent"
CONTENT = Content(len(FILE), hashlib.sha256(FILE).hexdigest())
COPY, TREE = f"copy-{UID}-0123456789ab", "tree-0123456789abcdef"
PIP = f"pip/flagperf-{UID}-build-01234567"
TAG = "flagperf/acme-pytorch:0123456789abcdef0123456789abcdef"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")


def make_place(work: Path) -> Place:
    """A whole copy in a work folder."""
    (work / COPY).mkdir(parents=True, mode=0o700)
    (work / COPY / "copy").write_bytes(FILE)
    return Place(HOST, str(work), f"{COPY}/copy")


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)


def listed(folder: Path) -> dict[str, bytes]:
    """All that is in a folder, with its content."""
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.fixture
def own(tmp_path: Path) -> Place:
    """A copy in a work folder that is the ssh user's."""
    (tmp_path / "own").mkdir(mode=0o700)
    return make_place(tmp_path / "own")


@pytest.fixture
def others(tmp_path: Path) -> Place:
    """A copy in a folder of another user, with all that a run may have had there."""
    work = tmp_path / "others"
    place = make_place(work)
    for name in (TREE, PIP, "images"):
        (work / name).mkdir(parents=True)
        (work / name / "file").write_text("his")
    give_away(work)
    return place


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there once a tool was started: FAKEs of those that make and load images."""
    (tmp_path / "bin").mkdir()
    for name in ("docker", "apptainer", "enroot"):
        tool = tmp_path / "bin" / name
        lacks_all = '[ "$1 $2" != "image inspect" ] || { echo no such image >&2; exit 1; }'
        tool.write_text(f"#!/bin/sh\n{lacks_all}\ntouch {tmp_path}/ran\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path / "ran"


def refused(work: Coroutine[Any, Any, object], why: str = REFUSED) -> None:
    with pytest.raises(FlagPerfError, match=why):
        asyncio.run(work)


def test_no_copy_is_made_there(others: Place) -> None:
    before = listed(Path(others.work))
    refused(keep(replace(others, copy=f"{COPY}/new"), FILE, 60))
    assert listed(Path(others.work)) == before


def test_no_copy_of_there_is_given_on(own: Place, others: Place) -> None:
    refused(give(others, replace(own, copy=f"{COPY}/new"), CONTENT, sys.executable))
    assert [path.name for path in Path(own.work, COPY).iterdir()] == ["copy"]


def test_no_copy_is_fetched_to_there(own: Place, others: Place) -> None:
    before = listed(Path(others.work))
    refused(give(own, replace(others, copy=f"{COPY}/new"), CONTENT, sys.executable))
    assert listed(Path(others.work)) == before


def test_no_copy_of_there_is_used_or_removed(tmp_path: Path, tools: Path) -> None:
    """Two hosts share a work folder, which goes as soon as their copy is there."""
    hosts, work = [HOST, replace(HOST, name="node2")], tmp_path / "work"
    site = Site(str(work), UID, sys.executable, FileSystems({"node2": "node1"}))
    store, used = ImageStore(engine_of("docker")), list[str]()

    async def fill(places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
        (place,) = places
        await keep(place, FILE, 60)
        work.rename(tmp_path / "gone")
        (work / place.copy).parent.mkdir(parents=True)
        (work / place.copy).write_bytes(FILE)
        give_away(work)
        return CONTENT, {}

    async def use(place: Place) -> None:
        used.append(place.host.name)
        await store.import_file(place.host.transport, place.work, place.copy)

    failed = asyncio.run(bring("it", hosts, site, 1, fill, use))
    assert all(REFUSED in error.message for error in failed.values()) and sorted(failed) == ["node1", "node2"]
    assert used == ["node1"] and not tools.exists(), "the second has not even compared it"
    assert FILE in listed(work).values(), "what is his is left alone"


@pytest.mark.parametrize("copy", ["", f"{COPY}/copy"])
def test_no_code_is_unpacked_there(copy: str, others: Place, tmp_path: Path) -> None:
    """Of a copy, or of what comes from here: he would put a link where it is made."""
    tree, before = pack_tree(make_training(tmp_path / "training")), listed(Path(others.work))
    refused(_unpack(HOST.transport, tree, HostPaths(others.work, f"{others.work}/{TREE}", "", ""), copy))
    assert listed(Path(others.work)) == before


def test_no_settings_of_pip_and_no_secrets_go_there(others: Place) -> None:
    before = listed(Path(others.work))
    site = BuildSite(TREE, others.work, UID, PurePosixPath(PIP).name, local=True)

    async def build() -> None:
        async with settings_on_host(HOST.transport, site, PipSettings(), {"A_KEY": "hunter2"}):
            pytest.fail("the build goes on")

    refused(build())
    assert listed(Path(others.work)) == before


def test_nothing_is_built_of_the_code_that_lies_there(others: Place, tools: Path) -> None:
    """An hour's building of one layer may lie between the comparison of the code and the next."""
    site = BuildSite(f"{others.work}/{TREE}", others.work, UID, "build", local=True)
    image = ImagePlan((Layer("dockerfile", TAG, ("acme/docker_image/pytorch",)),), ())

    async def log(chunk: bytes) -> None:
        pass

    building = ImageStore(engine_of("docker")).build(HOST.transport, site, image, PipSettings(), log)
    refused(building, "a directory of nobody, and not a folder of root")
    assert not tools.exists()


@pytest.mark.parametrize("maker", [sif, squash_fs])
def test_no_image_is_made_a_file_there(maker: Maker, others: Place, tools: Path) -> None:
    """It is made in a folder of /var/tmp, where an hour's building went before."""
    files = ImageFiles(others.work, ".sif", maker, ImageStore(engine_of("docker")))
    refused(files.make(HOST.transport, TAG, others.work, "image.sif"))
    assert not tools.exists()


def test_no_file_of_there_is_taken_for_the_one_that_was_made(others: Place) -> None:
    """It may go while the tool works."""
    done = asyncio.run(HOST.transport.run(("sh", "-c", MEASURE, others.work, others.copy), timeout=60))
    assert done.returncode == 3 and not done.stdout
