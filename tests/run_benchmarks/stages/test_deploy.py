"""The tree reaches a host whole or not at all, and is verified before it is used. The host is this machine."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks.failures import failure_on
from run_benchmarks.hosts.base import Host
from run_benchmarks.names import HostPaths
from run_benchmarks.stages import deploy
from run_benchmarks.stages.deploy import deploy_tree, pass_tree_on
from run_benchmarks.stages.passing import PASS_ON_FROM, Site
from run_benchmarks.stages.tree import END_MARK, Tree, pack_tree
from run_benchmarks.transports.base import Completed
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.stages.training_folder import make_training
from utils.errors import FlagPerfError
from utils.records import FailureClass, Stage

HOST = LocalTransport("node1")
CASE = "benchmarks/toy/pytorch/case.py"
INSTALL = "acme/docker_image/pytorch/pytorch_install.sh"


@pytest.fixture
def training(tmp_path: Path) -> Path:
    return make_training(tmp_path / "training")


def paths_in(work: Path) -> HostPaths:
    return HostPaths(str(work), f"{work}/tree", f"{work}/runs/run1", f"{work}/runs/run1/run1")


def deploy_to(work: Path, tree: Tree, host: LocalTransport = HOST) -> list[str]:
    """Deploy the tree to `work`/tree; the notes."""
    return asyncio.run(deploy_tree(host, tree, paths_in(work)))


def unpack_argv(tree: Tree, target: Path) -> list[str]:
    return ["sh", "-c", deploy.UNPACK, str(target.parent), target.name, tree.digest]


def deployed(root: Path) -> dict[str, str]:
    """Every file below `root` but the archive's end mark, with its content."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != END_MARK)
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def test_the_host_gets_the_tree_without_the_controller(training: Path, tmp_path: Path) -> None:
    work = tmp_path / "host" / "with space"
    target = work / "tree"
    assert deploy_to(work, pack_tree(training, ("result",))) == []
    assert sorted(deployed(target)) == [
        "acme/docker_image/pytorch/.dockerignore",
        "acme/docker_image/pytorch/Dockerfile",
        INSTALL,
        CASE,
        "benchmarks/toy/result/readme",
    ]
    assert deployed(target)[CASE] == "case\n"
    assert (target / "result").is_dir()  # a container's mount point in the read-only tree
    assert (target / INSTALL).stat().st_mode & 0o777 == 0o755
    assert (target / CASE).stat().st_mode & 0o777 == 0o644
    assert target.stat().st_mode & 0o777 == 0o755
    assert work.stat().st_mode & 0o777 == 0o700


class Recording(LocalTransport):
    """This machine; `sent` are the commands that were sent something."""

    def __init__(self) -> None:
        super().__init__("node1")
        self.sent: list[tuple[str, ...]] = []
        self.commands = 0

    async def run(self, argv: Any, **options: Any) -> Completed:
        self.commands += 1
        if options.get("stdin") is not None:
            self.sent.append(tuple(argv))
        return await super().run(argv, **options)


def test_a_tree_that_is_there_is_not_sent_again(training: Path, tmp_path: Path) -> None:
    tree, host = pack_tree(training), Recording()
    deploy_to(tmp_path / "host", tree, host)
    assert (len(host.sent), host.commands) == (1, 2)
    deploy_to(tmp_path / "host", tree, host)
    assert (len(host.sent), host.commands) == (1, 3)  # one more, which asks and compares


