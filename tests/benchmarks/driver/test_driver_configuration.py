from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import read_configuration
from utils.errors import ProblemsError


def test_the_files_are_found_by_the_launch_contract(tmp_path: Path) -> None:
    case, vendor = tmp_path / "case" / "config", tmp_path / "vendor"
    case.mkdir(parents=True)
    vendor.mkdir()
    (case / "_base.py").write_text(
        "size = 1\ndepth = 1\nmax_steps = 5\neval_interval_steps = 1\ntarget_accuracy = 1.0\n"
    )
    (case / "mutable_params.py").write_text('mutable_params = ["depth"]\n')
    (vendor / "config_common.py").write_text("size = 2\ndepth = 2\n")
    (vendor / "config_cpux1x1.py").write_text("from config_common import *\ndepth = 3\n")
    given: dict[str, Any] = {
        "case_dir": tmp_path / "case",
        "data_dir": tmp_path,
        "extern_config_dir": vendor,
        "extern_config_file": "config_cpux1x1.py",
    }
    config = read_configuration(LaunchArguments(**given, enable_extern_config=True), "accuracy")
    assert config.case == {"size": 2, "depth": 3}
    assert config.changed == ("size",)

    disabled = read_configuration(LaunchArguments(**given), "accuracy")
    assert disabled.case == {"size": 1, "depth": 1}
    overridden = read_configuration(LaunchArguments(**given, overrides={"size": 9}), "accuracy")
    assert overridden.case["size"] == 9


def test_the_target_is_of_the_cases_metric(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "_base.py").write_text("target_accuracy = 0.5\nmax_steps = 5\neval_interval_steps = 1\n")
    (folder / "mutable_params.py").write_text("mutable_params = []\n")
    arguments = LaunchArguments(case_dir=tmp_path, data_dir=tmp_path)
    assert read_configuration(arguments, "accuracy").driver.target == 0.5
    with pytest.raises(ProblemsError, match="name it target_exact_match"):
        read_configuration(arguments, "exact_match")
