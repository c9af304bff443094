"""Every configuration of every vendor fits its chip's memory, by a count that needs no chip."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.vendor_facts import TRAINING_FOLDER
from tests.benchmarks.device_memory import GIB
from tests.benchmarks.device_memory_cases import CASES, LAYERS, counted, rank_memory, saved_bytes, shape_names
from utils.config_files import load_constants, parts_of_config

BATCHES = ("train_batch_size", "eval_batch_size")


@dataclass(frozen=True)
class Demand:
    """A configuration and the memory of its chip, in GiB."""

    path: Path
    case: str
    settings: Mapping[str, Any]
    memory: float

    def covers(self, other: Demand) -> bool:
        """Whether the other fits where this one does: the same training, in no larger batches, in no less memory."""
        return (
            self._training == other._training
            and all(self.settings.get(name, 0) >= other.settings.get(name, 0) for name in BATCHES)
            and self.memory <= other.memory
        )

    @property
    def _training(self) -> dict[str, Any]:
        """What decides about memory beside the batches: gemm's sizes, or the model and how it is trained."""
        names = {"sizes", "precision", "optimizer", *shape_names()}
        return {"case": self.case} | {name: self.settings[name] for name in names & set(self.settings)}

    @property
    def vendor(self) -> str:
        return self.path.parents[2].name

    def __str__(self) -> str:
        return f"{self.vendor}-{self.path.parents[1].name}-{self.path.stem[7:]}"


def demands() -> list[Demand]:
    """Of the cases that can be counted, on the chips whose memory is told."""
    return [
        Demand(path, case_of(path), settings_of(path), float(about["memory_gib"]))
        for vendor in TRAINING_FOLDER.glob("*/vendor.py")
        for chip, about in load_constants(vendor).get("CHIPS", {}).items()
        if about.get("memory_gib")
        for path in sorted(vendor.parent.glob(f"*-*/config/config_{chip}x*.py"))
        if (parts := parts_of_config(path.stem)) and parts[0] == chip and case_of(path) in (*CASES, "gemm")
    ]


def hardest(those: Sequence[Demand]) -> list[Demand]:
    """Enough of them to prove them all, since a count takes seconds."""
    kept: list[Demand] = []
    for demand in those:
        if not any(other.covers(demand) for other in kept):
            kept = [other for other in kept if not demand.covers(other)] + [demand]
    return kept


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A vendor that `-k` names is counted by itself: another one's configurations may prove its own else."""
    if "demand" in metafunc.fixturenames:
        words, every = metafunc.config.option.keyword.split(), demands()
        metafunc.parametrize("demand", hardest([d for d in every if d.vendor in words] or every), ids=str)


def case_of(configuration: Path) -> str:
    return configuration.parents[1].name.partition("-")[0]


def settings_of(configuration: Path) -> dict[str, Any]:
    model, framework = configuration.parents[1].name.split("-")
    base = TRAINING_FOLDER / "benchmarks" / model / framework / "config" / "_base.py"
    return {**load_constants(base), **load_constants(configuration)}


def needed(case: str, settings: Mapping[str, Any]) -> float:
    """GiB of the device."""
    if case == "gemm":
        return float(max(8 * (m * k + k * n + m * n) for m, n, k in settings["sizes"].values())) / GIB
    return rank_memory(case, settings).needed(settings["optimizer"]) / GIB


def test_a_configuration_fits_its_chip(demand: Demand) -> None:
    gib = needed(demand.case, demand.settings)
    assert gib <= demand.memory, (
        f"this configuration needs about {gib:.1f} GiB of {demand.memory}: lower train_batch_size"
    )


def test_every_configuration_is_proven_by_one_that_is_counted() -> None:
    every = demands()
    assert {demand.case for demand in every} == {*CASES, "gemm"}
    counted_ones = hardest(every)
    assert all(any(other.covers(demand) for other in counted_ones) for demand in every)


def test_more_memory_or_a_smaller_batch_is_no_proof_for_less_or_a_larger_one() -> None:
    settings = {"train_batch_size": 8, "eval_batch_size": 8, "precision": "bf16"}
    small, large = (Demand(Path(), "bert", settings, memory) for memory in (40.0, 80.0))
    longer = Demand(Path(), "bert", {**settings, "train_batch_size": 9}, 80.0)
    other = Demand(Path(), "bert", {**settings, "precision": "fp32"}, 80.0)
    assert small.covers(large) and not large.covers(small)
    assert longer.covers(large) and not large.covers(longer)
    assert not other.covers(large) and not large.covers(other)
    assert hardest([large, small, longer, other]) == [small, longer, other]


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
