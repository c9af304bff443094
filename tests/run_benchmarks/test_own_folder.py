"""Where verbs write beside what they read: not into a folder that another user may change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from run_benchmarks import verbs
from tests.run_benchmarks.written_run import write_run


def _anothers(run: Path) -> None:
    os.chown(run, 65534, 65534)


def _open_to_all(run: Path) -> None:
    run.chmod(0o777)


def _may_be_renamed(run: Path) -> None:
    run.parent.chmod(0o777)


PLACES = [_open_to_all, _may_be_renamed, *([_anothers] if os.geteuid() == 0 else [])]


@pytest.mark.parametrize("give_away", PLACES)
@pytest.mark.parametrize(("verb", "output"), [("report", "page.html"), ("export", "run.tar.gz")])
def test_nothing_is_written_where_others_may_put_a_link_unless_it_is_named(
    verb: str,
    output: str,
    give_away: Callable[[Path], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "results" / "run20260102030405"
    write_run(run)
    give_away(run)
    before = set(run.parent.rglob("*"))
    assert verbs.main([verb, str(run)]) == 2
    shown = capsys.readouterr().err
    assert str(run.parent) in shown and ("--output" in shown or "chmod o-w" in shown)
    assert set(run.parent.rglob("*")) == before
    assert verbs.main([verb, str(run), "--output", str(tmp_path / output)]) == 0
    assert (tmp_path / output).is_file() and set(run.parent.rglob("*")) == before
