"""Whom the work folder of a host belongs to, and the way to it: by the real shell, on this machine."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from run_benchmarks.stages import work_folder
from run_benchmarks.stages.work_folder import in_work_folder
from run_benchmarks.transports.local import LocalTransport
from utils.errors import FlagPerfError

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


def enter(work: Path, host: str = "node1") -> str:
    script = 'printf "%s %s" "$0" "$2"'
    done = asyncio.run(in_work_folder(LocalTransport(host), str(work), script, "a word", timeout=30))
    return done.stdout


def refusal(work: Path) -> FlagPerfError:
    with pytest.raises(FlagPerfError) as caught:
        enter(work)
    assert "FLAGPERF_PATH_HOST in test_conf.py" in caught.value.remedy
    assert caught.value.where == "node1"
    return caught.value


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def test_it_is_made_for_one_user_alone(tmp_path: Path) -> None:
    work = tmp_path / "a path" / "to it" / ".flagperf"
    assert enter(work) == f"{work} a word"
    assert work.stat().st_mode & 0o7777 == 0o700
    work.chmod(0o755)  # as it was made by earlier releases
    assert enter(work) == f"{work} a word"
    assert work.stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize(
    ("mode", "group", "refused"),
    [
        (0o777, 0, True),
        (0o757, 0, True),
        (0o1777, 0, True),  # nobody can replace what is there, and everybody can put something beside it
        (0o775, NOBODY, True),
        (0o775, 0, False),  # root's own group, as a user's private one
        (0o1755, 0, False),
        (0o755, NOBODY, False),
    ],
)
@as_root
def test_one_that_was_open_to_others_is_refused(mode: int, group: int, refused: bool, tmp_path: Path) -> None:
    """Who sat in it as it was closed put his code in the place of a unit's, and it ran as root."""
    work = tmp_path / ".flagperf"
    work.mkdir()
    os.chown(work, 0, group)
    work.chmod(mode)
    if refused:
        message = refusal(work).message
        assert message.startswith(f"others may replace what is in {work} (mode {mode:o}, owner root")
        assert "may have done so: see what lies there, and move it away" in message
        assert work.stat().st_mode & 0o7777 == mode
    else:
        enter(work)
        assert work.stat().st_mode & 0o777 == 0o700


@as_root
def test_one_that_was_made_below_a_default_access_control_list_is_for_one_user_alone(tmp_path: Path) -> None:
    """Such a list takes the place of the umask."""
    nobody = 0xFFFFFFFF
    entries = [(1, 7, nobody), (2, 7, NOBODY), (4, 5, nobody), (0x10, 7, nobody), (0x20, 7, nobody)]
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(tmp_path, "system.posix_acl_default", listed)
    except OSError as error:
        pytest.skip(f"no access control lists on this file system: {error}")
    for _ in range(2):
        enter(tmp_path / ".flagperf")
    assert (tmp_path / ".flagperf").stat().st_mode & 0o777 == 0o700


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".flagperf").symlink_to("elsewhere")
    assert f"{tmp_path}/.flagperf is a symbolic link of" in refusal(tmp_path / ".flagperf").message
    (tmp_path / ".flagperf").unlink()
    (tmp_path / ".flagperf").symlink_to("nowhere")
    refusal(tmp_path / ".flagperf")
    assert not (tmp_path / "nowhere").exists()


@as_root
def test_one_that_is_anothers_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".flagperf" / "tree-0123").mkdir(parents=True)
    give_away(tmp_path / ".flagperf")
    assert "a directory of nobody, and not a folder of root" in refusal(tmp_path / ".flagperf").message


@as_root
@pytest.mark.parametrize(
    "kind", [Path.mkdir, lambda path: path.symlink_to("mine"), lambda path: path.symlink_to(".")]
)
def test_a_way_that_is_anothers_is_refused(kind: Callable[[Path], None], tmp_path: Path) -> None:
    """Whoever owns a folder or a link on the way puts another in its place when it pleases him."""
    (tmp_path / "mine").mkdir()
    kind(tmp_path / "way")
    give_away(tmp_path / "way")
    assert f"{tmp_path}/way belongs to nobody" in refusal(tmp_path / "way" / ".flagperf").message
    assert list((tmp_path / "mine").iterdir()) == []


