"""What a run removes from its hosts, and what it leaves there: on this machine, with a FAKE runtime."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from run_benchmarks.collected import collected
from run_benchmarks.commands import RUN_PY
from run_benchmarks.hosts.base import Host
from run_benchmarks.leaving import leave
from run_benchmarks.names import HostPaths, RunId, copy_folder
from run_benchmarks.session import Session
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.conftest import LogLines

RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")
HOSTS = [Host(name, name, LocalTransport(name)) for name in ("h1", "h2", "h3")]


def session_of(folder: Path, runtime: FakeRuntime) -> Session:
    run = f"{folder}/host/runs/{RUN.uid}"
    paths = HostPaths(f"{folder}/host", f"{folder}/host/tree", run, f"{run}/{RUN.name}")
    session = SimpleNamespace(
        plan=SimpleNamespace(options=("--config", "/a folder")),
        run=RUN,
        runtime=runtime,
        paths=paths,
        log_dir=folder / "result" / RUN.name,
        unclean=set(),
        kept=set(),
    )
    return cast(Session, session)


def test_copies_and_settings_of_the_run_are_gone(tmp_path: Path) -> None:
    """Those that could not be removed when they were done with, as their host was out of reach."""
    session, work = session_of(tmp_path, FakeRuntime()), tmp_path / "host"
    ours = [work / copy_folder(RUN.uid), work / "pip" / f"flagperf-{RUN.uid}-build-h1"]
    others = [work / copy_folder("run20260102030405-ffffff"), work / "tree-0123456789abcdef"]
    for folder in (*ours, *others):
        folder.mkdir(parents=True)
    assert asyncio.run(leave(session, HOSTS[:1])) == []
    assert [folder.exists() for folder in (*ours, *others)] == [False, False, True, True]


def test_every_host_that_is_reached_is_left_and_the_others_are_remembered(
    tmp_path: Path, log_lines: LogLines
) -> None:
    runtime = FakeRuntime(gone=["h2"])
    session = session_of(tmp_path, runtime)
    session.unclean.update(("h1", "h2", "h3"))
    (note,) = asyncio.run(leave(session, [*HOSTS, HOSTS[0]]))
    command = f"{sys.executable} {RUN_PY} cleanup {RUN.uid} --config '/a folder'"
    assert (
        note
        == f"units and files of this run may be left on h2, in {tmp_path}/host; once it is back: {command}"
    )
    assert runtime.removed == [("h1", RUN.uid), ("h3", RUN.uid)]
    assert session.unclean == {"h2"}
    assert "may be left on h2: " in log_lines.text and command not in log_lines.text
    assert asyncio.run(leave(session, [HOSTS[1]], is_last=True)) == [note]
    assert log_lines.text.count(command) == 1
    runtime.gone.update(("h1", "h3"))
    (note,) = asyncio.run(leave(session, HOSTS))
    assert (
        note
        == f"units and files of this run may be left on h[1-3], in {tmp_path}/host; once they are back: {command}"
    )
    runtime.gone.clear()
    session.unclean.clear()
    session.unclean.add("h2")
    assert asyncio.run(leave(session, [HOSTS[1]])) == []
    assert session.unclean == set()


def test_logs_that_were_not_collected_stay(tmp_path: Path) -> None:
    session = session_of(tmp_path, FakeRuntime())
    logs = Path(session.paths.logs)
    for round_folder in ("round1", "round2"):
        (logs / "case" / round_folder / "h1_noderank0").mkdir(parents=True)
        (logs / "case" / round_folder / "h1_noderank0" / "rank0.out.log").write_text("FINISHED")
        (session.log_dir / "case" / round_folder).mkdir(parents=True)
        (session.log_dir / "case" / round_folder / "round.json").write_text('{"hosts": ["h1"]}')
    (session.log_dir / "case" / "round1" / "h1_noderank0").mkdir(parents=True)
    asyncio.run(leave(session, HOSTS[:1]))
    assert [path.name for path in (logs / "case").iterdir()] == ["round2"]
    (session.log_dir / "case" / "round2" / "h1_noderank0").mkdir(parents=True)
    session.kept.add("case/round2/h1_noderank0")  # but for a file that was too large
    asyncio.run(leave(session, HOSTS[:1]))
    assert [path.name for path in (logs / "case").iterdir()] == ["round2"]
    session.kept.clear()
    asyncio.run(leave(session, HOSTS[:1]))
    assert not Path(session.paths.run).exists()


def test_of_an_attempt_that_was_set_aside_goes_what_is_of_no_later_one(tmp_path: Path) -> None:
    """A node calls an attempt's folder after the round; only those that took part in a later one have that of it."""
    session = session_of(tmp_path, FakeRuntime())
    case = session.log_dir / "case"
    for folder, hosts in (("round1.attempt1", '["h1", "h2"]'), ("round1", '["h3", "h2"]')):
        (case / folder).mkdir(parents=True)
        (case / folder / "round.json").write_text(f'{{"hosts": {hosts}}}')
    left = Path(session.paths.logs) / "case" / "round1"
    for node in ("h1_noderank0", "h2_noderank1"):  # of the later one h2's has not come
        (case / "round1.attempt1" / node).mkdir()
        (left / node).mkdir(parents=True)
        (left / node / "rank0.out.log").touch()
    record = (case / "round1" / "round.json").rename(session.log_dir / "record")
    asyncio.run(leave(session, HOSTS[:2]))  # which hosts the later one had is not known
    assert len(list(left.iterdir())) == 2
    record.rename(case / "round1" / "round.json")
    asyncio.run(leave(session, HOSTS[:2]))
    assert [path.name for path in left.iterdir()] == ["h2_noderank1"]


def test_what_a_link_in_the_result_folder_leads_to_was_not_collected(tmp_path: Path) -> None:
    """Else the host's logs, which nobody has, would be taken for spares."""
    round_folder = tmp_path / "run" / "case" / "round1"
    (round_folder / "h1_noderank0").mkdir(parents=True)
    (round_folder / "round.json").write_text('{"hosts": ["h1"]}')
    assert collected(tmp_path / "run", "h1", ()) == ["case/round1/h1_noderank0"]
    (tmp_path / "run" / "other").symlink_to("case")
    (tmp_path / "run" / "case" / "round2").symlink_to("round1")
    assert collected(tmp_path / "run", "h1", ()) == ["case/round1/h1_noderank0"]
    assert collected(tmp_path / "gone", "h1", ()) == []
