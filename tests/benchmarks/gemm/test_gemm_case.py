"""Matrix multiplication on this machine's processors: what is measured, what is left out, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import benchmarks
from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.extern import case_class
from benchmarks.driver.operations import UnsupportedError
from benchmarks.driver.pytorch.case import MeasurementContext
from tests.benchmarks.driver.controller import run_by_the_controller
from tests.benchmarks.driver.ranks import run_here, values_of
from tests.run_benchmarks.plan.tree import copy_code
from utils.config_files import load_constants
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.parameters import MeasurementSettings

TRAINING = Path(benchmarks.__file__).parents[1]
GEMM = TRAINING / "benchmarks" / "gemm" / "pytorch"
products: Any = load_module(GEMM / "products.py", "gemm_products")
SHAPE = (96, 64, 128)  # M, N, K
ON_CPU = ("fp64", "fp32", "bf16", "fp16", "int8")


def case(**sizes: tuple[int, int, int]) -> Any:
    context = MeasurementContext(Path(), MeasurementSettings(), {"sizes": sizes}, torch.device("cpu"))
    return case_class(GEMM)(context)


def operands(dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns, inner = SHAPE
    generator = torch.Generator().manual_seed(1)
    product = products.PRODUCTS[dtype]
    return product.random((rows, inner), generator), product.random((columns, inner), generator).t()


@pytest.mark.parametrize("dtype", ON_CPU)
def test_the_result_is_the_product_and_a_call_does_the_work_that_is_counted(dtype: str) -> None:
    (operation,) = case(**{dtype: SHAPE}).operations()
    result = operation.start()()
    assert result.shape == SHAPE[:2]
    assert operation.work * 1e12 == 2 * 96 * 64 * 128
    assert (operation.name, operation.peak) == (f"gemm_{dtype}", dtype)
    assert operation.unit == ("TOP" if dtype == "int8" else "TFLOP")
    a, b = operands(dtype)
    products.check_result(dtype, a, b, products.multiplication(dtype, a, b)())


@pytest.mark.parametrize("dtype", ON_CPU)
def test_a_result_that_is_wrong_anywhere_it_is_looked_at_gets_no_figure(dtype: str) -> None:
    a, b = operands(dtype)
    result = products.multiplication(dtype, a, b)()
    for wrong in (torch.zeros_like(result), result.roll(1, 0), -result):
        with pytest.raises(FlagPerfError, match=f"gemm_{dtype}: the result is wrong by"):
            products.check_result(dtype, a, b, wrong)
    if result.is_floating_point():
        with pytest.raises(FlagPerfError, match="wrong by nan"):
            products.check_result(dtype, a, b, result * torch.nan)


@pytest.mark.parametrize("half", [0x1000, 0], ids=["rounded", "cut off"])
def test_fp32_that_was_rounded_to_tf32_is_not_taken_for_fp32_nor_the_other_way_round(half: int) -> None:
    a, b = operands("fp32")
    rounded = [
        ((m.view(torch.int32) + half) & ~0x1FFF).view(torch.float32) for m in (a.contiguous(), b.contiguous())
    ]
    result = rounded[0] @ rounded[1]
    products.check_result("tf32", a, b, result)
    with pytest.raises(UnsupportedError, match="less exactly than fp32 here: off by"):
        products.check_result("fp32", a, b, result)
    with pytest.raises(UnsupportedError, match="in full fp32"):
        products.check_result("tf32", a, b, a @ b)


@pytest.mark.parametrize(
    ("dtype", "computed_in"), [("fp64", torch.float32), ("fp32", torch.bfloat16), ("tf32", torch.bfloat16)]
)
def test_a_dtype_that_is_computed_in_a_coarser_one_is_not_reported_under_its_name(
    dtype: str, computed_in: torch.dtype
) -> None:
    a, b = operands(dtype)
    coarse = (a.to(computed_in) @ b.to(computed_in)).to(a.dtype)
    with pytest.raises(
        UnsupportedError, match=f"less exactly than {dtype} here: off by .* rounding to {dtype}"
    ):
        products.check_result(dtype, a, b, coarse)


@pytest.mark.parametrize(("dtype", "reason"), [("tf32", "in full fp32"), ("fp8", "number by number")])
def test_what_a_processor_lacks_is_left_out(dtype: str, reason: str) -> None:
    (operation,) = case(**{dtype: SHAPE}).operations()
    with pytest.raises(UnsupportedError, match=reason):
        operation.start()


def test_a_kernel_that_pytorch_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """FAKE of such a dtype: PyTorch has no product of booleans."""
    monkeypatch.setattr(torch, "mm", lambda *_, **__: torch.zeros(2, 2).bool() @ torch.zeros(2, 2).bool())
    (operation,) = case(fp32=SHAPE).operations()
    with pytest.raises(
        UnsupportedError,
        match=r"PyTorch [\d.+a-z]+: .*not implemented for 'Bool'",
    ):
        operation.start()


def test_a_dtype_that_the_device_cannot_even_hold_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """FAKE of such a device: its random numbers are refused, as PyTorch's plug-ins refuse a dtype."""

    def refuse(*_: object, **__: object) -> None:
        raise TypeError("the device has no Float8_e4m3fn\nat line 7")

    monkeypatch.setattr(torch, "randn", refuse)
    (operation,) = case(bf16=SHAPE).operations()
    with pytest.raises(UnsupportedError, match=r"PyTorch [\d.+a-z]+: the device has no Float8_e4m3fn$"):
        operation.start()


