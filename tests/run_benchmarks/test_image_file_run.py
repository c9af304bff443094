"""A whole run with RUNTIME = "apptainer", by FAKEs of engine and Apptainer (tests/fakes); all else is real."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks import unused
from run_benchmarks.plan_view import plan_lines
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.runtimes.process import ProcessRuntime
from tests.fakes import apptainer
from tests.fakes.container_engine import FakeEngineHost, fake_engine
from tests.lab.requirements import why_not
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run

SETTINGS = """
RUNTIME = "apptainer"
CONTAINER_ENGINE = "{engine}"
"""


async def no_units(*_: object) -> tuple[UnitState, ...]:
    """FAKE: units of other tests, which run on this machine at the same time, keep what is on it."""
    return ()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    if reason := why_not():
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    monkeypatch.setenv("PATH", f"{apptainer.install(tmp_path / 'bin')}:{os.environ['PATH']}")
    (tmp_path / "engine").mkdir()
    here = FakeEngineHost("localhost", tmp_path / "engine")
    (here.store / "software").touch()  # what a container prints
    given = {"NAME": "localhost", "STORE": str(here.store), "REGISTRY": str(tmp_path / "engine" / "registry")}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with reserved_port() as port:
        run = make_whole_run(tmp_path, port, monkeypatch)
        run.configure(SETTINGS.format(engine=fake_engine(tmp_path / "engine")))
        yield run


def test_a_case_trains_in_a_file_and_leaves_nothing_but_that(run: WholeRun) -> None:
    assert run.main() == 0
    (result,) = run.summary["rounds"]
    assert result["verdict"] == "CONVERGED"
    written = json.loads(next(run.result.glob("*/round1/result.json")).read_text())
    assert list(written["images"]) == ["localhost"] and written["images"]["localhost"].startswith("sha256:")
    assert run.units_left() == []
    (image, digest) = sorted(path.name for path in (run.host / "images").iterdir())
    assert image.endswith(".sif") and digest == f"{image}.sha256"
    logs = next(run.result.glob("*/round1/localhost_noderank0"))
    assert (logs / "rank0.out.log").is_file() and (logs / "mem_monitor.log").stat().st_size > 0, (
        "both units ran"
    )


def test_what_stays_is_listed_and_goes_when_no_run_needs_it(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main() == 0
    (image,) = (run.host / "images").glob("*.sif")
    monkeypatch.setattr(ProcessRuntime, "list_units", no_units)
    capsys.readouterr()
    assert run.main("cleanup") == 0
    assert f"image {image.name}, " in (shown := capsys.readouterr().out), shown
    assert "kept: a run of today's configuration would use it" in shown
    run.tree.write("acme/docker_image/pytorch/Dockerfile", "FROM another\n")
    monkeypatch.setattr(unused, "DAY_S", 0)
    assert run.main("cleanup", "--unused", "--yes") == 0
    assert list((run.host / "images").iterdir()) == []


def test_the_plan_shows_how_it_will_be(run: WholeRun) -> None:
    lines = list(plan_lines(run.tree.load()))
    (made,) = [line for line in lines if "exec apptainer build" in line]
    assert "docker-archive:archive" in made
    units = [line for line in lines if " apptainer exec --containall " in line]
    assert len(units) == 2, "task and monitor"
    assert "--network=none" in units[0] or "--network=none" in units[1]
    assert not (run.host / "images").exists(), "nothing was made"
