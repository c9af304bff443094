"""Images that are files: made once, brought to each file system once. Engine and Apptainer are FAKEs (tests/fakes)."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from run_benchmarks.hosts.base import Host
from run_benchmarks.images.files import SUM, ImageFiles, sif, squash_fs
from run_benchmarks.images.layers import ImagePlan, Layer
from run_benchmarks.images.store import ImageStore, StoredImage
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages import image_files
from run_benchmarks.stages.file_systems import FileSystems, shared_file_systems
from run_benchmarks.stages.image import DistributionError, ImagesDifferError
from run_benchmarks.stages.image_files import ImageFileStage
from run_benchmarks.stages.tree import pack_tree
from run_benchmarks.transports.base import ByteSink, ByteSource, CommandError
from run_benchmarks.transports.local import LocalTransport
from tests.fakes import apptainer
from tests.fakes.container_engine import FakeEngineHost, fake_engine
from tests.run_benchmarks.stages.sharing_hosts import Apart, Node, hosts_of
from tests.run_benchmarks.stages.training_folder import make_training
from utils.errors import FlagPerfError

TAG = "flagperf/acme-pytorch:0123456789abcdef0123456789abcdef"
FILE = "flagperf-acme-pytorch-0123456789abcdef0123456789abcdef.sif"
UID = "run20261120094218-d7e6a7"


class Cluster:
    """Hosts h1 and h2 share a file system, h3 has its own; this machine has a FAKE engine and a FAKE Apptainer."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.work, self.own = folder / "shared" / ".flagperf", folder / "own" / ".flagperf"
        for work in (self.work, self.own):
            work.mkdir(parents=True, mode=0o700)
        monkeypatch.setenv("PATH", f"{apptainer.install(folder / 'bin')}:{os.environ['PATH']}")
        self.here = FakeEngineHost("localhost", folder)
        self.files = ImageFiles(str(self.work), ".sif", sif, ImageStore(engine_of(fake_engine(folder))))
        self.nodes = [Node("h1"), Node("h2"), Apart("h3", self.work, self.own)]
        self.hosts = hosts_of(*self.nodes)

    def run(self, hosts: Sequence[Host] = (), files: ImageFiles | None = None) -> dict[str, StoredImage]:
        image = ImagePlan((Layer("dockerfile", TAG, ("acme/docker_image/pytorch",)),), ())
        training = self.folder / "training"
        tree = pack_tree(training if training.is_dir() else make_training(training))

        async def scenario() -> dict[str, StoredImage]:
            seen = await shared_file_systems(self.hosts, str(self.work), UID)
            stage = ImageFileStage(
                files or self.files,
                hosts or self.hosts,
                self.here,
                image,
                PipSettings(),
                tree,
                UID,
                self.folder,
                seen,
            )
            return await stage.run()

        return asyncio.run(scenario())

    def image(self, work: Path) -> Path:
        return work / "images" / FILE

    def commands(self, part: str) -> int:
        return sum(part in script for node in self.nodes for script in node.scripts)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(tmp_path, monkeypatch)


def test_it_is_made_once_and_copied_to_each_file_system_once(cluster: Cluster) -> None:
    images = cluster.run()
    assert sorted(images) == ["h1", "h2", "h3"] and len(set(images.values())) == 1
    (image,) = set(images.values())
    for work in (cluster.work, cluster.own):
        text = subprocess.run(["sha256sum", str(cluster.image(work))], capture_output=True, text=True).stdout
        assert (
            image.id == f"sha256:{text[:64]}" and (work / "images" / f"{FILE}{SUM}").read_text() == text[:64]
        )
        assert sorted(path.name for path in (work / "images").iterdir()) == [FILE, f"{FILE}{SUM}"]
        assert [path.name for path in work.iterdir()] == ["images"], "no copy is left"
    assert cluster.commands("exec cat >") == 2, "to h1 for h2 too, and to h3"
    assert len(cluster.here.asked("build")) == 1 and len(cluster.here.asked("save")) == 1


def test_what_hosts_have_is_not_made_again(cluster: Cluster) -> None:
    first = cluster.run()
    assert cluster.run() == first
    assert len(cluster.here.asked("save")) == 1


def test_a_host_that_lacks_it_gets_the_very_file_of_another(cluster: Cluster) -> None:
    """Made anew it would be another one, with another time in it."""
    first = cluster.run()
    cluster.image(cluster.own).unlink()
    assert cluster.run() == first
    assert len(cluster.here.asked("save")) == 1
    assert cluster.image(cluster.own).read_bytes() == cluster.image(cluster.work).read_bytes()


