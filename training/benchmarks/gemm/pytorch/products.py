"""The matrix products: what each dtype's operands and result are, and when a result is right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor

from benchmarks.driver.operations import UnsupportedError
from utils.errors import FlagPerfError

TF32 = "tf32"
_CHECKED = 32  # rows and columns of the result that are computed again, spread over it
# An error up to this comes of a coarser rounding (at the worst to bf16) than the dtype's; above it, of a mistake.
_COARSEST = 3e-2


@dataclass(frozen=True)
class Product:
    """Products of one dtype.

    Attributes:
        operands: their type.
        tolerance: largest error of a right result, as a part of the root mean square of the results: what
            rounding the operands (tf32), adding up and rounding the result come to, with a margin.
        description: of what is multiplied, for the figure's definition.
        operation: what is counted, FLOP or OP.
    """

    operands: torch.dtype
    tolerance: float
    description: str
    operation: str = "FLOP"

    def random(self, shape: tuple[int, int], generator: Generator) -> Tensor:
        """Standard normal numbers, or whole ones from all of int8: multiplying zeros would draw less power."""
        device = generator.device
        if self.operands == torch.int8:
            return torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator, device=device)
        return torch.randn(shape, generator=generator, device=device).to(self.operands)


PRODUCTS = {
    "fp64": Product(torch.float64, 1e-12, "fp64 throughout"),
    "fp32": Product(torch.float32, 1e-4, "fp32 throughout, not rounded to TF32"),
    # 10 bits, cut off: off by 0.3 % at the worst place of 1024; 7 bits (bf16), rounded, by 0.65 % and more.
    TF32: Product(torch.float32, 5e-3, "fp32 operands rounded to TF32, fp32 sums"),
    "bf16": Product(torch.bfloat16, 3e-2, "bf16 operands and results"),
    "fp16": Product(torch.float16, 1e-2, "fp16 operands and results"),
    "int8": Product(torch.int8, 0.0, "int8 operands, int32 results (torch._int_mm)", operation="OP"),
    # Hopper's tensor cores add up fp8 products in some 14 bits (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2: off
    # by 2 % for K = 4096); cutting to 13 or 14 bits after every 32 products of 8192 comes to 3 to 6 %.
    "fp8": Product(
        torch.float8_e4m3fn,
        2e-1,
        "fp8 e4m3 operands with one scale each, fast accumulation, bf16 results (torch._scaled_mm)",
    ),
}


def missing_on(device: torch.device, dtype: str) -> str:
    """Why it is not even tried; else empty. Capabilities tell nothing: other vendors' chips answer with NVIDIA's."""
    if dtype == "fp8" and device.type == "cpu":
        return "PyTorch multiplies fp8 on a CPU number by number"
    return ""


def multiplication(dtype: str, a: Tensor, b: Tensor) -> partial[Tensor]:
    """A call that multiplies `a` (M, K) by `b` (K, N) and returns the result (M, N)."""
    if dtype == "fp8":
        one = torch.ones((), device=a.device)
        return partial(
            torch._scaled_mm, a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    result_type = torch.int32 if dtype == "int8" else a.dtype
    result = torch.empty(a.shape[0], b.shape[1], dtype=result_type, device=a.device)
    return partial(torch._int_mm if dtype == "int8" else torch.mm, a, b, out=result)


def check_result(dtype: str, a: Tensor, b: Tensor, result: Tensor) -> None:
    """Compare a part of `result` with the product in fp64 on the host: a wrong kernel gets no figure.

    Raises:
        FlagPerfError: it is wrong.
        UnsupportedError: it is less exact than the dtype, or as exact as fp32 where TF32 was asked for.
    """
    # Odd steps: rows and columns at every place within the tiles that kernels compute.
    rows, columns = (slice(None, None, size // _CHECKED | 1) for size in result.shape)
    expected = a[rows].cpu().double() @ b[:, columns].cpu().double()
    difference = (result[rows, columns].cpu().double() - expected).abs().max()
    error = float(difference / expected.square().mean().sqrt())
    tolerance = PRODUCTS[dtype].tolerance
    if not error <= max(tolerance, _COARSEST):
        raise FlagPerfError(
            f"gemm_{dtype}: the result is wrong by {error:.2g} of its root mean square; rounding explains "
            f"{tolerance:.2g}",
            where=str(result.device),
            remedy="suspect the chip, its driver or its library: run it again on this chip and on another",
        )
    if error > tolerance:
        raise UnsupportedError(
            f"PyTorch {torch.__version__} computes it less exactly than {dtype} here: off by {error:.2g} of the "
            f"result's root mean square, and rounding to {dtype} explains {tolerance:.2g}"
        )
    if dtype == TF32 and error < PRODUCTS["fp32"].tolerance:
        raise UnsupportedError(f"PyTorch {torch.__version__} computes it in full fp32 here")