@pytest.mark.parametrize(
    ("mode", "group", "refused"),
    [
        (0o755, 0, False),
        (0o775, 0, False),  # root's own group, as a user's private one
        (0o777, 0, True),
        (0o1777, 0, False),  # as /var/tmp
        (0o775, NOBODY, True),
        (0o1775, NOBODY, False),
    ],
)
@as_root
def test_who_may_write_to_a_folder_on_the_way(mode: int, group: int, refused: bool, tmp_path: Path) -> None:
    way = tmp_path / "way"
    way.mkdir()
    os.chown(way, 0, group)
    way.chmod(mode)
    if refused:
        message = refusal(way / "below" / ".flagperf").message
        assert message.startswith(f"others may replace what is in {way} (mode {mode:o}, owner root, group")
        assert list(way.iterdir()) == []
    else:
        enter(way / "below" / ".flagperf")


@pytest.mark.parametrize(("members", "refused"), [("", False), ("root", False), ("root,alice", True)])
@as_root
def test_a_group_with_other_members_is_not_the_owners_own(
    members: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, getent = tmp_path / "way", tmp_path / "bin" / "getent"
    way.mkdir()
    way.chmod(0o775)
    getent.parent.mkdir()
    getent.write_text(f'#!/bin/sh\necho "$2:x:0:{members}"\n')
    getent.chmod(0o755)
    monkeypatch.setenv("PATH", f"{getent.parent}:{os.environ['PATH']}")
    if refused:
        assert "group root, which root,alice belong to" in refusal(way / ".flagperf").message
    else:
        enter(way / ".flagperf")


@as_root
def test_an_access_control_list_is_seen(tmp_path: Path) -> None:
    """The mode shows what it allows at most where the group's bits are."""
    way, nobody = tmp_path / "way", 0xFFFFFFFF
    way.mkdir()
    # acl(5) as the kernel keeps it: owner, the user NOBODY, group, mask, others; each with its permissions
    entries = [(1, 7, nobody), (2, 7, NOBODY), (4, 5, nobody), (0x10, 7, nobody), (0x20, 5, nobody)]
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(way, "system.posix_acl_access", listed)
    except OSError as error:
        pytest.skip(f"no access control lists on this file system: {error}")
    assert "group root, with an access control list" in refusal(way / ".flagperf").message


def test_a_link_of_ones_own_is_followed_to_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "far" / "open").mkdir(parents=True)
    (tmp_path / "near").symlink_to("far")
    enter(tmp_path / "near" / ".flagperf")
    assert (tmp_path / "far" / ".flagperf").is_dir()
    (tmp_path / "far" / "open").chmod(0o777)
    (tmp_path / "direct").symlink_to(tmp_path / "near" / "open")
    assert "others may replace" in refusal(tmp_path / "direct" / "x" / ".flagperf").message
    (tmp_path / "loop").symlink_to("loop")
    assert "Not a directory" in refusal(tmp_path / "loop" / ".flagperf").message


@as_root
def test_on_this_machine_whose_checkout_it_is_may_own_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sudo run.py` in a user's home folder: the code that runs is that user's already."""
    code = tmp_path / "home" / "work_folder.py"
    code.parent.mkdir()
    code.touch()
    give_away(code)
    give_away(code.parent)
    monkeypatch.setattr(work_folder, "__file__", str(code))
    refusal(code.parent / ".flagperf")
    assert enter(code.parent / ".flagperf", host="localhost")


def test_what_the_script_fails_with_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file: Not a directory" in refusal(tmp_path / "file" / "x" / ".flagperf").message


# FAKE of what a link that comes and goes within bash's own `cd -P` does: it is elsewhere, and has the names of here.
ELSEWHERE = 'cd() { case $3 in ./*) builtin cd "$OTHER"; PWD=$WORK ;; *) builtin cd "$@" ;; esac; }\n'


def test_of_where_a_shell_is_its_own_word_is_not_taken(tmp_path: Path) -> None:
    work, other, hook = (tmp_path / name for name in ("work", "other", "hook"))
    for folder in (work, other):
        folder.mkdir(mode=0o700)
    hook.write_text(ELSEWHERE)
    argv = ("bash", "-c", f"{work_folder.ENTER_OWN}touch here", str(work))
    variables = {"BASH_ENV": str(hook), "OTHER": str(other), "WORK": str(work)}
    done = asyncio.run(LocalTransport().run(argv, variables=variables))
    assert done.returncode == 3, done
    assert "is no folder of" in done.stderr
    assert not list(other.iterdir())
