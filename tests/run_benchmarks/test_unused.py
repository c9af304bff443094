"""What hosts keep after runs: what may go, what stays and why, and that nothing else is touched; on real files."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks import unused
from run_benchmarks.images.store import ImageStore, OwnImage
from run_benchmarks.journal import Journal
from run_benchmarks.names import JOURNAL
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.runtimes.process import ProcessRuntime
from run_benchmarks.stages.deploy import deploy_tree
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.unused import CHECKPOINTS, DAY_S, IMAGES, TREES, Held, Item, Needs, item_of, remove_items
from tests.fakes.transports import AnsweringHost
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from utils.errors import FlagPerfError

Capture = pytest.CaptureFixture[str]
TREE, ASIDE, CUT_OFF = (
    "tree-0123456789abcdef",
    "tree-0123456789abcde0.altered",
    "tree-0123456789abcde1.Xy12zA",
)
UID = "run20260102030405-abcdef"
COPY = f"copy-{UID}-0123456789ab"
OTHER = "run20260102030406-abcdef"


async def no_units(*_: object) -> tuple[UnitState, ...]:
    """FAKE: units of other tests, which run on this machine at the same time, keep what is on it."""
    return ()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    """A host that keeps trees and checkpoints, and what only looks like them."""
    with reserved_port() as port:
        run = make_whole_run(tmp_path, port, monkeypatch)
    monkeypatch.setattr(ProcessRuntime, "list_units", no_units)
    run.configure(f'CHECKPOINT_PATH = "{run.folder}/checkpoints"\n')
    for folder in (run.host / TREE, run.host / ASIDE, run.host / CUT_OFF, run.host / "tree-mine"):
        folder.mkdir(parents=True)
        (folder / "code.py").write_text("x" * 5000)
    (run.host / COPY).mkdir()
    (run.host / "copy-mine").mkdir()
    run.host.chmod(0o700)
    for uid in (UID, OTHER, "run-of-my-own"):
        (run.folder / "checkpoints" / uid / "case").mkdir(parents=True)
    outside = run.folder / "outside"
    outside.mkdir()
    (outside / "precious").write_text("")
    (run.host / "tree-aaaaaaaaaaaaaaaa").symlink_to(outside)
    (run.host / TREE / "link").symlink_to(outside)
    (run.folder / "checkpoints" / "run20260102030407-abcdef").symlink_to(outside)
    return run


def finished(run: WholeRun, uid: str, exit_code: int) -> Path:
    """The results of a run that has ended."""
    folder = run.folder / "result" / uid.partition("-")[0]
    folder.mkdir(parents=True)
    journal = Journal(folder / JOURNAL)
    journal.write("run_started", run=folder.name, uid=uid)
    journal.close()
    (folder / "summary.json").write_text(json.dumps({"uid": uid, "exit_code": exit_code}))
    return folder


def left(run: WholeRun) -> set[str]:
    """What is there still, but for the links."""
    places = (run.host, run.folder / "checkpoints")
    return {path.name for place in places for path in place.iterdir() if not path.is_symlink()}


@pytest.fixture
def of_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything was used longer ago than a day: no file can be made so."""
    monkeypatch.setattr(unused, "DAY_S", 0)


def test_what_a_host_keeps_is_listed_with_size_and_age(run: WholeRun, capsys: Capture) -> None:
    assert run.main("cleanup") == 0
    shown = capsys.readouterr().out
    for name in (TREE, ASIDE, CUT_OFF):
        assert re.search(
            rf"localhost: code {name}, 0.0 MiB, used 0 minutes ago: kept: used less than a day ago", shown
        )
    assert (
        f"checkpoints {UID}, 0.0 MiB, written 0 minutes ago: kept: {run.folder}/result has no results of its run"
        in shown
    )
    assert "mine" not in shown and "aaaa" not in shown and "of-my-own" not in shown and "0407" not in shown
    assert "cleanup --unused" not in shown, "there is nothing that it would remove"


def test_what_no_run_needs_is_named_before_it_goes(run: WholeRun, of_old: None, capsys: Capture) -> None:
    before = left(run)
    finished(run, UID, 0)
    assert run.main("cleanup") == 0
    assert f"cleanup --unused --config {run.tree.config}" in capsys.readouterr().out
    assert run.main("cleanup", "--unused") == 2
    shown = capsys.readouterr()
    assert (
        all(f" {name}, " in shown.out for name in (TREE, ASIDE, CUT_OFF, COPY, UID))
        and OTHER not in shown.out
    )
    assert "nothing was removed" in shown.err and "cleanup --unused --yes" in shown.err
    assert left(run) == before
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert before - left(run) == {TREE, ASIDE, CUT_OFF, COPY, UID}
    assert (run.folder / "outside" / "precious").exists()
    assert (run.host / "tree-aaaaaaaaaaaaaaaa").is_symlink()


