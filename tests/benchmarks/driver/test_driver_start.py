"""What a rank learns about itself and its vendor, and what it says when something is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from benchmarks.driver.extern import case_class
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.start import prepare
from benchmarks.driver.pytorch.tensors import moved, pinned
from benchmarks.driver.ranks import (
    RankEnvironment,
    read_rank_environment,
    round_number,
    threads_per_rank,
    usable_cores,
)
from benchmarks.driver.session import load_framework
from benchmarks.driver.vendor_facts import PLAIN_CPU, VendorFacts, import_plugin, read_vendor_facts
from tests.benchmarks.driver.ranks import BERT
from utils.errors import FlagPerfError
from utils.parameters import Configuration, MeasurementSettings, TrainingSettings


def test_ranks_from_the_environment() -> None:
    launched = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert read_rank_environment(launched) == RankEnvironment(5, 8, 1, 4)
    assert read_rank_environment({}) == RankEnvironment()
    with pytest.raises(FlagPerfError, match="environment"):
        read_rank_environment({"RANK": "first"})


def test_each_round_has_a_seed_of_its_own_where_the_case_asks_for_it() -> None:
    assert (round_number({}), round_number({"FLAGPERF_ROUND": "3"})) == (1, 3)
    for text in ("0", "-1", "third"):
        with pytest.raises(FlagPerfError, match="FLAGPERF_ROUND"):
            round_number({"FLAGPERF_ROUND": text})
    config = Configuration(TrainingSettings(seed=42, seed_step=7), {}, ())
    assert [config.of_round(number).as_dict()["seed"] for number in (1, 2, 3)] == [42, 49, 56]
    assert Configuration(MeasurementSettings(), {}, ()).of_round(2).as_dict()["seed"] == 42


def test_the_ranks_of_a_host_divide_its_cores() -> None:
    cores = usable_cores()
    assert threads_per_rank(RankEnvironment(local_world_size=1), None) == cores
    assert threads_per_rank(RankEnvironment(local_world_size=cores), None) == 1
    assert threads_per_rank(RankEnvironment(local_world_size=10 * cores), None) == 1
    assert threads_per_rank(RankEnvironment(local_world_size=10 * cores), 3) == 3


def test_vendor_facts_come_from_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "newchip"
    folder.mkdir()
    (folder / "vendor.py").write_text('DEVICE_TYPE = "npu"\nCOLLECTIVE_BACKEND = {"pytorch": "hccl"}\n')
    facts = read_vendor_facts("newchip", "pytorch", tmp_path)
    assert (facts.device_type, facts.backend) == ("npu", "hccl")
    with pytest.raises(FlagPerfError, match=r"COLLECTIVE_BACKEND\['paddle'\] is missing"):
        read_vendor_facts("newchip", "paddle", tmp_path)
    with pytest.raises(FlagPerfError, match="absent"):
        read_vendor_facts("absent", "pytorch", tmp_path)
    assert read_vendor_facts("", "pytorch") == PLAIN_CPU
    assert facts.plugin == ""
    assert read_vendor_facts("cpu", "pytorch") == PLAIN_CPU


def test_fp32_is_fp32_in_convolutions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what PyTorch asks cuDNN for, as it does where there is one: on NVIDIA's chips it is TF32 by itself."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    prepare(TrainingSettings(precision="fp32"), "cuda", torch.get_num_threads())
    assert not torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("device_type", ["nosuchdevice", "xpu"])
def test_a_device_that_is_not_there_is_named(device_type: str) -> None:
    with pytest.raises(FlagPerfError, match=f"PyTorch sees no {device_type} device"):
        Device(device_type, 0)


def test_a_framework_without_an_engine_is_named() -> None:
    with pytest.raises(FlagPerfError, match="no engine for the framework 'jax'"):
        load_framework("jax")


def test_a_case_is_loaded_by_its_folder(tmp_path: Path) -> None:
    assert case_class(BERT).metric == "mlm_accuracy"
    folder = tmp_path / "pytorch"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "case.py").write_text("CASE = None\n")
    with pytest.raises(FlagPerfError, match="no class Case"):
        case_class(folder)


def test_moved_reaches_every_tensor_and_leaves_the_rest() -> None:
    inputs = {"a": [torch.ones(2), (torch.zeros(1), "text")], "n": 3}
    there = moved(inputs, torch.device("meta"))
    assert there["a"][0].device.type == there["a"][1][0].device.type == "meta"
    assert (there["a"][1][1], there["n"]) == ("text", 3)
    assert moved(inputs, torch.device("cpu")) is inputs
    assert pinned({"n": 3, "t": "text"}) == {"n": 3, "t": "text"}


def test_a_plugin_is_imported_and_its_absence_is_one_clear_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "torch_newchip.py").write_text("__version__ = '2.9.0.post1'\n")
    versions = import_plugin(VendorFacts("newchip", "nccl", "torch_newchip"))
    assert versions == {"torch_newchip": "2.9.0.post1"}
    assert "torch_newchip" in sys.modules and import_plugin(PLAIN_CPU) == {}
    (tmp_path / "torch_broken.py").write_text("raise OSError('libnewchip.so: no such file')\n")
    for plugin, why in (
        ("torch_absent", "No module named 'torch_absent'"),
        ("torch_broken", "libnewchip.so"),
    ):
        with pytest.raises(FlagPerfError, match=f"{plugin}, which makes newchip devices known") as caught:
            import_plugin(VendorFacts("newchip", "nccl", plugin))
        assert why in caught.value.message and "driver" in caught.value.remedy
