"""The tree reaches a host whole or not at all, and once. The host is this machine, by the real commands."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from run_benchmarks.stages import deploy
from run_benchmarks.stages.deploy import Tree, deploy_tree, pack_tree, tree_of
from run_benchmarks.transports.base import CommandError, Completed
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree
from utils.errors import FlagPerfError

HOST = LocalTransport("node1")


@pytest.fixture
def training(tmp_path: Path) -> Path:
    root = tmp_path / "training"
    files = {
        "benchmarks/toy/pytorch/case.py": "case\n",
        "acme/docker_image/pytorch/Dockerfile": "FROM scratch\n",
        "acme/docker_image/pytorch/.dockerignore": "*.md\n",
        "acme/docker_image/pytorch/pytorch_install.sh": "#!/bin/sh\n",
        "run_benchmarks/config/test_conf.py": "PASSWORD = 'kept at home'\n",
        "result/run1/log": "old\n",
        ".flagperf/runs/x": "work\n",
        "acme/.editor~": "hidden\n",
        "acme/__pycache__/vendor.cpython-311.pyc": "bytecode\n",
        "benchmarks/toy/result/readme": "a folder of this name lower down is part of the tree\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "acme/docker_image/pytorch/pytorch_install.sh").chmod(0o755)
    return root


def deployed(root: Path) -> dict[str, str]:
    """Every file below `root` but the archive's end mark, with its content."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != deploy.END_MARK)
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def test_the_host_gets_the_tree_without_the_controller(training: Path, tmp_path: Path) -> None:
    target = tmp_path / "host" / "with space" / "tree-1"
    assert asyncio.run(deploy_tree(HOST, pack_tree(training, ("result",)), str(target)))
    assert sorted(deployed(target)) == [
        "acme/docker_image/pytorch/.dockerignore",
        "acme/docker_image/pytorch/Dockerfile",
        "acme/docker_image/pytorch/pytorch_install.sh",
        "benchmarks/toy/pytorch/case.py",
        "benchmarks/toy/result/readme",
    ]
    assert deployed(target)["benchmarks/toy/pytorch/case.py"] == "case\n"
    assert (target / "result").is_dir()  # a container's mount point in the read-only tree
    script = target / "acme/docker_image/pytorch/pytorch_install.sh"
    assert script.stat().st_mode & 0o777 == 0o755
    assert (target / "benchmarks/toy/pytorch/case.py").stat().st_mode & 0o777 == 0o644
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_tree_that_is_there_is_not_sent_again(training: Path, tmp_path: Path) -> None:
    sent: list[tuple[str, ...]] = []

    class Recording(LocalTransport):
        async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
            if options.get("stdin") is not None:
                sent.append(tuple(argv))
            return await super().run(argv, **options)

    tree, target = pack_tree(training), tmp_path / "tree"
    assert asyncio.run(deploy_tree(Recording("h"), tree, str(target)))
    (target / "mark").touch()
    assert not asyncio.run(deploy_tree(Recording("h"), tree, str(target)))
    assert len(sent) == 1
    assert (target / "mark").exists()


def test_two_runs_that_deploy_at_once_do_not_disturb_each_other(training: Path, tmp_path: Path) -> None:
    target = tmp_path / "tree"

    async def both() -> list[Completed]:
        # past the question whether the tree is there: both send it
        argv = ["sh", "-c", deploy.UNPACK, str(target)]
        archive = pack_tree(training).archive
        return list(await asyncio.gather(*(HOST.run(argv, stdin=archive) for _ in range(4))))

    assert [done.returncode for done in asyncio.run(both())] == [0] * 4
    assert len(deployed(target)) == 5
    assert [path.name for path in tmp_path.iterdir() if path != training] == ["tree"]


def _entry_boundaries(archive: bytes) -> list[int]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return [member.offset for member in tar]


