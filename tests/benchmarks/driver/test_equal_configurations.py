"""Each rank executes the configuration by itself, and rank 0 alone tells of it: on all ranks it must be the same."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import digest_of, refuse_unequal
from tests.benchmarks.driver.ranks import TRAINING, arguments, launch_ranks, values_of
from utils.errors import FlagPerfError

LAUNCH = LaunchArguments(case_dir=Path("toy/pytorch"), data_dir=Path("/data"))
# Values of types that another process cannot load, and in an order that is another in each.
OWN_TYPES = """
from collections import defaultdict as _defaultdict
from enum import Enum as _Enum
from typing import NamedTuple as _NamedTuple
class _Size(_NamedTuple):
    width: int
class _Mode(str, _Enum):
    FAST = "fast"
own_size, own_mode, own_weights = _Size(1), _Mode.FAST, _defaultdict(lambda: 0, {name: 1 for name in {*"abcdefg"}})
"""
BY_RANK = 'import os\n_IS_FIRST = os.environ["RANK"] == "0"\n'
PYTHONS = {"pytorch": "warm_python", "paddle": "warm_paddle"}


@pytest.mark.parametrize("framework", PYTHONS)
def test_two_ranks_with_other_parameters_train_nothing_and_say_which(
    tmp_path: Path, data_dir: Path, framework: str, request: pytest.FixtureRequest
) -> None:
    python = request.getfixturevalue(PYTHONS[framework])
    folder = tmp_path / "config"
    launch = arguments(folder, data_dir, max_steps=2, optimizer="adamw")
    launch = replace(launch, case_dir=TRAINING / "benchmarks" / "bert" / framework)
    with (folder / launch.extern_config_file).open("a") as file:
        file.write(f"{BY_RANK}train_batch_size = 8 if _IS_FIRST else 1\nmax_steps = 2 if _IS_FIRST else 1\n")
    code, ranks = launch_ranks(tmp_path / "logs", launch, 2, python)
    assert code != 0
    assert {event.name for events in ranks for event in events} == {"INIT_START"}
    said = "".join(log.read_text() for log in (tmp_path / "logs").glob("rank*.out.log"))
    assert "train_batch_size is 1 on rank 1, 8 on rank 0" in said
    assert "max_steps is 1 on rank 1, 2 on rank 0" in said
    assert str(folder / launch.extern_config_file) in said


def test_two_ranks_with_values_of_own_types_are_equal(
    tmp_path: Path, data_dir: Path, warm_python: str
) -> None:
    case = tmp_path / "benchmarks" / "bert" / "pytorch"
    shutil.copytree(TRAINING / "benchmarks" / "bert", case.parent)
    with (case / "config" / "_base.py").open("a") as file:
        file.write(OWN_TYPES)
    launch = replace(arguments(tmp_path / "config", data_dir, max_steps=2), case_dir=case)
    code, ranks = launch_ranks(tmp_path / "logs", launch, 2, warm_python)
    said = "".join(log.read_text() for log in (tmp_path / "logs").glob("rank*.out.log"))
    assert code == 0 and values_of(ranks[0], "FINISHED"), said


def test_two_ranks_of_a_case_that_measures_are_held_to_it_too(tmp_path: Path, warm_python: str) -> None:
    folder = tmp_path / "config"
    launch = arguments(folder, tmp_path)
    launch = replace(launch, case_dir=TRAINING / "benchmarks/gemm/pytorch")
    config = folder / launch.extern_config_file
    config.write_text(f"{BY_RANK}window_seconds = 0.05 if _IS_FIRST else 0.04\n")
    code, ranks = launch_ranks(tmp_path / "logs", launch, 2, warm_python)
    assert code != 0 and not values_of(ranks[0], "FINISHED")
    said = "".join(log.read_text() for log in (tmp_path / "logs").glob("rank*.out.log"))
    assert "window_seconds is 0.04 on rank 1, 0.05 on rank 0" in said


def _refusal(*of_ranks: dict[str, Any]) -> str:
    with pytest.raises(FlagPerfError, match="do not have the same parameters") as caught:
        refuse_unequal(of_ranks, LAUNCH)
    return caught.value.message.partition(": ")[2]


def test_equal_parameters_are_not_refused() -> None:
    values = {"size": 1, "names": ("a", "b"), "nested": {"x": [1.0]}, "none": None}
    refuse_unequal([values], LAUNCH)
    refuse_unequal([values, dict(reversed(values.items())), dict(values)], LAUNCH)


def test_the_first_other_rank_of_each_parameter_is_named() -> None:
    same = {"size": 1, "depth": 2}
    assert _refusal(same, same, {**same, "depth": 3}, {"size": 5, "depth": 4}) == (
        "size is 5 on rank 3, 1 on rank 0; depth is 3 on rank 2, 2 on rank 0"
    )


def test_a_parameter_that_some_ranks_alone_have_is_named() -> None:
    assert _refusal({}, {"size": None}) == "size is None on rank 1, not there on rank 0"
    assert _refusal({"size": None}, {}) == "size is not there on rank 1, None on rank 0"


def test_no_secret_and_nothing_without_end_is_shown() -> None:
    assert (
        _refusal({"hf_token": "one-0"}, {"hf_token": "two-1"}) == "hf_token is *** on rank 1, *** on rank 0"
    )
    said = _refusal({str(n): "a" * 10_000 for n in range(99)}, {str(n): "b" * 10_000 for n in range(99)})
    assert len(said) < 3_000 and said.endswith("; and 91 more")


def test_where_no_vendor_file_is_the_cases_own_is_blamed() -> None:
    with pytest.raises(FlagPerfError) as caught:
        refuse_unequal([{"size": 1}, {"size": 2}], LAUNCH)
    assert caught.value.where == "toy/pytorch/config"


def test_a_digest_is_of_names_and_values() -> None:
    values: dict[str, Any] = {"size": 1, "names": ("a", "b")}
    assert digest_of(values) == digest_of(dict(reversed(values.items())))
    nested = {"weights": defaultdict(int, {"a": 1, "b": 2})}
    assert digest_of(nested) == digest_of({"weights": {"b": 2, "a": 1}})
    others = [{**values, "size": 2}, {**values, "names": ("b", "a")}, {"size": 1}, {**values, "more": 1}]
    assert len({digest_of(each) for each in (values, *others)}) == 5
