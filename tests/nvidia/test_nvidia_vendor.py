"""The nvidia vendor: its device list against recorded output of nvidia-smi, and its chips."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from utils.config_files import load_constants
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "nvidia"

# Lines in the form of `nvidia-smi --query-gpu=name,memory.total --format=csv,noheader`.
DGX_A100 = "NVIDIA A100-SXM4-40GB, 40960 MiB\n" * 8
DRIVER_450 = "A100-SXM4-40GB, 40537 MiB\n"
HGX_H100 = "NVIDIA H100 80GB HBM3, 81559 MiB\n" * 8
H200 = "NVIDIA H200, 143771 MiB\n"
H200_NVL = "NVIDIA H200 NVL, 143771 MiB\n"
H100_PCIE = "NVIDIA H100 PCIe, 81559 MiB\n"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "nvidia_vendor_under_test")


def chips_of(vendor: ModuleType, stdout: str) -> list[str]:
    """The chips that the listed devices are, as the harness finds them: by a part of the line."""
    return [
        chip
        for device in vendor.parse_device_list(stdout)
        for chip, about in vendor.CHIPS.items()
        if any(name in device for name in about["device_names"])
    ]


@pytest.mark.parametrize(
    ("stdout", "chips"),
    [
        (DGX_A100, ["A100"] * 8),
        (DRIVER_450, ["A100"]),
        ("NVIDIA A100-SXM4-80GB, 81920 MiB\n", ["A100"]),
        (HGX_H100, ["H100"] * 8),
        (H200, ["H200"]),
        (H200_NVL, []),  # its peak is lower: to take it for an H200 would flatter it by a fifth of the MFU
        (H100_PCIE, []),
    ],
)
def test_boards_are_known_by_name_and_no_other_board_is_taken_for_them(
    vendor: ModuleType, stdout: str, chips: list[str]
) -> None:
    assert chips_of(vendor, stdout) == chips


@pytest.mark.parametrize("stdout", ["", "No devices were found\n"])
def test_a_host_without_gpus_has_none(vendor: ModuleType, stdout: str) -> None:
    assert vendor.parse_device_list(stdout) == []


def test_a_gpu_that_fell_off_the_bus_is_an_error_and_not_one_gpu_less(vendor: ModuleType) -> None:
    trouble = "Unable to determine the device handle for GPU0000:2D:00.0: Unknown Error"
    with pytest.raises(FlagPerfError, match=f"nvidia-smi reports trouble: {trouble}"):
        vendor.parse_device_list(H200 + trouble + "\n")


def test_a_card_without_memory_of_its_own_is_listed(vendor: ModuleType) -> None:
    assert vendor.parse_device_list("NVIDIA GB10, [N/A]\n") == ["NVIDIA GB10, [N/A]"]


def test_every_chip_states_its_peaks_with_their_source(vendor: ModuleType) -> None:
    for chip, about in vendor.CHIPS.items():
        peaks = about["peak_flops"]
        assert about["source"], chip
        assert peaks["bf16"] == peaks["fp16"] == pytest.approx(2 * peaks["tf32"]), chip
        assert 0 < peaks["fp32"] == peaks["fp64"] < peaks["tf32"], chip
        assert (
            peaks["int8"] == peaks.get("fp8", peaks["int8"]) == pytest.approx(2 * peaks["bf16"], rel=1e-3)
        ), chip


def test_the_settings_are_plain_data() -> None:
    names = {
        "DEVICE_TYPE",
        "VISIBLE_DEVICES_ENV",
        "COLLECTIVE_BACKEND",
        "RAGGED_ATTENTION",
        "CONTAINER_OPTIONS",
    }
    names |= {"CHIPS"}
    assert names | {"LIST_DEVICES_COMMAND"} <= set(load_constants(VENDOR / "vendor.py"))


def test_the_folder_is_no_package_that_would_hide_pips_own() -> None:
    assert not (VENDOR / "__init__.py").exists()
