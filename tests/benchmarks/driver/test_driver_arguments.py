from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.arguments import parse_arguments
from utils.errors import FlagPerfError

CONTRACT = [
    "--case_dir", "benchmarks/bert/pytorch", "--data_dir", "/data", "--vendor", "nvidia",
    "--extern_config_dir", "/x/config", "--extern_config_file", "config_A100x1x8.py",
    "--enable_extern_config", "--extern_module_dir", "/x/extern",
]  # fmt: skip


def test_the_launch_contract_is_read() -> None:
    arguments = parse_arguments(CONTRACT)
    assert arguments.case_dir == Path("benchmarks/bert/pytorch").resolve()
    assert arguments.data_dir == Path("/data")
    assert arguments.extern_config_dir == Path("/x/config")
    assert arguments.extern_config_file == "config_A100x1x8.py"
    assert arguments.extern_module_dir == Path("/x/extern")
    assert arguments.enable_extern_config
    assert arguments.vendor == "nvidia"
    assert arguments.overrides == {}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--max_steps", "10"], {"max_steps": 10}),
        (["--max_steps=10"], {"max_steps": 10}),
        (["--max-steps=10"], {"max_steps": 10}),
        (["--learning_rate", "-1e-3", "--precision", "fp32"], {"learning_rate": -1e-3, "precision": "fp32"}),
        (["--torch_compile"], {"torch_compile": True}),
        (["--torch_compile", "--max_steps", "3"], {"torch_compile": True, "max_steps": 3}),
        (["--max_samples_termination", "None"], {"max_samples_termination": None}),
        (["--init_checkpoint="], {"init_checkpoint": ""}),
    ],
)
def test_other_options_override_the_configuration(options: list[str], expected: dict[str, object]) -> None:
    assert parse_arguments([*CONTRACT, *options]).overrides == expected


@pytest.mark.parametrize(
    ("folder", "framework"), [("pytorch", "pytorch"), ("pytorch_1.8", "pytorch"), ("paddle", "paddle")]
)
def test_the_framework_is_that_of_the_case_folder(folder: str, framework: str) -> None:
    assert parse_arguments(["--case_dir", f"a/{folder}", "--data_dir", "d"]).framework == framework


@pytest.mark.parametrize("options", [["stray"], ["--data_dir"]])
def test_what_is_no_option_is_refused(options: list[str]) -> None:
    with pytest.raises(FlagPerfError, match="command line"):
        parse_arguments([*CONTRACT, *options])


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(FlagPerfError, match="--data_dir"):
        parse_arguments(["--case_dir", "x"])
