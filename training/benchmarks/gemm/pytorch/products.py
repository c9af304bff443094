"""The matrix products: what each dtype's operands and result are, who has it, and when a result is right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor

from benchmarks.driver.operations import UnsupportedError
from utils.errors import FlagPerfError

TF32 = "tf32"
_CHECKED = 32  # rows and columns of the result that are computed again, spread over it


@dataclass(frozen=True)
class Product:
    """Products of one dtype.

    Attributes:
        operands: their type.
        tolerance: largest error of a right result, as a part of the root mean square of the results: what
            rounding the operands (tf32), adding up and rounding the result come to, with a margin.
        description: of what is multiplied, for the figure's definition.
        capability: the first of NVIDIA's compute capabilities with such units.
        operation: what is counted, FLOP or OP.
    """

    operands: torch.dtype
    tolerance: float
    description: str
    capability: tuple[int, int] = (0, 0)
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
    TF32: Product(torch.float32, 1e-2, "fp32 operands rounded to TF32, fp32 sums", (8, 0)),
    "bf16": Product(torch.bfloat16, 3e-2, "bf16 operands and results", (8, 0)),
    "fp16": Product(torch.float16, 1e-2, "fp16 operands and results", (5, 3)),
    "int8": Product(torch.int8, 0.0, "int8 operands, int32 results (torch._int_mm)", (7, 5), operation="OP"),
    # Hopper's tensor cores add up fp8 products in some 14 bits (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2: off
    # by 2 % for K = 4096); cutting to 13 or 14 bits after every 32 products of 8192 comes to 3 to 6 %.
    "fp8": Product(
        torch.float8_e4m3fn,
        2e-1,
        "fp8 e4m3 operands with one scale each, fast accumulation, bf16 results (torch._scaled_mm)",
        (8, 9),
    ),
}


def missing_on(device: torch.device, dtype: str) -> str:
    """Why the device has no such units, where that can be told without trying; else empty."""
    if device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        if torch.version.hip is None and capability < PRODUCTS[dtype].capability:
            return "{} begins with compute capability {}.{}; this device has {}.{}".format(
                dtype, *PRODUCTS[dtype].capability, *capability
            )
    elif dtype == TF32:
        return f"TF32 is a format of NVIDIA's tensor cores, and not of a {device.type} device"
    elif dtype == "fp8" and device.type == "cpu":
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
        UnsupportedError: it is as exact as fp32 where TF32 was asked for.
    """
    # Odd steps: rows and columns at every place within the tiles that kernels compute.
    rows, columns = (slice(None, None, size // _CHECKED | 1) for size in result.shape)
    expected = a[rows].cpu().double() @ b[:, columns].cpu().double()
    difference = (result[rows, columns].cpu().double() - expected).abs().max()
    error = float(difference / expected.square().mean().sqrt())
    if not error <= PRODUCTS[dtype].tolerance:
        raise FlagPerfError(
            f"gemm_{dtype}: the result is wrong by {error:.2g} of its root mean square; rounding explains "
            f"{PRODUCTS[dtype].tolerance:.2g}",
            where=str(result.device),
            remedy="suspect the chip, its driver or its library: run it again on this chip and on another",
        )
    if dtype == TF32 and error < PRODUCTS["fp32"].tolerance:
        raise UnsupportedError(f"PyTorch {torch.__version__} computes it in full fp32 here")
