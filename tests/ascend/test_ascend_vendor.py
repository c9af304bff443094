"""Ascend: lists that npu-smi might print, its chips, and what its install script asks for."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.fakes.python3 import install
from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "ascend"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "ascend_vendor_under_test")


def test_a_table_that_ends_within_a_chip_and_a_row_of_another_form(vendor: ModuleType) -> None:
    whole = recording("ascend", "23.0.3_910B2C_x2")
    with pytest.raises(FlagPerfError, match="second line of the last NPU"):
        vendor.parse_device_list(whole.partition("| 0                         | 0000:29")[0])
    with pytest.raises(FlagPerfError, match="reports trouble: 0     910B2C Pro"):
        vendor.parse_device_list(whole.replace("0     910B2C    ", "0     910B2C Pro"))
    assert vendor.parse_device_list("") == []


@pytest.mark.parametrize(
    ("line", "chips"),
    [
        ("910B2, 65536 MiB", ["910B2"]),
        ("910B2C, 65536 MiB", ["910B2"]),
        ("910B3, 65536 MiB", ["910B3"]),
        ("910B, 32768 MiB", []),  # of the first generation, which has no bf16
        ("910B4-1, 65536 MiB", []),
        ("Ascend910, 65536 MiB", ["A3"]),
    ],
)
def test_a_chip_is_known_by_its_whole_name(vendor: ModuleType, line: str, chips: list[str]) -> None:
    assert chips == [
        chip for chip, about in vendor.CHIPS.items() if any(name in line for name in about["device_names"])
    ]


def test_the_peaks_are_cores_times_clock_times_the_cubes_products(vendor: ModuleType) -> None:
    for chip, cores in (("910B2", 24), ("910B3", 20)):
        peaks = vendor.CHIPS[chip]["peak_flops"]
        assert peaks["bf16"] == peaks["fp16"] == pytest.approx(cores * 1.8e9 * 16**3 * 2, rel=1e-3)
        assert peaks["int8"] == pytest.approx(2 * peaks["bf16"], rel=1e-3)


@pytest.mark.parametrize("there_is", ["*+cpu", "*whl/cpu*", "*torch==2.12.0"])
def test_the_plug_in_is_installed_with_the_torch_that_it_works_with(tmp_path: Path, there_is: str) -> None:
    done, asked = install("pytorch", "ascend", "*torch=*+cpu", there_is, tmp_path)
    assert done.returncode == 0, done.stderr
    assert asked[-1].startswith("torch==2.12.0 torch-npu==2.12.0 numpy==")


def test_without_torch_the_script_fails_and_installs_nothing_else(tmp_path: Path) -> None:
    done, asked = install("pytorch", "ascend", "*torch=*", "nothing", tmp_path)
    assert done.returncode == 1 and "cannot be installed. Give the build" in done.stderr
    assert not any("torch-npu" in line for line in asked)