def test_checkpoints_of_a_run_that_did_not_end_well_go_only_by_its_name(run: WholeRun, of_old: None) -> None:
    finished(run, UID, 1)
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert {UID, OTHER} <= left(run)
    assert run.main("cleanup", "--unused", "--yes", UID) == 0
    assert UID not in left(run) and OTHER in left(run)
    assert run.main("cleanup", "--unused", "--yes", OTHER) == 0, (
        "nobody here knows it, and nothing of it is young"
    )
    assert OTHER not in left(run)


def test_while_a_run_goes_on_nothing_of_it_goes(run: WholeRun, of_old: None) -> None:
    """Its controller holds the lock; what it saves is not removed even by its name."""
    folder = finished(run, UID, 0)
    journal = Journal(folder / JOURNAL)
    before = left(run)
    assert run.main("cleanup", "--unused", "--yes", UID) == 0
    assert left(run) == before
    journal.close()


def test_what_another_run_goes_on_from_stays_until_that_has_ended(run: WholeRun, of_old: None) -> None:
    finished(run, UID, 0)
    folder = run.folder / "result" / OTHER.partition("-")[0]
    folder.mkdir()
    later = Journal(folder / JOURNAL)
    later.write("run_started", run=folder.name, uid=OTHER, continue_from=UID)
    assert run.main("cleanup", "--unused", "--yes", UID) == 0
    assert UID in left(run), "it goes on: not even by name"
    later.close()
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert UID in left(run), "it was killed, and may be resumed"
    (folder / "summary.json").write_text(json.dumps({"uid": OTHER, "exit_code": 1}))
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert UID not in left(run)


def test_checkpoints_that_a_killed_run_went_on_from_go_by_name(tmp_path: Path) -> None:
    item, name = Item(CHECKPOINTS, UID, 1, 2 * DAY_S), OTHER.partition("-")[0]
    (tmp_path / name).mkdir()
    Journal(tmp_path / name / JOURNAL).close()
    needs = Needs(tmp_path, named=UID, continued={UID: (name,)})
    assert needs.keeps(item, Held()) == ""
    assert name in replace(needs, named="").keeps(item, Held())


def test_what_a_run_of_today_would_use_stays(run: WholeRun, of_old: None) -> None:
    plan = run.tree.load()
    tree = unused.tree_of(plan)
    (name,) = unused.needs_of(plan, run.folder / "result", "").trees
    assert name == f"tree-{tree.digest[:16]}"
    (run.host / name).mkdir()
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert name in left(run) and TREE not in left(run)


def test_a_tree_that_was_used_since_it_was_listed_stays(run: WholeRun) -> None:
    settings = run.tree.load().run
    listed = [Item(TREES, TREE, 1, 2 * DAY_S)]
    assert asyncio.run(remove_items(LocalTransport(), settings, listed)) == [TREE]
    assert TREE in left(run)


def test_a_round_that_sees_its_tree_marks_it_as_used(run: WholeRun) -> None:
    """Which is how a run on another machine keeps it, while nothing of it runs here just now."""
    from datetime import datetime, timezone

    from run_benchmarks.names import host_paths, new_run_id

    plan = run.tree.load()
    tree = unused.tree_of(plan)
    paths = host_paths(plan.run, new_run_id(datetime.now(timezone.utc)), tree.digest)
    asyncio.run(deploy_tree(LocalTransport(), tree, paths))
    deployed = Path(paths.tree)
    before = deployed.stat().st_ctime_ns
    assert asyncio.run(deploy_tree(LocalTransport(), tree, paths)) == []
    assert deployed.stat().st_ctime_ns > before


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (Item(TREES, TREE, 1, 2 * DAY_S), ""),
        (Item(TREES, TREE, 1, DAY_S / 2), "used less than a day ago"),
        (Item(IMAGES, "flagperf/a:0123456789ab", 1, 2 * DAY_S), ""),
        (Item(IMAGES, "flagperf/a:0123456789ab", 1, DAY_S / 2), "made less than a day ago"),
        (
            Item(IMAGES, "flagperf/b:0123456789ab", 1, 2 * DAY_S),
            "a run of today's configuration would use it",
        ),
    ],
)
def test_why_something_stays(item: Item, reason: str, tmp_path: Path) -> None:
    needs = Needs(tmp_path, images=("flagperf/b:0123456789ab",))
    ended = UnitState("flagperf-x", {"flagperf.run": UID}, running=False)
    assert needs.keeps(item, Held(units=[ended])) == reason
    assert needs.keeps(item, Held(units=[replace(ended, running=True)])) == f"units of {UID} still run here"
    assert replace(needs, going_on=("run20260102030405",)).keeps(item, Held()) == "run20260102030405 goes on"


