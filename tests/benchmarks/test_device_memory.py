"""Every configuration of every vendor fits its chip's memory, by a count that needs no chip."""

from __future__ import annotations

import math
import re
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.vendor_facts import TRAINING_FOLDER
from tests.benchmarks.device_memory import GIB
from tests.benchmarks.device_memory_cases import CASES, LAYERS, counted, rank_memory, saved_bytes
from utils.config_files import load_constants


def configurations() -> list[Path]:
    """Those of the cases that can be counted, of the vendors that say what memory their chips have."""
    vendors = [path.parent for path in TRAINING_FOLDER.glob("*/vendor.py") if chips(path.parent)]
    files = (path for vendor in vendors for path in vendor.glob("*-*/config/config_*x*x*.py"))
    return sorted(path for path in files if case_of(path) in (*CASES, "gemm"))


def case_of(configuration: Path) -> str:
    return configuration.parents[1].name.partition("-")[0]


def chips(vendor: Path) -> dict[str, Any]:
    constants = load_constants(vendor / "vendor.py").get("CHIPS", {})
    return {name: chip for name, chip in constants.items() if chip.get("memory_gib")}


def settings_of(configuration: Path) -> dict[str, Any]:
    model, framework = configuration.parents[1].name.split("-")
    base = TRAINING_FOLDER / "benchmarks" / model / framework / "config" / "_base.py"
    return {**load_constants(base), **load_constants(configuration)}


def needed(case: str, settings: dict[str, Any]) -> float:
    """GiB of the device."""
    if case == "gemm":
        return float(max(8 * (m * k + k * n + m * n) for m, n, k in settings["sizes"].values())) / GIB
    return rank_memory(case, settings).needed(settings["optimizer"]) / GIB


@pytest.mark.parametrize("path", configurations(), ids=lambda path: f"{path.parents[1].name}-{path.stem[7:]}")
def test_a_configuration_fits_its_chip(path: Path) -> None:
    chip = re.sub(r"x\d+x\d+$", "", path.stem.removeprefix("config_"))
    memory = chips(path.parents[2])[chip]["memory_gib"]
    gib = needed(case_of(path), settings_of(path))
    assert gib <= memory, f"this configuration needs about {gib:.1f} GiB of {memory}: lower train_batch_size"


def test_every_vendor_that_names_its_chips_is_looked_at() -> None:
    assert set(map(case_of, configurations())) == {*CASES, "gemm"}


def test_192_samples_of_cpm_at_once_do_not_fit_40_gb() -> None:
    a100 = settings_of(TRAINING_FOLDER / "nvidia/cpm-pytorch/config/config_A100x1x1.py")
    assert needed("cpm", {**a100, "train_batch_size": 192}) == pytest.approx(43.9, abs=0.5)
    assert needed("cpm", a100) < 30


SMALL: dict[str, dict[str, Any]] = {
    "bert": {
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "vocab_size": 300,
        "max_position_embeddings": 90,
    },
    "cpm": {"num_layers": 2, "vocab_size": 300, "max_position_embeddings": 40},
    "glm": {"num_layers": 2, "vocab_size": 300, "max_position_embeddings": 40},
}


def small(case: str, batch: int, precision: str, **changed: Any) -> dict[str, Any]:
    common = {"hidden_size": 32, "num_attention_heads": 4, "eval_batch_size": 3}
    return {**common, **SMALL[case], "train_batch_size": batch, "precision": precision, **changed}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("case", CASES)
def test_the_count_is_that_of_real_tensors(
    case: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # CPM's loss takes a shorter way where it sees that no probability is too small; without numbers, the long one.
    monkeypatch.setattr("benchmarks.cpm.pytorch.loss._SMALLEST", math.inf)
    settings = small(case, 5, precision)
    assert astuple(counted(case, settings)) == pytest.approx(
        astuple(counted(case, settings, fake=False)), rel=1e-3
    )


@pytest.mark.parametrize("case", CASES)
def test_a_layer_more_takes_as_much_as_every_other(case: str) -> None:
    settings = small(case, 64, "bf16", **{LAYERS[case]: 9})
    assert rank_memory(case, settings) == counted(case, settings)


@pytest.mark.parametrize(
    ("batch", "hidden"), [(8, 32), (16, 64)]
)  # multiples of 64 tokens: none are filled up
@pytest.mark.parametrize(("precision", "values"), [("bf16", 38), ("fp32", 66)])
def test_what_is_kept_for_the_backward_pass_is_what_a_layers_code_says(
    batch: int, hidden: int, precision: str, values: int
) -> None:
    """Bytes a hidden value of a layer, mixed precision (fp32):

    input of each normalisation 4 + 4 (4 + 4), of the four maps 2 + 2 + 2 + 8 (4 + 4 + 4 + 16), queries, keys and values
    6 (12), the wide map's output 8 (16), and both dropouts' masks 1 + 1; beside them 16 a token for each two
    normalisations, and 4 a head for attention.
    """
    few, more = (
        saved_bytes("cpm", small("cpm", batch, precision, hidden_size=hidden, num_layers=layers), precision)
        for layers in (1, 2)
    )
    tokens, heads = batch * 40, 4
    assert more - few == tokens * (values * hidden + 16 + 4 * heads)
