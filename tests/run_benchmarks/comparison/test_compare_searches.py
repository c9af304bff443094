"""Two runs of a search are compared: how it scales with its workers is the ratio of its score by node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from run_benchmarks.verbs import main
from tests.run_benchmarks.results.search.searched import write_search_run
from tests.search_log import LongSearch, account_of


def test_weak_scaling_over_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone, two = LongSearch(workers=1).records(), LongSearch(workers=2).records()
    folders = [tmp_path / f"run2026010203040{number}" for number in (5, 6)]
    write_search_run(folders[0], (1, alone))
    write_search_run(folders[1], (2, two))
    assert main(["compare", *map(str, folders), "--format", "json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    rows = {row["name"]: row for row in case["rows"]}
    one, both = account_of(alone).score, account_of(two).score
    assert one and both
    assert rows["score_per_node"]["against"]["B"]["value"] == pytest.approx(both / (2 * one))
    assert rows["score_per_chip"]["unit"] == "TOP/s/chip"
    assert "score_per_watt" in case["not_measured"]


def test_searches_of_other_lengths_are_not_comparable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / f"run2026010203040{number}" for number in (5, 6)]
    write_search_run(folders[0], (1, LongSearch(hours=2.0, workers=1).records()))
    write_search_run(folders[1], (2, LongSearch(hours=4.0).records()), search_seconds=14_400)
    assert main(["compare", *map(str, folders)]) == 6
    assert "NOT COMPARABLE: search_seconds differs: A 7200; B 14400" in capsys.readouterr().out


def test_chips_are_the_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [tmp_path / f"run2026010203040{number}" for number in (5, 6)]
    for folder in folders:
        write_search_run(folder, (2, LongSearch().records()))
    (path,) = folders[0].glob("*/round1/result.json")
    result = json.loads(path.read_text())
    assert result["facts"]["world_size"] == 8
    path.write_text(json.dumps({**result, "facts": {**result["facts"], "world_size": 2**32}}))
    assert main(["compare", *map(str, folders), "--format", "json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert [side["chips"] for side in case["sides"]] == [[8], [8]]
