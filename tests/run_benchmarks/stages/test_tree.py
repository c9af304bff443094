"""What of `training/` goes to the hosts, and how it is named by its content."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from run_benchmarks.plan.problems import ConfigError
from run_benchmarks.stages import tree_files
from run_benchmarks.stages.tree import pack_tree, tree_of, tree_problems
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree
from tests.run_benchmarks.stages.training_folder import make_training
from utils.code_files import files_below
from utils.errors import FlagPerfError, ProblemsError


@pytest.fixture
def training(tmp_path: Path) -> Path:
    return make_training(tmp_path / "training")


def test_the_digest_names_the_content(training: Path) -> None:
    first = pack_tree(training)
    assert pack_tree(training) == first
    (training / ".hidden").touch()
    (training / "result" / "more").touch()
    (training / "flagperf.out").write_text("what a shell was told to put there")
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


def test_the_memory_holds_a_large_file_once(training: Path) -> None:
    """A tree may have 512 MiB, nearly all in one file."""
    (training / "benchmarks" / "large").write_bytes(bytes(2**24))
    tree = pack_tree(training)
    tracemalloc.start()
    try:
        assert tree.entries
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_of_a_file_with_two_names_there_are_two_files(training: Path) -> None:
    """And whoever owns them here."""
    case = training / "benchmarks/toy/pytorch/case.py"
    case.with_name("hard.py").hardlink_to(case)
    with tarfile.open(fileobj=io.BytesIO(pack_tree(training).archive)) as tar:
        assert tar.getmember("benchmarks/toy/pytorch/hard.py").size == len("case\n")
        assert {(member.uid, member.uname, member.mtime, member.isfile()) for member in tar} == {
            (0, "", 0, True)
        }


def test_a_second_name_of_what_stays_at_home_is_refused(training: Path) -> None:
    """The hosts would get the controller's settings as a file for everybody."""
    conf = training / "run_benchmarks/config/test_conf.py"
    conf.write_text("TOKEN = 'hf_x'\n")
    for path in (conf.with_name("__init__.py"), training / "acme/__init__.py"):
        path.unlink(missing_ok=True)
    conf.with_name("__init__.py").touch()
    (training / "acme/__init__.py").hardlink_to(conf.with_name("__init__.py"))  # nothing is in it
    assert tree_problems(training, training / "result") == []
    (training / "acme/setting").hardlink_to(conf)
    (training / "benchmarks/toy/.key").write_text("secret")
    (training / "acme/key").hardlink_to(training / "benchmarks/toy/.key")
    with pytest.raises(ProblemsError) as caught:
        pack_tree(training)
    assert {problem.name for problem in caught.value.problems} == {"acme/setting", "acme/key"}
    assert all("is a hard link" in problem.message for problem in caught.value.problems)


def test_a_link_to_what_hosts_get_anyway_is_what_it_leads_to(training: Path) -> None:
    (training / "benchmarks/other").mkdir()
    (training / "benchmarks/other/pytorch").symlink_to("../toy/pytorch")
    (training / "acme/case.py").symlink_to("../benchmarks/toy/pytorch/case.py")
    with tarfile.open(fileobj=io.BytesIO(pack_tree(training).archive)) as tar:
        assert not any(member.issym() or member.islnk() for member in tar)
        for name in ("benchmarks/other/pytorch/case.py", "acme/case.py"):
            copied = tar.extractfile(name)
            assert copied is not None and copied.read() == b"case\n"


def test_links_are_refused_all_at_once(training: Path, tmp_path: Path) -> None:
    """Each would bring along what was to stay at home: a secret as a file for everybody, the controller, loops."""
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    secret.chmod(0o600)
    links = {
        "acme/key": secret,
        "benchmarks/l1": "..",
        "acme/x": "nowhere",
        "acme/self": "self",
        "acme/controller": "../run_benchmarks",
        "acme/setting": "../run_benchmarks/config/test_conf.py",
        "acme/hidden": ".secrets/key",
    }
    (training / "acme/.secrets").mkdir()
    (training / "acme/.secrets/key").write_text("hidden")
    (training / "benchmarks/aside").mkdir()
    (training / "benchmarks/aside/back").symlink_to("../toy")
    (training / "benchmarks/toy/on").symlink_to("../aside")
    links |= {"benchmarks/toy/on/back": "a link behind a link", "benchmarks/aside/back/on": "likewise"}
    for name, target in links.items():
        if not name.startswith(("benchmarks/toy/on", "benchmarks/aside")):
            (training / name).symlink_to(target)
    (training / "acme/.editor-lock").symlink_to("me@host")  # hidden: does not belong to the tree
    with pytest.raises(ProblemsError) as caught:
        pack_tree(training)
    assert {problem.name for problem in caught.value.problems} == links.keys()
    assert all("is a link" in problem.message for problem in caught.value.problems)


