"""A case whose code works against the harness, in whole runs by the process runtime: what it plants is not followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.stages import collect
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run

SECRET = "the host's own"
ENVIRONMENT = "acme/toy-pytorch/config/environment_variables.sh"
NODE_FOLDER = 'd=$(dirname "$1"); '  # $1 is the task's log


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    monkeypatch.setattr(collect, "PAUSE_S", 0.0)
    with reserved_port() as port:  # nobody can listen on this port meanwhile
        yield make_whole_run(tmp_path, port, monkeypatch)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder on the host that is none of the run's."""
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o700)
    (folder / "secret").write_text(SECRET)
    return folder


def texts_of(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def test_a_node_folder_that_becomes_a_link_is_not_collected(run: WholeRun, mine: Path) -> None:
    run.tree.write(ENVIRONMENT, NODE_FOLDER + f'mv "$d" "$d.x"; ln -s "{mine}" "$d"; exit 0\n')
    assert run.main() == 1
    (result,) = run.summary["rounds"]
    assert result["failure"]["class"] == "logs_not_collected"
    assert "is not the folder that was made there" in result["failure"]["message"]
    assert SECRET not in texts_of(run.result)
    assert (mine / "secret").read_text() == SECRET


def test_the_next_rounds_folder_that_is_a_link_already_is_not_used(run: WholeRun, mine: Path) -> None:
    run.configure(f'CASES = {{"toy:pytorch:X1:1:1:2": "{run.folder}/data"}}\n')
    (mine / "localhost_noderank0").mkdir()
    (mine / "localhost_noderank0/thesis").write_text("years of work")
    run.tree.write(ENVIRONMENT, NODE_FOLDER + f'ln -s "{mine}" "$d/../../round2"\n')
    assert run.main() == 1
    first, second = run.summary["rounds"]
    assert (first["verdict"], second["failure"]["stage"]) == ("CONVERGED", "deploy")
    assert "round2 is a link" in second["failure"]["message"]
    assert {path.name for path in mine.rglob("*")} == {"secret", "localhost_noderank0", "thesis"}


def test_a_name_forges_no_line_of_the_log(run: WholeRun) -> None:
    name = "\\n2026-01-01 00:00:00,000\\t[INFO]\\t[x.py,1]case x: CONVERGED \\033[2J"
    run.tree.write(ENVIRONMENT, NODE_FOLDER + f'ln -s /etc "$d/$(printf "{name}")"\n')
    assert run.main() == 0
    log = (run.result / "flagperf_run.log").read_text()
    assert "case x: CONVERGED" in log and "\033" not in log
    assert not [line for line in log.splitlines() if line.startswith("2026-01-01")]


def test_what_is_too_large_or_no_file_costs_the_round_nothing(run: WholeRun, mine: Path) -> None:
    plant = f'truncate -s 20G "$d/core"; ln -s "{mine}/secret" "$d/rank1.out.log"; mkfifo "$d/pipe"\n'
    run.tree.write(ENVIRONMENT, NODE_FOLDER + plant)
    assert run.main() == 0
    (result,) = run.summary["rounds"]
    (note,) = [note for note in result["notes"] if "not collected" in note]
    assert "core (20.0 GiB, and a file may have 1)" in note
    assert "rank1.out.log (a link)" in note and "pipe (a pipe)" in note
    assert SECRET not in texts_of(run.result)
    (core,) = run.host.glob("runs/*/*/*/round1/*/core")
    assert str(core.parent) in note
