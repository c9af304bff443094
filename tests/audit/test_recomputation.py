"""The figures of real runs against those that an auditor computes from the raw files alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.audit.recomputation import figures_of_run
from tests.audit.site import CONVERGES, ENDLESS, MEASURES, Site, make_site, scored_again


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def run(site: Site) -> Path:
    """A round that converged, one that measured, and one that was cut off."""
    return site.run_until_cut_off()


@pytest.fixture(scope="module")
def continued(site: Site, run: Path) -> Path:
    """The round that was cut off, gone on with and cut off again."""
    return site.run_until_cut_off("--continue-from", run.name)


def written(run: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Case and round -> result.json."""
    results = [json.loads(path.read_text()) for path in run.glob("*/round*/result.json")]
    return {(result["case"], result["round"]): result for result in results}


def assert_same_figures(run: Path, results: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Every figure of every round, and no other."""
    own = figures_of_run(run)
    assert set(own) == set(results)
    for key, result in results.items():
        theirs = {name: figure["value"] for name, figure in result["figures"].items()}
        assert theirs == pytest.approx(own[key], rel=1e-12, abs=0.0), key


def test_every_figure_of_every_round_follows_from_its_raw_files(run: Path) -> None:
    results = written(run)
    verdicts = {case: result["verdict"] for (case, _), result in results.items()}
    assert verdicts == {CONVERGES: "CONVERGED", MEASURES: "MEASURED", ENDLESS: "INTERRUPTED"}
    assert_same_figures(run, results)


def test_every_figure_follows_from_them_again(run: Path) -> None:
    assert_same_figures(run, scored_again(run))


def test_so_it_is_with_a_continued_round_that_was_cut_off(continued: Path) -> None:
    assert_same_figures(continued, written(continued))