def test_a_link_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    """Said before a result folder is made, beside whatever else is wrong."""
    tree = make_tree(tmp_path)
    tree.load()
    (tree.training / "benchmarks/l1").symlink_to("..")
    tree.configure(test_conf=TEST_CONF + 'SHM_SIZ = "1G"\n')
    with pytest.raises(ConfigError) as caught:
        tree.load()
    assert {problem.name for problem in caught.value.problems} == {"benchmarks/l1", "SHM_SIZ"}


def _links_to_many(top: Path, links: int, name: str = "x.py") -> Path:
    """20 folders with a file each, and links to the folder that holds them."""
    for number in range(20):
        (top / f"many/d{number}").mkdir(parents=True)
        (top / f"many/d{number}/{name}").touch()
    (top / "links").mkdir()
    for number in range(links):
        (top / f"links/l{number}").symlink_to("../many")
    return top


def _count_folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that are listed from now on."""
    listed, iterdir = [], Path.iterdir

    def counted(folder: Path) -> Iterator[Path]:
        listed.append(folder)
        return iterdir(folder)

    monkeypatch.setattr(Path, "iterdir", counted)
    return listed


@pytest.mark.parametrize("name", ["x.py", ".keep"])
def test_links_to_a_large_folder_multiply_no_work(
    name: str, training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 folders behind 2 links are looked at twice more; behind 20 they are too many, hidden or not."""
    monkeypatch.setattr(tree_files, "MOST_PATHS", 200)
    two = _links_to_many(training / "acme/two", 2, name)
    assert tree_problems(training, training / "result") == []
    shutil.rmtree(two)
    _links_to_many(training / "acme/linked", 20, name)
    listed = _count_folders(monkeypatch)
    with pytest.raises(FlagPerfError, match="more than 200 files and folders") as caught:
        tree_problems(training, training / "result")
    assert len(listed) < 200
    assert caught.value.where == str(training / "acme/linked") and "links" in caught.value.remedy
    assert f"{training}/acme/linked/links/l" in caught.value.message


def test_data_of_many_files_is_refused_where_most_of_it_lies(
    training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each file is looked at; and so are few of them whose paths are very long."""
    data = training / "acme/data/train/class"
    data.mkdir(parents=True)
    for number in range(60):
        (data / f"image{number}").touch()
    assert tree_problems(training, training / "result") == []
    monkeypatch.setattr(tree_files, "MOST_PATHS", 50)
    with pytest.raises(FlagPerfError, match="more than 50 files") as caught:
        pack_tree(training)
    assert caught.value.where == str(training / "acme/data") and "data sets" in caught.value.remedy
    monkeypatch.undo()
    monkeypatch.setattr(tree_files, "MOST_TEXT", 60 * len("acme/data/train/class"))
    with pytest.raises(FlagPerfError, match="of their paths"):
        tree_problems(training, training / "result")


def test_a_name_that_is_no_text_is_refused(training: Path) -> None:
    odd = training / "acme" / os.fsdecode(b"caf\xe9.py")
    odd.touch()
    (problem,) = tree_problems(training, training / "result")
    assert (problem.name, problem.remedy) == ("acme/caf\\xe9.py", "rename it")
    str(problem).encode()
    odd.unlink()
    (training / "acme" / "caf\N{LATIN SMALL LETTER E WITH ACUTE} \n'.py").touch()
    assert tree_problems(training, training / "result") == []


def test_what_this_user_may_not_read_is_named(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so access is a FAKE."""
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name not in ("case.py", "acme") and real(path, mode)
    )
    names = [problem.name for problem in tree_problems(training, training / "result")]
    assert names == ["acme", "benchmarks/toy/pytorch/case.py"]


