"""Checkpoints on a host before a launch: the folder, and what there is to go on from. Commands run for real."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.names import RunId, nodes_of
from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.records import Plan
from run_benchmarks.stages.checkpoints import (
    checkpoint_folders,
    checkpoints,
    make_checkpoint_folders,
    remove_checkpoint_folder,
)
from run_benchmarks.stages.checks import Status
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.plan.tree import BASE, TEST_CONF
from tests.run_benchmarks.stages.checked_host import Site, assert_skipped
from utils.errors import FlagPerfError
from utils.search.events import STATE_FILE

EARLIER = "run20260102030405"
CASE = "toy:pytorch:X1:1:2:2"
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")


class Continuing(Site):
    """A site whose plan goes on from an earlier run."""

    @property
    def plan(self) -> Plan:
        return load_plan(self.tree.config, self.tree.training, continue_from=EARLIER)


@pytest.fixture
def saving(site: Site) -> Site:
    """A site with a case of two rounds that saves checkpoints below `folder`/ck."""
    site.tree.write("benchmarks/toy/pytorch/config/_base.py", BASE + "save_steps = 10\n")
    site.conf(f'CHECKPOINT_PATH = "{site.folder}/ck"\n', TEST_CONF.replace("X1:1:2:1", "X1:1:2:2"))
    return site


@pytest.fixture
def continuing(saving: Site) -> Site:
    return Continuing(**{name: getattr(saving, name) for name in vars(saving)})


def save(site: Site, *names: str, run: str = EARLIER, case: str = CASE) -> None:
    for name in names:
        path = site.folder / "ck" / run / case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_where_nothing_is_saved_nothing_is_asked(site: Site) -> None:
    check = site.check(checkpoints)
    assert_skipped(check)


def test_a_folder_in_which_others_may_plant_checkpoints_is_a_warning(saving: Site) -> None:
    (saving.folder / "ck").mkdir()
    (saving.folder / "ck").chmod(0o777)
    check = saving.check(checkpoints)
    assert check.status is Status.WARNING
    assert f"others may replace what is in {saving.folder}/ck" in check.detail
    assert "let only root and the ssh user write there" in check.remedy


def test_the_folder_is_made_on_the_first_host_only(saving: Site) -> None:
    saving.rank = 1
    assert_skipped(saving.check(checkpoints))
    assert not (saving.folder / "ck").exists()
    saving.rank = 0
    check = saving.check(checkpoints)
    assert (check.status, check.detail) == (Status.OK, f"{saving.folder}/ck")
    assert (saving.folder / "ck").is_dir()


def test_a_folder_that_cannot_be_made_forbids_the_run(saving: Site) -> None:
    (saving.folder / "ck").write_text("a file")
    check = saving.check(checkpoints)
    assert check.status is Status.ERROR
    assert f"CHECKPOINT_PATH = {saving.folder}/ck" in check.detail


def test_every_round_has_one_to_go_on_from(continuing: Site) -> None:
    save(continuing, "round1/step00000010.ckpt", "round2/step00000020.ckpt", "round2/step00000030.ckpt")
    check = continuing.check(checkpoints)
    assert check.status is Status.OK, check
    assert check.detail == f"goes on from {continuing.folder}/ck/{EARLIER} in 2 rounds"


def test_what_another_case_floods_its_round_with_hides_no_checkpoint(continuing: Site) -> None:
    save(continuing, "round1/step00000010.ckpt", "round2/step00000020.ckpt")
    other = continuing.folder / "ck" / EARLIER / "zoo:pytorch:X1:1:2:2" / "round1"
    other.mkdir(parents=True)
    for number in range(2**20 // 250):
        (other / f"step{number:0240}.ckpt").touch()
    assert continuing.check(checkpoints).status is Status.OK


def test_a_link_is_no_checkpoint(continuing: Site) -> None:
    """A chain of links of 4 KB each is slow to follow, and a task makes thousands of links to it in a second."""
    save(continuing, "round1/step00000010.ckpt", "round2/anything")
    ours = continuing.folder / "ck" / EARLIER / CASE / "round2"
    (ours / "step00000020.ckpt").symlink_to("anything")
    assert f"no checkpoint of {CASE} round2: begun anew" in continuing.check(checkpoints).detail


def test_a_round_without_one_begins_anew_and_is_named(continuing: Site) -> None:
    save(continuing, "round2/step00000020.ckpt", "round1/.step00000010.ckpt.partial")
    (continuing.folder / "ck" / EARLIER / CASE / "round1" / "step00000030.ckpt").mkdir()  # no file
    check = continuing.check(checkpoints)
    assert check.status is Status.WARNING
    assert check.detail.endswith(f"/{EARLIER} has no checkpoint of {CASE} round1: begun anew")
    assert "--continue-from" in check.remedy


def test_a_case_without_any_is_named_with_what_there_is(continuing: Site) -> None:
    save(continuing, "round1/step00000020.ckpt", "round1/step00000030.ckpt", case="toy:pytorch:X1:1:2:1")
    check = continuing.check(checkpoints)
    assert check.status is Status.ERROR
    assert f"no checkpoint of {CASE}; there is toy:pytorch:X1:1:2:1 round1 (step00000030)" in check.detail
    assert "--continue-from" in check.remedy and "--cases" in check.remedy
    assert "repeat" not in check.remedy


class Done(Continuing):
    """A site whose plan goes on from an earlier run in which the first round had converged."""

    @property
    def plan(self) -> Plan:
        return replace(super().plan, done={CASE: (1,)})


def test_a_round_that_had_converged_needs_none(saving: Site) -> None:
    check = Done(**vars(saving)).check(checkpoints)
    assert check.status is Status.WARNING
    assert f"no checkpoint of {CASE} round2: begun anew" in check.detail


def test_a_run_without_any_is_told_with_those_that_have_some(continuing: Site) -> None:
    save(continuing, "round1/step00000010.ckpt", run="run20250101000000")
    check = continuing.check(checkpoints)
    assert check.status is Status.ERROR
    assert f"no checkpoint of {CASE}; " in check.detail
    assert "the runs with checkpoints are run20250101000000" in check.detail


def test_a_case_that_saves_no_more_can_still_go_on(continuing: Site) -> None:
    continuing.tree.write("benchmarks/toy/pytorch/config/_base.py", BASE)
    save(continuing, "round1/step00000010.ckpt", "round2/step00000010.ckpt")
    assert continuing.check(checkpoints).status is Status.OK


RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")


def made(site: Site, number: int = 1, rank: int = 0) -> tuple[Path, Path]:
    """The folders of a round, once they are made on the host of a node."""
    return make_round(site.plan, number, rank)


def make_round(plan: Plan, number: int = 1, rank: int = 0) -> tuple[Path, Path]:
    node = replace(nodes_of(plan.cases[0], number)[0], rank=rank)
    asyncio.run(make_checkpoint_folders(LocalTransport(), plan, RUN, node))
    own, earlier = checkpoint_folders(plan, RUN, node)
    return Path(own), Path(earlier)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_rounds_folder_is_open_to_its_task_below_one_that_is_closed_to_others(continuing: Site) -> None:
    """A container's root is another user than the ssh user, and may leave a program with the mode 4755."""
    save(continuing, "round1/step00000010.ckpt")
    users = continuing.folder / "ck"
    before = [mode(path) for path in (users, users / EARLIER)]
    umask = os.umask(0o002)
    try:
        own, earlier = made(continuing)
    finally:
        os.umask(umask)
    assert own == users / RUN.uid / CASE / "round1"
    assert (mode(own), mode(own.parents[1])) == (0o777, 0o700)
    assert [path.name for path in earlier.iterdir()] == ["step00000010.ckpt"]
    assert [mode(path) for path in (users, users / EARLIER)] == before
    own, earlier = made(continuing, 2)
    assert own.is_dir() and list(earlier.iterdir()) == [], "it is mounted, and so must be there"