def test_half_a_stream_leaves_nothing(training: Path, tmp_path: Path) -> None:
    """Cut anywhere: between two entries too, where tar itself sees no harm."""
    tree = pack_tree(training, ("result",))
    cuts = [0, 1, 700, *_entry_boundaries(tree.archive)]
    for cut in cuts:
        with pytest.raises(CommandError) as caught:
            asyncio.run(deploy_tree(HOST, Tree("x", tree.archive[:cut]), str(tmp_path / "host" / "tree")))
        assert "FLAGPERF_PATH_HOST" in caught.value.remedy
        assert list((tmp_path / "host").iterdir()) == [], f"cut after {cut} bytes"


def test_a_controller_that_dies_while_it_sends_leaves_nothing(training: Path, tmp_path: Path) -> None:
    tree = pack_tree(training)

    async def scenario() -> None:
        half_is_sent = asyncio.Event()

        async def half() -> AsyncIterator[bytes]:
            yield tree.archive[: len(tree.archive) // 2]
            half_is_sent.set()
            await asyncio.Event().wait()

        argv = ["sh", "-c", deploy.UNPACK, str(tmp_path / "host" / "tree")]
        sending = asyncio.create_task(HOST.run(argv, stdin=half()))
        await half_is_sent.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    asyncio.run(scenario())
    assert not (tmp_path / "host" / "tree").exists()


def test_the_digest_names_the_content(training: Path) -> None:
    first = pack_tree(training)
    assert pack_tree(training) == first
    (training / ".hidden").touch()
    (training / "result" / "more").touch()
    (training / "run_benchmarks" / "config" / "test_conf.py").write_text("SHM_SIZE = '1G'\n")
    assert pack_tree(training) == first
    digests = {first.digest, pack_tree(training, ("result",)).digest}
    script = training / "acme/docker_image/pytorch/pytorch_install.sh"
    script.chmod(0o644)
    digests.add(pack_tree(training).digest)
    script.write_text("#!/bin/sh -e\n")
    digests.add(pack_tree(training).digest)
    script.rename(script.with_name("install.sh"))
    digests.add(pack_tree(training).digest)
    assert len(digests) == 5


def test_links_in_the_tree_are_files_on_the_host(training: Path, tmp_path: Path) -> None:
    """Also where the linked file is not among what is deployed, and whoever owns it here."""
    case = training / "benchmarks/toy/pytorch/case.py"
    case.with_name("hard.py").hardlink_to(case)
    (tmp_path / "elsewhere.py").write_text("outside\n")
    case.with_name("soft.py").symlink_to(tmp_path / "elsewhere.py")
    tree = pack_tree(training)
    assert asyncio.run(deploy_tree(HOST, tree, str(tmp_path / "tree")))
    files = deployed(tmp_path / "tree/benchmarks/toy/pytorch")
    assert files == {"case.py": "case\n", "hard.py": "case\n", "soft.py": "outside\n"}
    with tarfile.open(fileobj=io.BytesIO(tree.archive)) as tar:
        assert {(member.uid, member.uname, member.mtime, member.isfile()) for member in tar} == {
            (0, "", 0, True)
        }


def test_data_in_the_tree_is_refused_before_it_is_read(training: Path) -> None:
    huge = training / "benchmarks" / "toy" / "data.bin"
    with huge.open("wb") as file:
        file.truncate(2**40)  # a hole of a terabyte: reading it could not end well
    with pytest.raises(FlagPerfError) as caught:
        pack_tree(training)
    assert str(huge) in caught.value.message
    assert "outside the training/ folder" in caught.value.remedy


def test_results_stay_at_home_wherever_they_are(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    tree.configure(test_conf=TEST_CONF + 'FLAGPERF_LOG_PATH = "/home/flagperf/training/logs"\n')
    before = tree_of(tree.load(log_path=tree.training / "logs"))
    tree.write("logs/run1/flagperf_run.log", "of an earlier run")
    after = tree_of(tree.load(log_path=tree.training / "logs"))
    assert after == before
    with tarfile.open(fileobj=io.BytesIO(after.archive)) as tar:
        folders = [member.name for member in tar if member.isdir()]
    assert folders == ["logs"]  # where containers mount the log path