def test_data_in_the_tree_is_refused_before_it_is_read(training: Path) -> None:
    huge = training / "benchmarks" / "toy" / "data.bin"
    with huge.open("wb") as file:
        file.truncate(2**40)  # a hole of a terabyte: reading it could not end well
    with pytest.raises(FlagPerfError) as caught:
        pack_tree(training)
    assert str(huge) in caught.value.message
    assert "outside the training/ folder" in caught.value.remedy
    (problem,) = tree_problems(training, training / "result")
    assert problem.name == "benchmarks/toy/data.bin"
    assert "is the largest file of 1048576 MiB for the hosts, which get 512 at most" in problem.message
    installer = training / "acme/docker_image/pytorch/sdk.run"
    installer.parent.mkdir(parents=True, exist_ok=True)
    huge.rename(installer)
    (problem,) = tree_problems(training, training / "result")
    assert "let the Dockerfile begin FROM that one" in problem.remedy


def test_folders_may_lie_deeper_than_pythons_calls(training: Path) -> None:
    """As deep as a path can be long."""
    folder = training / "acme"
    for _ in range(1100):
        folder /= "d"
        folder.mkdir()
    (folder / "x.py").touch()
    try:
        assert f"f ./{(folder / 'x.py').relative_to(training)}" in pack_tree(training).entries
        assert folder / "x.py" in files_below(training / "acme")
        linked = training / "benchmarks/toy/pytorch/case.py"  # of which another name is looked for everywhere
        linked.with_name("again.py").hardlink_to(linked)
        assert tree_problems(training, training / "result") == []
    finally:
        (folder / "x.py").unlink()
        while folder.name == "d":  # which shutil.rmtree cannot
            folder.rmdir()
            folder = folder.parent


def test_what_lies_deeper_than_a_path_can_be_long_is_named(
    training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(training / "acme")
    for _ in range(20):
        Path("d" * 220).mkdir()
        os.chdir("d" * 220)
    with pytest.raises(FlagPerfError, match="File name too long") as caught:
        tree_problems(training, training / "result")
    assert caught.value.where.startswith(str(training / "acme" / ("d" * 220)))


@pytest.mark.parametrize("gone", [False, True], ids=["shorter", "gone"])
def test_a_file_that_is_altered_while_it_is_packed_is_named(
    gone: bool, training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process does in that moment is a FAKE."""
    case = training / "benchmarks/toy/pytorch/case.py"
    real = tarfile.TarFile.addfile

    def addfile(archive: tarfile.TarFile, entry: tarfile.TarInfo, file: IO[bytes] | None = None) -> None:
        if entry.name.endswith("case.py"):
            case.write_text("")
        real(archive, entry, file)

    if gone:
        is_file = Path.is_file
        monkeypatch.setattr(
            Path, "is_file", lambda path: is_file(path) and (path != case or not path.unlink())
        )
    else:
        monkeypatch.setattr(tarfile.TarFile, "addfile", addfile)
    with pytest.raises(FlagPerfError, match="cannot be packed") as caught:
        pack_tree(training)
    assert caught.value.where == str(case) and "start again" in caught.value.remedy


@pytest.mark.parametrize("linked", [False, True])
def test_results_stay_at_home_wherever_they_are(linked: bool, tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    if linked:
        (tmp_path / "large disk").mkdir()
        (tree.training / "logs").symlink_to(tmp_path / "large disk")
    tree.configure(test_conf=TEST_CONF + 'FLAGPERF_LOG_PATH = "/home/flagperf/training/logs"\n')
    before = tree_of(tree.load(log_path=tree.training / "logs"))
    tree.write("logs/run1/flagperf_run.log", "of an earlier run")
    after = tree_of(tree.load(log_path=tree.training / "logs"))
    assert after == before
    with tarfile.open(fileobj=io.BytesIO(after.archive)) as tar:
        folders = [member.name for member in tar if member.isdir()]
    assert folders == ["logs"]  # where containers mount the log path


def test_what_the_conformance_kit_reads_and_writes_stays_at_home(training: Path) -> None:
    before = pack_tree(training)
    for name in ("acme/recordings/list.txt", "acme/conformance.json", "conformance-acme/conformance.md"):
        (training / name).parent.mkdir(exist_ok=True)
        (training / name).write_text("of no use on a host")
    assert pack_tree(training) == before