def test_checkpoints_stay_while_their_run_has_a_unit(tmp_path: Path) -> None:
    item = Item(CHECKPOINTS, UID, 1, 2 * DAY_S)
    unit = UnitState("flagperf-x", {"flagperf.run": UID}, running=True)
    assert Needs(tmp_path, named=UID).keeps(item, Held(units=[unit])) == "its units still run here"
    assert Needs(tmp_path, named=UID).keeps(item, Held()) == ""


def test_checkpoints_stay_while_their_run_has_a_unit_on_another_host(tmp_path: Path) -> None:
    """On a file system that both see, but only one of them runs it."""
    item = Item(CHECKPOINTS, UID, 1, 2 * DAY_S)
    unit = UnitState("flagperf-x", {"flagperf.run": UID}, running=True)
    assert Needs(tmp_path, named=UID).keeps(item, Held(), [unit]) == "its units still run here"
    other = replace(unit, labels={"flagperf.run": OTHER})
    assert Needs(tmp_path, named=UID).keeps(item, Held(), [other]) == ""


def test_code_stays_while_a_run_writes_its_logs_beside_it(
    run: WholeRun, of_old: None, capsys: Capture
) -> None:
    """Its units may run on another host, which shares the work folder and is none of this configuration's."""
    log = (
        run.host
        / "runs"
        / OTHER
        / "run20260102030406"
        / "case"
        / "round1"
        / "h7_noderank0"
        / "mem_monitor.log"
    )
    log.parent.mkdir(parents=True)
    log.write_text("a sample\n")
    before = left(run)
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert f"kept: logs of {OTHER} are being written here" in capsys.readouterr().out
    assert left(run) == before
    an_hour_ago = log.stat().st_mtime - 60 * unused.WRITTEN_MIN - 120
    os.utime(log, (an_hour_ago, an_hour_ago))
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert before - left(run) == {TREE, ASIDE, CUT_OFF, COPY}


@pytest.mark.parametrize("name", ["..", "tree-*", "/etc", f"../{TREE}", f"{TREE}/..", "run*"])
def test_only_names_of_ours_are_removed(name: str, run: WholeRun) -> None:
    settings = run.tree.load().run
    for kind in (TREES, CHECKPOINTS):
        with pytest.raises(FlagPerfError, match="no names of ours"):
            asyncio.run(remove_items(LocalTransport(), settings, [Item(kind, name, 1, 2 * DAY_S)]))
    with pytest.raises(FlagPerfError, match="no image of FlagPerf's"):
        asyncio.run(ImageStore(engine_of("docker")).remove(LocalTransport(), name))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    line=st.text()
    | st.from_regex(
        r"(code|copy|checkpoints|image)\t(tree-|copy-|copy-run|run)[0-9a-f./*-]{0,30}\t-?\d{1,30}\t-?\d{1,30}"
    )
)
def test_only_lines_of_ours_are_read(line: str) -> None:
    item = item_of(line)
    if item is not None:
        assert re.fullmatch(
            r"tree-[0-9a-f]{16}(\.altered|\.[A-Za-z0-9]{6})?|run\d{14}-[0-9a-f]{6}|copy-run\d{14}-[0-9a-f]{6}-[0-9a-f]{12}",
            item.name,
            re.ASCII,
        )


def test_images_are_ours_by_label_and_name_alone() -> None:
    """Who builds upon an image of ours inherits its label, and may have given ours a name of his own."""
    ours = "registry.example/flagperf/cpu-pytorch:0123456789ab"
    printed = [
        f'[["{ours}","mine:1"],"2026-01-02T03:04:05.123456789Z",1000]',
        '[["flagperf-mine:0123456789ab","flagperf/mine:latest"],"2026-01-02T03:04:05Z",1000]',
        '[null,"2026-01-02T03:04:05Z",1000]',
        '[["flagperf/--force:0123456789ab"],"yesterday",1000]',
        "WARNING: an engine may print anything",
    ]
    host = AnsweringHost({"image ls": (0, "a b a\n", ""), "image inspect": (0, "\n".join(printed), "")})
    (image,) = asyncio.run(ImageStore(engine_of("docker")).own_images(host))
    assert image == OwnImage(ours, 1000, image.age_s) and image.age_s > 0