def test_what_is_in_the_place_of_a_rounds_folder_is_refused(saving: Site) -> None:
    own, _ = made(saving)
    with pytest.raises(FlagPerfError, match=f"CHECKPOINT_PATH = {saving.folder}/ck: .*File exists"):
        made(saving)
    (own.parent / "round2").symlink_to(saving.folder)
    with pytest.raises(FlagPerfError, match="round2 is a link"):
        made(saving, 2)


@only_root
@pytest.mark.parametrize("depth", [1, 2], ids=["run", "case"])
def test_a_runs_folder_that_somebody_else_has_made_is_refused(continuing: Site, depth: int) -> None:
    """Its owner could put a link into it whenever he likes, and so choose what a container's root writes to."""
    save(continuing, "round1/step00000010.ckpt")
    for uid in (RUN.uid, EARLIER):
        planted = continuing.folder.joinpath("ck", *(uid, CASE)[:depth])
        planted.mkdir(parents=True, exist_ok=True)
        os.chown(planted, 65534, 65534)
        with pytest.raises(
            FlagPerfError, match=f"{planted} is a directory of nobody, and not a folder of root"
        ):
            made(continuing, 2)
        os.chown(planted, 0, 0)
    made(continuing, 2)


@only_root
@pytest.mark.parametrize("depth", [1, 2, 3], ids=["run", "case", "round"])
@pytest.mark.parametrize("replace_by", ["nobody's", "link"])
def test_what_somebody_else_has_made_is_refused_before_a_launch(
    continuing: Site, depth: int, replace_by: str
) -> None:
    """The preflight found checkpoints in it, and the round failed when its folders were made."""
    save(continuing, "round1/step00000010.ckpt", "round2/step00000010.ckpt")
    planted = continuing.folder.joinpath("ck", *(EARLIER, CASE, "round2")[:depth])
    if replace_by == "link":
        planted.rename(continuing.folder / "elsewhere")
        planted.symlink_to(continuing.folder / "elsewhere")
        why = f"{planted} is a link"
    else:
        os.chown(planted, 65534, 65534)
        why = f"{planted} is a directory of nobody, and not a folder of root"
    before = contents(continuing.folder / "ck")
    check = continuing.check(checkpoints)
    assert (check.status, check.detail) == (
        Status.ERROR,
        f"CHECKPOINT_PATH = {continuing.folder}/ck: {why}",
    )
    assert "move away what somebody else has made in its place" in check.remedy
    assert contents(continuing.folder / "ck") == before, "no probe is left"
    with pytest.raises(FlagPerfError, match=why):
        made(continuing, 2)