def test_a_file_that_was_altered_on_its_host_is_not_passed_on(cluster: Cluster) -> None:
    cluster.run()
    cluster.image(cluster.own).unlink()
    with cluster.image(cluster.work).open("ab") as file:
        file.write(b"more")
    with pytest.raises(DistributionError, match="not what it was when it came"):
        cluster.run()


def test_what_a_host_sends_fills_no_disk(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.run()
    cluster.image(cluster.own).unlink()
    monkeypatch.setattr(image_files, "LEFT_FREE", 2**62)
    monkeypatch.setattr(image_files, "SHARE_LEFT_FREE", 1.0)
    with pytest.raises(DistributionError, match="too little room is left"):
        cluster.run()


def test_different_files_are_no_image(cluster: Cluster) -> None:
    cluster.run()
    (cluster.own / "images" / f"{FILE}{SUM}").write_text("0" * 64)
    with pytest.raises(ImagesDifferError, match="hold different files") as caught:
        cluster.run()
    assert "remove " in caught.value.remedy and FILE in caught.value.remedy


def test_a_copy_that_was_altered_on_its_way_is_no_image(cluster: Cluster) -> None:
    class Altering(Node):
        async def _run(
            self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
        ) -> tuple[int, str]:
            if "exec cat >" in argv[2]:
                argv = ("sh", "-c", argv[2].replace("exec cat", "tr x y"), *argv[3:])
                stdin = b"x"
            return await super()._run(argv, stdin, stdout)

    host = Host("h1", "h1", Altering("h1"))
    with pytest.raises(DistributionError, match="not what was sent"):
        cluster.run([host])
    assert not cluster.image(cluster.work).exists()


def test_links_in_the_place_of_an_image_are_not_followed(cluster: Cluster, tmp_path: Path) -> None:
    (cluster.work / "images").mkdir()
    (tmp_path / "other").write_text("precious")
    (tmp_path / "sum").write_text("0" * 64)
    cluster.image(cluster.work).symlink_to(tmp_path / "other")
    (cluster.work / "images" / f"{FILE}{SUM}").symlink_to(tmp_path / "sum")
    cluster.run()
    assert not cluster.image(cluster.work).is_symlink() and cluster.image(cluster.work).stat().st_size > 0
    assert (tmp_path / "other").read_text() == "precious" and (tmp_path / "sum").read_text() == "0" * 64


def test_a_tool_that_is_not_here_is_an_error_of_this_machine(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cluster.folder / "bin" / "apptainer").unlink()
    with pytest.raises(CommandError) as caught:
        cluster.run()
    assert caught.value.where == "localhost" and "this machine makes the file" in caught.value.remedy


def test_images_are_listed_and_removed_by_their_names(cluster: Cluster) -> None:
    cluster.run()
    (cluster.work / "images" / "other.txt").touch()
    (cluster.work / "images" / "link.sif").symlink_to("/etc/passwd")

    async def scenario() -> None:
        (image,) = await cluster.files.own_images(LocalTransport())
        assert image.tag == cluster.files.kept_as(TAG) == FILE
        assert image.size == cluster.image(cluster.work).stat().st_size and 0 <= image.age_s < 3600
        for name in ("../x.sif", "/etc/passwd.sif", "other.txt", "-rf.sif"):
            with pytest.raises(FlagPerfError, match="no image of FlagPerf's"):
                await cluster.files.remove(LocalTransport(), name)
        await cluster.files.remove(LocalTransport(), FILE)

    asyncio.run(scenario())
    assert sorted(path.name for path in (cluster.work / "images").iterdir()) == ["link.sif", "other.txt"]


def test_nothing_is_listed_read_or_removed_where_a_link_is_in_the_work_folders_place(
    cluster: Cluster,
) -> None:
    """It has gone, or never was, and another user has put there a link to a folder of root's."""
    cluster.run()
    cluster.work.rename(cluster.work.with_name("site"))
    cluster.work.symlink_to("site")
    host = LocalTransport()
    for asking in (
        cluster.files.own_images(host),
        cluster.files.image(host, TAG),
        cluster.files.remove(host, FILE),
    ):
        with pytest.raises(CommandError, match="no folder of"):
            asyncio.run(asking)
    assert (cluster.work.with_name("site") / "images" / FILE).exists()


def test_enroot_imports_from_the_engine_that_has_built_it() -> None:
    for command, uri in (("docker", f"dockerd://{TAG}"), ("/usr/bin/podman", f"podman://{TAG}")):
        argv = squash_fs(engine_of(command), TAG, "/tmp/x", "image.sqsh")
        assert argv[3:] == ("/tmp/x", "enroot", "import", "--output", "image.sqsh", uri)


def test_nobody_shares_where_nothing_is_known(cluster: Cluster) -> None:
    assert FileSystems().groups(cluster.hosts) == [(host,) for host in cluster.hosts]
