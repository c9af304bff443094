"""How fast does a chip multiply matrices? An operation a dtype; what the device or PyTorch lacks is left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from benchmarks.driver.operations import Operation, UnsupportedError
from benchmarks.driver.pytorch.case import MeasurementContext
from utils.errors import FlagPerfError

from .products import PRODUCTS, TF32, check_result, missing_on, multiplication

T = TypeVar("T")


class Case:
    """C = A B with the sizes of the configuration, each rank on its own chip."""

    def __init__(self, context: MeasurementContext) -> None:
        self.device, self.seed = context.device, context.driver.seed
        self.sizes: dict[str, tuple[int, int, int]] = context.settings["sizes"]
        unknown = [dtype for dtype in self.sizes if dtype not in PRODUCTS]
        if unknown:
            raise FlagPerfError(
                f"sizes has {', '.join(unknown)}, which is no dtype of this case",
                where="configuration",
                remedy=f"choose among {', '.join(PRODUCTS)}",
            )

    def operations(self) -> list[Operation]:
        """One a dtype, in the order of the configuration."""
        return [self._operation(dtype, *size) for dtype, size in self.sizes.items()]

    def _operation(self, dtype: str, rows: int, columns: int, inner: int) -> Operation:
        product = PRODUCTS[dtype]
        return Operation(
            name=f"gemm_{dtype}",
            unit=f"T{product.operation}",
            work=2 * rows * columns * inner / 1e12,
            definition=f"2 x M x N x K {product.operation}s of C = A B / its time, of one chip, the slowest; "
            f"M, N, K = {rows}, {columns}, {inner}; {product.description}",
            start=partial(self._start, dtype, rows, columns, inner),
            peak=dtype,
        )

    def _start(self, dtype: str, rows: int, columns: int, inner: int) -> partial[Tensor]:
        """The multiplication, once its result is seen to be right."""
        reason = missing_on(self.device, dtype)
        if reason:
            raise UnsupportedError(reason)
        # TF32 is fp32 rounded on its way into the multiplier: fp32 must not be computed so, nor TF32 otherwise.
        torch.set_float32_matmul_precision("high" if dtype == TF32 else "highest")
        a, b = self._tried(partial(self._operands, dtype, rows, columns, inner))
        multiply = self._tried(partial(multiplication, dtype, a, b))
        check_result(dtype, a, b, self._tried(multiply))
        return multiply

    def _operands(self, dtype: str, rows: int, columns: int, inner: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator(self.device).manual_seed(self.seed)
        random = PRODUCTS[dtype].random
        a, b = random((rows, inner), generator), random((columns, inner), generator)
        return a, b.t()  # by columns, as the weights of a linear layer lie

    def _tried(self, action: Callable[[], T]) -> T:
        """What it gives: only then does PyTorch say whether it has the dtype, or a kernel for it, on the device."""
        try:
            return action()
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError) as error:
            torch.zeros(1, device=self.device).item()  # a device that has failed fails here too
            reason = str(error).strip().partition("\n")[0]
            raise UnsupportedError(f"PyTorch {torch.__version__}: {reason}") from error