def test_a_runs_folder_that_others_may_write_to_is_closed(saving: Site) -> None:
    """As a default access control list of CHECKPOINT_PATH makes one, whatever the umask."""
    case = saving.folder / "ck" / RUN.uid / CASE
    case.mkdir(parents=True)
    for folder in (case, case.parent):
        folder.chmod(0o777)
    made(saving)
    assert (mode(case.parent), mode(case)) == (0o700, 0o755)


@only_root
def test_where_a_file_system_takes_root_for_nobody_what_belongs_to_nobody_is_ours(
    saving: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE of NFS with root_squash: what this `mktemp` makes belongs to nobody, as all that root makes does there."""
    tools = saving.folder / "tools"
    tools.mkdir()
    script = '#!/bin/sh\nfolder=$(/usr/bin/mktemp "$@") && chown nobody "$folder" && echo "$folder"\n'
    (tools / "mktemp").write_text(script)
    (tools / "mktemp").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    own, _ = made(saving)
    for folder in (own.parents[1], own.parent):
        os.chown(folder, 65534, 65534)
    made(saving, 2)
    assert {path.name for path in own.parents[2].iterdir()} == {RUN.uid}, "no probe is left"


# What bash reads before a script: another user of the host exchanges his folder, $PLACE, and his link, $PLACE.link.
EXCHANGE = 'exchange() { mv -T "$PLACE" "$PLACE.x"; mv -T "$PLACE.link" "$PLACE"; mv -T "$PLACE.x" "$PLACE.link"; }\n'
# Before the command that has the number $MOMENT, of any function or subshell; in $STEPS is how many there were.
BEFORE_A_COMMAND = """
before() { read -r steps <"$STEPS"; [ "$steps" != "$MOMENT" ] || exchange; echo "$((steps + 1))" >"$STEPS"; }
set -T; trap before DEBUG
"""
# FAKE of two exchanges within bash's own `cd -P`, which looks at names, goes, and looks at names once more.
WITHIN_CD = """
cd() {
    case ${PWD%/}/${3#./}/ in "$PLACE"/*) ;; *) builtin cd "$@"; return ;; esac
    exchange; builtin cd "$@"; code=$?; exchange; PWD=${OLDPWD%/}/${3#./}; return "$code"
}
"""


@pytest.fixture
def racing(continuing: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site whose sh is a bash that reads `folder`/HOOK first."""
    tools = continuing.folder / "tools"
    tools.mkdir()
    (tools / "sh").write_text('#!/usr/bin/env bash\nBASH_ENV="$HOOK" exec bash "$@"\n')
    (tools / "sh").chmod(0o755)
    for name in ("HOOK", "STEPS"):
        monkeypatch.setenv(name, str(continuing.folder / name))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return continuing


def planted(site: Site, uid: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run's folder of another user's, beside his link to a folder of root's, which is returned."""
    folders = Path(f"ck/{uid}/{CASE}/round1"), Path(f"root's/{CASE}/round1")
    for folder in folders:
        shutil.rmtree(site.folder / folder.parts[0], ignore_errors=True)
        (site.folder / folder).mkdir(parents=True)
    place, roots = site.folder / "ck" / uid, site.folder / "root's"
    roots.chmod(0o777)
    (roots / CASE / "round1/step00000010.ckpt").touch()
    os.chown(place, 65534, 65534)
    place.with_name(f"{uid}.link").symlink_to(roots)
    monkeypatch.setenv("PLACE", str(place))
    return roots


def contents(folder: Path) -> dict[str, int]:
    return {str(path): mode(path) for path in (folder, *folder.rglob("*"))}


@only_root
@pytest.mark.parametrize("uid", [RUN.uid, EARLIER])
def test_a_link_that_comes_at_any_moment_leads_nowhere(
    racing: Site, uid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (racing.folder / "HOOK").write_text(EXCHANGE + BEFORE_A_COMMAND)
    plan = replace(racing.plan, continue_from=EARLIER if uid == EARLIER else "")
    steps, moment = racing.folder / "STEPS", 0
    while moment == 0 or moment < int(steps.read_text()):
        roots = planted(racing, uid, monkeypatch)
        before = contents(roots)
        steps.write_text("0\n")
        monkeypatch.setenv("MOMENT", str(moment))
        with pytest.raises(FlagPerfError, match=f"{uid} is a "):
            make_round(plan)
        assert contents(roots) == before, moment
        moment += 1
    assert moment > 10


@only_root
@pytest.mark.parametrize("uid", [RUN.uid, EARLIER])
def test_where_a_shell_is_is_not_asked_of_names(
    racing: Site, uid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (racing.folder / "HOOK").write_text(EXCHANGE + WITHIN_CD)
    roots = planted(racing, uid, monkeypatch)
    before = contents(roots)
    with pytest.raises(FlagPerfError, match=f"{uid} is a directory of nobody"):
        make_round(racing.plan)
    assert contents(roots) == before


@only_root
@pytest.mark.parametrize("hook", ["", EXCHANGE + WITHIN_CD], ids=["stays", "exchanged"])
def test_nothing_is_removed_where_another_user_has_made_the_runs_folder(
    racing: Site, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (racing.folder / "HOOK").write_text(hook)
    roots = planted(racing, RUN.uid, monkeypatch)
    before = contents(racing.folder / "ck"), contents(roots)
    node = nodes_of(racing.plan.cases[0], 1)[0]
    with pytest.raises(FlagPerfError, match=f"{RUN.uid} is a directory of nobody"):
        asyncio.run(remove_checkpoint_folder(LocalTransport("h1"), racing.plan, RUN, node))
    assert (contents(racing.folder / "ck"), contents(roots)) == before


def test_no_folder_is_made_where_none_is_used(saving: Site) -> None:
    made(saving, rank=1)
    saving.tree.write("benchmarks/toy/pytorch/config/_base.py", BASE)
    made(saving)
    assert not (saving.folder / "ck").exists()


class Measured(Site):
    """A site whose plan goes on from a run, one round of which had been measured."""

    @property
    def plan(self) -> Plan:
        return replace(self.tree.load(), continue_from=EARLIER, done={CASE: (1,)})


def test_a_case_that_measures_has_none_and_begins_anew(saving: Site) -> None:
    saving.tree.write("benchmarks/toy/pytorch/config/_base.py", 'case_kind = "measure"\n')
    saving.tree.write("benchmarks/toy/pytorch/case.py", "class Case:\n    def operations(self): ...\n")
    saving.tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "windows = 30\n")
    assert_skipped(Measured(**vars(saving)).check(checkpoints))


def test_a_search_goes_on_from_its_state_also_at_another_attempt(saving: Site) -> None:
    saving.tree.write("benchmarks/toy/pytorch/config/_base.py", 'case_kind = "measure"\n')
    roles = 'roles = ("controller", "worker")'
    saving.tree.write(
        "benchmarks/toy/pytorch/case.py",
        f"class Case:\n    {roles}\n    def work(self, engine, perf_log): ...\n",
    )
    saving.tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "")
    own, _ = made(saving)
    (own / STATE_FILE).write_text("a night's work")
    node = nodes_of(saving.plan.cases[0], 1)[0]
    asyncio.run(remove_checkpoint_folder(LocalTransport("h1"), saving.plan, RUN, node))
    assert made(saving)[0] == own and (own / STATE_FILE).read_text() == "a night's work"
    (own.parent / "round2").symlink_to(saving.folder)
    with pytest.raises(FlagPerfError, match="round2 is"):
        made(saving, 2)
    save(saving, f"round1/{STATE_FILE}", f"round2/{STATE_FILE}")
    continuing = Continuing(**vars(saving))
    assert continuing.check(checkpoints).detail == f"goes on from {saving.folder}/ck/{EARLIER} in 2 rounds"