def test_hosts_whose_disk_does_not_answer_hold_up_the_passing_on_for_no_longer_than_it_takes_to_ask(
    training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A work folder on a network file system that is gone: what looks at it never ends."""
    monkeypatch.setattr(deploy, "IS_THERE", "sleep 600")
    monkeypatch.setattr(deploy, "QUICK_S", 0.2)
    hosts = [Host(f"h{number}", f"h{number}", Recording()) for number in range(PASS_ON_FROM)]
    passing = pass_tree_on(hosts, pack_tree(training), paths_in(tmp_path / "host"), Site("/none", "0"))
    asyncio.run(asyncio.wait_for(passing, 60.0))
    assert [host.transport.commands for host in hosts] == [1] * len(hosts)  # type: ignore[attr-defined]


def enlarge(path: Path) -> None:
    """A file of terabytes, which fills no disk and takes hours to read."""
    with path.open("ab") as file:
        file.truncate(7 * 2**40)


def plant_bytecode(tree: Path) -> None:
    (tree / "benchmarks/toy/pytorch/__pycache__").mkdir()
    (tree / "benchmarks/toy/pytorch/__pycache__/case.cpython-311.pyc").write_text("other code\n")


def replace_by_link(tree: Path) -> None:
    (tree / CASE).rename(tree.parent / "case.py")
    (tree / CASE).symlink_to(tree.parent / "case.py")  # of the same content, for now


def test_who_is_overtaken_while_it_replaces_an_altered_tree_is_content(
    training: Path, tmp_path: Path
) -> None:
    """Hosts that share a file system: another has put its tree where this one has just put the altered one aside."""
    tree, target = pack_tree(training), tmp_path / "host" / "tree"
    deploy_to(tmp_path / "host", tree)
    subprocess.run(["cp", "-a", str(target), str(tmp_path / "good")], check=True)
    (target / CASE).write_text("evil\n")
    overtaken = f'#!/bin/sh\n/bin/mv "$@" || exit\ncase $3 in *.altered) cp -a {tmp_path}/good "$2" ;; esac\n'
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mv").write_text(overtaken)
    (tmp_path / "bin" / "mv").chmod(0o755)
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(unpack_argv(tree, target), input=tree.archive, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (target / CASE).read_text() == "case\n"
    assert sorted(path.name for path in (tmp_path / "host").iterdir()) == ["tree", "tree.altered"]


ALTERATIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "content": (lambda tree: (tree / CASE).write_text("evil\n"), f"'./{CASE}'"),
    "same size and time": (lambda tree: (tree / CASE).write_text("cAse\n"), f"'./{CASE}'"),
    "bytecode": (plant_bytecode, "case.cpython-311.pyc"),
    "a file more": (lambda tree: (tree / "sitecustomize.py").touch(), "'./sitecustomize.py'"),
    "a file less": (lambda tree: (tree / CASE).unlink(), f"'./{CASE}'"),
    "a mode": (lambda tree: (tree / CASE).chmod(0o755), f"'./{CASE}'"),
    "a huge file more": (lambda tree: enlarge(tree / "core"), "('./core')"),
    "a huge file": (lambda tree: enlarge(tree / CASE), "(it is far larger than it was)"),
    "a link": (replace_by_link, f"'./{CASE}'"),
    "a pipe": (lambda tree: os.mkfifo(tree / "pipe"), "'./pipe'"),
    "a folder more": (lambda tree: (tree / "torch").mkdir(), "'./torch'"),
    "a name with a line": (lambda tree: (tree / "a\nb").touch(), r"'./a\nb'"),
}


@pytest.mark.parametrize("kind", ALTERATIONS)
def test_a_tree_that_was_altered_is_never_used(kind: str, training: Path, tmp_path: Path) -> None:
    tree, target = pack_tree(training), tmp_path / "host" / "tree"
    deploy_to(tmp_path / "host", tree)
    whole = deployed(target)
    alter, name = ALTERATIONS[kind]
    for _ in range(2):
        alter(target)
        (note,) = deploy_to(tmp_path / "host", tree)
        assert note.startswith(f"node1: {target} was altered since it was deployed") and name in note
        assert deployed(target) == whole
        assert deploy_to(tmp_path / "host", tree) == []
        assert (tmp_path / "host" / "tree.altered").is_dir()  # what it was stays, for who looks into it


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_what_was_planted_under_the_trees_name_is_never_used(
    kind: str, training: Path, tmp_path: Path
) -> None:
    """Its name follows from public code."""
    tree, work = pack_tree(training), tmp_path / "host"
    work.mkdir()
    evil = work / "tree" if kind == "folder" else tmp_path / "evil"
    evil.write_text("evil") if kind == "file" else evil.mkdir()
    if kind == "folder":
        (evil / "case.py").write_text("evil\n")
    elif kind == "link":
        (work / "tree").symlink_to(evil)
    else:
        evil.rename(work / "tree")
    (note,) = deploy_to(work, tree)
    assert "was altered" in note
    assert not (work / "tree").is_symlink() and deployed(work / "tree")[CASE] == "case\n"
    assert "case.py" not in deployed(work / "tree")


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=20)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(files=st.dictionaries(NAMES, st.tuples(st.binary(max_size=50), st.booleans()), max_size=6))
def test_both_sides_list_a_tree_alike(files: dict[str, tuple[bytes, bool]]) -> None:
    """Whatever the files are named: a tree that was just deployed is the one that was packed."""
    with tempfile.TemporaryDirectory() as folder:
        training = Path(folder) / "training"
        for number, (name, (content, executable)) in enumerate(files.items()):
            below = training / str(number)
            below.mkdir(parents=True)
            if name in (".", ".."):
                continue
            (below / name).write_bytes(content)
            (below / name).chmod(0o700 if executable else 0o600)
        training.mkdir(exist_ok=True)
        tree = pack_tree(training, ("an/empty folder",))
        assert deploy_to(Path(folder) / "host", tree) == []
        assert deploy_to(Path(folder) / "host", tree) == []


def test_two_runs_that_deploy_at_once_do_not_disturb_each_other(training: Path, tmp_path: Path) -> None:
    target, tree = tmp_path / "tree", pack_tree(training)

    async def both() -> list[Completed]:
        # past the question whether the tree is there: both send it
        argv = unpack_argv(tree, target)
        return list(await asyncio.gather(*(HOST.run(argv, stdin=tree.archive) for _ in range(4))))

    assert [done.returncode for done in asyncio.run(both())] == [0] * 4
    assert len(deployed(target)) == 5
    assert [path.name for path in tmp_path.iterdir() if path != training] == ["tree"]


def _entry_boundaries(archive: bytes) -> list[int]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return [member.offset for member in tar]


def test_half_a_stream_leaves_nothing(training: Path, tmp_path: Path) -> None:
    """Cut anywhere: between two entries too, where tar itself sees no harm."""
    tree = pack_tree(training, ("result",))
    (tmp_path / "host").mkdir()
    for cut in [0, 1, 700, *_entry_boundaries(tree.archive)]:
        argv = unpack_argv(tree, tmp_path / "host" / "tree")
        done = subprocess.run(argv, input=tree.archive[:cut], capture_output=True)
        assert done.returncode and done.stderr, f"cut after {cut} bytes"
        assert list((tmp_path / "host").iterdir()) == [], f"cut after {cut} bytes"


def test_what_arrives_otherwise_than_it_was_sent_leaves_nothing(training: Path, tmp_path: Path) -> None:
    tree = pack_tree(training)
    done = subprocess.run(
        unpack_argv(tree, tmp_path / "tree"),
        input=tree.archive.replace(b"case\n", b"cAse\n"),
        capture_output=True,
    )
    assert done.returncode == 1 and b"not what was sent" in done.stderr
    assert not (tmp_path / "tree").exists()


def test_a_controller_that_dies_while_it_sends_leaves_nothing(training: Path, tmp_path: Path) -> None:
    tree = pack_tree(training)

    async def scenario() -> None:
        half_is_sent = asyncio.Event()

        async def half() -> AsyncIterator[bytes]:
            yield tree.archive[: len(tree.archive) // 2]
            half_is_sent.set()
            await asyncio.Event().wait()

        sending = asyncio.create_task(HOST.run(unpack_argv(tree, tmp_path / "tree"), stdin=half()))
        await half_is_sent.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    asyncio.run(scenario())
    assert not (tmp_path / "tree").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_as_such(training: Path, small_disk: Path) -> None:
    (training / "acme/large.py").write_bytes(b"#" * 2**18)
    with pytest.raises(FlagPerfError) as caught:
        deploy_to(small_disk / "host", pack_tree(training))
    failure = failure_on("node1", Stage.DEPLOY, caught.value)
    assert failure.failure_class is FailureClass.DISK_FULL
    assert failure.message == f"the code could not be brought to {small_disk}/host/tree"
    assert "tar: acme/large.py: " in failure.evidence and "free space on node1" in failure.remedy
    assert list((small_disk / "host").iterdir()) == []