def test_no_device_is_judged_before_it_was_tried() -> None:
    devices = [torch.device(kind, 0) for kind in ("cuda", "xpu", "privateuseone")]
    assert not any(products.missing_on(device, dtype) for device in devices for dtype in products.PRODUCTS)


def test_a_dtype_that_is_none_is_refused() -> None:
    with pytest.raises(FlagPerfError, match="sizes has fp12, which is no dtype of this case"):
        case(fp12=SHAPE)


def test_the_shipped_configurations_measure_every_dtype_or_say_why_one_is_left_out() -> None:
    sizes = load_constants(GEMM / "config" / "_base.py")["sizes"]
    assert set(sizes) == set(products.PRODUCTS)
    for path in sorted(TRAINING.glob("*/gemm-pytorch/config/config_*x*.py")):
        chosen = load_constants(path).get("sizes", sizes)
        assert set(chosen) <= set(sizes), path
        for left_out in set(sizes) - set(chosen):
            assert f"Without {left_out}:" in (path.parents[1] / "README.md").read_text(), path


def test_users_can_run_it(tmp_path: Path, capsys: Any) -> None:
    folder = TRAINING / "cpu" / "gemm-pytorch" / "config"
    overrides = {
        "sizes": dict.fromkeys(products.PRODUCTS, SHAPE),
        "window_seconds": 0.002,
        "max_warmup_windows": 3,
    }
    launch = LaunchArguments(GEMM, tmp_path, "cpu", folder, "config_cpux1x1.py", True, overrides=overrides)
    before = torch.get_num_threads()
    events = run_here(capsys, launch)
    torch.set_num_threads(before)
    (started,), (finished,) = values_of(events, "INIT_START"), values_of(events, "FINISHED")
    assert started["changed"] == []
    rates = [name for name in finished["figures"] if not name.endswith("_spread")]
    assert rates == [f"gemm_{dtype}" for dtype in products.PRODUCTS if dtype in ON_CPU]
    assert all(finished["figures"][name]["value"] > 0 for name in rates)
    assert {note.partition(" is left out")[0] for note in finished["notes"] if "left out" in note} == {
        "gemm_tf32", "gemm_fp8",
    }  # fmt: skip


def with_short_windows(training: Path) -> Path:
    """A copy of what a round of it needs; the matrices and windows of two ranks are smaller."""
    for name in ("utils", "benchmarks/driver", "benchmarks/gemm", "cpu"):
        copy_code(TRAINING / name, training / name)
    (training / "benchmarks/__init__.py").touch()
    config = training / "cpu/gemm-pytorch/config/config_cpux1x2.py"
    sizes = f"sizes = dict.fromkeys({list(products.PRODUCTS)}, {SHAPE})"
    config.write_text(f"{config.read_text()}\n{sizes}\nwindow_seconds = 0.002\nmax_warmup_windows = 3\n")
    return training


def test_it_is_measured_on_two_ranks_by_the_controller(tmp_path: Path, warm_python: str) -> None:
    data = tmp_path / "nothing"
    data.mkdir()
    training = with_short_windows(tmp_path / "training")
    code, result, events = run_by_the_controller(
        warm_python, "gemm:pytorch:cpu:1:2:1", data, tmp_path, training
    )
    assert (code, result["verdict"], result["kind"]) == (0, "MEASURED", "measure")
    assert result["rules"]["stamp"] == "closed"
    assert set(ON_CPU) == {
        name.removeprefix("gemm_")
        for name in result["figures"]
        if name.removeprefix("gemm_") in products.PRODUCTS
    }
    rate = result["figures"]["gemm_bf16"]
    assert (rate["unit"], rate["better"], "the slowest of 2" in rate["window"]) == ("TFLOP/s", "higher", True)
    of_peak = result["figures"]["gemm_bf16_of_peak"]
    assert (of_peak["value"], "names no processor model" in of_peak["source"]) == (None, True)
    assert any(note.startswith("gemm_fp8 is left out") for note in result["notes"])
    assert [value["global_steps"] for value in values_of(events, "STEP_END")] == list(range(1, 8))
