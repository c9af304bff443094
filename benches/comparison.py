"""What the comparisons of a case with its peers have in common.

All train the same model (no dropout) from the same weights on the same batches of prepared text with the padding
that it has, in the same precision, with fused AdamW and gradient clipping, in one process. A step is forward,
loss, backward, clipping, optimizer. Making batches is part of neither: each gets ready tensors, in the form in
which it takes them. All have the number of threads that is better for the peers, one or all cores: on a machine
that does other work too, threads wait for each other.

The contenders take steps in turn. The ratio is the median over the turns of the fastest peer's time over ours,
beside its quartiles. The first losses are compared before: a figure for different mathematics would mean nothing.

Peers marked *compiled* went through torch.compile, which on a CPU needs a C++ compiler (`apt install g++`). One
that cannot be compiled is said to be so, in the table and in the JSON.

`of gemm` is the model FLOP/s of ours (utils/figures.py's count: padding is none of them) over what one square
product reaches in the same dtype, threads and turns, of the size at which it is fastest.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.driver.ranks import usable_cores
from utils.parameters import TrainingSettings

RATE = 1e-3
SAME_LOSS = 0.02  # of the first step, in nats: bf16 rounds
OURS, COMPILED, GEMM, WARM_UP = "ours", ", compiled", "gemm", "warm-up"
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
GEMM_SIZES = (512, 1024, 2048)
PRECISIONS = tuple(DTYPES)
Step = Callable[[int], float]  # trains on one batch, by its number; returns the loss


@dataclass(frozen=True)
class Options:
    """How comparisons are made; threads: None for what is best for the peers. `sizes`: only these, or all."""

    batches: int
    steps: int
    threads: int | None
    precision: str
    compiled: bool
    sizes: tuple[str, ...] = ()

    def settings(self, batch_size: int) -> TrainingSettings:
        """The driver's settings for a contender."""
        return TrainingSettings(
            train_batch_size=batch_size,
            max_steps=1,
            precision=self.precision,
            learning_rate=RATE,
            weight_decay_rate=0.01,
        )

    def wants(self, size: str) -> bool:
        """Whether a size is to be measured."""
        return not self.sizes or size in self.sizes


@dataclass(frozen=True)
class Result:
    """A comparison's figures.

    Attributes:
        ratio: samples/s of ours over those of the fastest peer, the median over turns.
        quartiles: of the same.
        peer: the fastest one.
        of_gemm: model FLOP/s of ours over those of the fastest square product.
        not_compiled: peers that could not be compiled, and why.
    """

    ratio: float
    quartiles: tuple[float, float]
    peer: str
    of_gemm: float
    not_compiled: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Rounded."""
        return {
            "ratio": round(self.ratio, 3),
            "quartiles": [round(value, 3) for value in self.quartiles],
            "peer": self.peer,
            "of_gemm": round(self.of_gemm, 3),
            **({"not_compiled": dict(self.not_compiled)} if self.not_compiled else {}),
        }


@dataclass(frozen=True)
class Comparison:
    """The contenders of one size, `ours` among them; `title` says the model's and the batches' shape.

    samples: a step. flops: model FLOPs of a step, the mean over the batches.
    """

    size: str
    title: str
    samples: int
    flops: float
    contenders: Mapping[str, Step]

    def result(self, options: Options) -> Result:
        """Compare; prints the table.

        Raises:
            SystemExit: the first losses differ.
        """
        peers = [name for name in self.contenders if not name.endswith(COMPILED)]
        losses = {name: self.contenders[name](0) for name in peers}
        torch.set_num_threads(options.threads or self._best_threads(peers))
        not_compiled = self._compile(losses)  # only now: what is compiled is for so many threads
        if max(losses.values()) - min(losses.values()) > SAME_LOSS:
            raise SystemExit(f"{self.size}: the first losses differ: {losses}")
        able = {name: self.contenders[name] for name in losses}
        for step in able.values():
            for number in range(
                1, options.batches
            ):  # every shape once: what is compiled for it is compiled now
                step(number)
        gemm = _best_product(DTYPES[options.precision])
        seconds = _measure({**able, WARM_UP: gemm.product, GEMM: gemm.step}, options.steps)
        of_gemm, _ = seconds.pop(GEMM), seconds.pop(WARM_UP)
        medians = {name: statistics.median(taken) for name, taken in seconds.items()}
        peer = min((name for name in medians if name != OURS), key=lambda name: medians[name])
        turns = [theirs / ours for theirs, ours in zip(seconds[peer], seconds[OURS], strict=True)]
        first, _, last = statistics.quantiles(turns, n=4, method="inclusive")
        rate = gemm.flops / statistics.median(of_gemm)
        result = Result(
            statistics.median(turns), (first, last), peer, self.flops / medians[OURS] / rate, not_compiled
        )
        self._print(options, seconds, losses, not_compiled)
        print(
            f"ratio {result.ratio:.2f} ({first:.2f} to {last:.2f}) against {peer}; ours: "
            f"{self.flops / medians[OURS] / 1e9:.0f} model GFLOP/s, {result.of_gemm:.1%} of gemm's {rate / 1e9:.0f} "
            f"(n = {gemm.size})",
            flush=True,
        )
        return result

    def _compile(self, losses: dict[str, float]) -> dict[str, str]:
        """Let the compiled peers take their first step, add its loss to `losses`; why one could not."""
        reasons: dict[str, str] = {}
        for name in (name for name in self.contenders if name.endswith(COMPILED)):
            try:
                losses[name] = self.contenders[name](0)
            except Exception as error:  # whatever the compiler raises
                reasons[name] = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        return reasons

    def _best_threads(self, names: Sequence[str]) -> int:
        """One thread or all cores, whichever is better just now for these peers."""
        peers = {name: self.contenders[name] for name in names if name != OURS}
        times: dict[int, float] = {}
        for threads in {1, usable_cores()}:
            torch.set_num_threads(threads)
            _measure(peers, steps=1)
            times[threads] = min(statistics.median(taken) for taken in _measure(peers, steps=3).values())
        return min(times, key=lambda threads: times[threads])

    def _print(
        self,
        options: Options,
        seconds: Mapping[str, Sequence[float]],
        losses: Mapping[str, float],
        not_compiled: Mapping[str, str],
    ) -> None:
        print(f"\n{self.size}: {self.title}, {options.precision}, {torch.get_num_threads()} threads")
        print(f"{'':40}{'samples/s':>12}{'ms/step':>10}{'least':>10}{'first loss':>12}")
        for name, taken in seconds.items():
            middle = statistics.median(taken)
            print(
                f"{name:40}{self.samples / middle:12.1f}{middle * 1e3:10.2f}{min(taken) * 1e3:10.2f}"
                f"{losses[name]:12.4f}"
            )
        for name, reason in not_compiled.items():
            print(f"{name:40}NOT COMPILED: {reason}")


@dataclass(frozen=True)
class Product:
    """A product of two square matrices with `size` rows.

    product: one, before those that are measured: contenders with many shapes push its kernel out of oneDNN's cache,
    and to make it again takes ten times as long as to run it. step: several, `flops` in all.
    """

    size: int
    flops: float
    product: Step
    step: Step


def _best_product(dtype: torch.dtype) -> Product:
    """That of GEMM_SIZES which is fastest now."""
    products = [_product(size, dtype) for size in GEMM_SIZES]
    seconds = _measure({str(product.size): product.step for product in products}, steps=5)
    return max(products, key=lambda product: product.flops / statistics.median(seconds[str(product.size)]))


def _product(size: int, dtype: torch.dtype) -> Product:
    left, right = (torch.randn(size, size).to(dtype) for _ in range(2))
    out = torch.empty(size, size, dtype=dtype)
    calls = 4 * max(1, (GEMM_SIZES[-1] // size) ** 3 // 8)

    def product(number: int) -> float:
        torch.mm(left, right, out=out)
        return 0.0

    def step(number: int) -> float:
        return sum(product(number) for _ in range(calls))

    return Product(size, 2.0 * size**3 * calls, product, step)


def read_options(
    description: str | None, words: Sequence[str] | None = None, **more: Mapping[str, Any]
) -> tuple[list[Options], argparse.Namespace]:
    """The options of the command line, those of each precision; `more` are added to them, in argparse's words."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__
    )
    parser.add_argument("--batches", type=int, default=8, help="different batches, trained on in turn")
    parser.add_argument("--steps", type=int, default=30, help="steps measured of each contender")
    parser.add_argument("--threads", type=int, help="of each contender (what is best for the peers)")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--sizes", nargs="+", default=[], help="only these, e.g. 4x256")
    parser.add_argument("--data", type=Path, help="keep the prepared data here, for another time")
    parser.add_argument("--without-compiled", action="store_true", help="leave out peers by torch.compile")
    for name, of_parser in more.items():
        parser.add_argument(f"--{name}", **of_parser)
    chosen = parser.parse_args(words)
    options = Options(
        chosen.batches, chosen.steps, chosen.threads, "", not chosen.without_compiled, tuple(chosen.sizes)
    )
    return [replace(options, precision=precision) for precision in chosen.precision], chosen


@contextmanager
def data_folder(kept: Path | None) -> Iterator[Path]:
    """Where the prepared data lie: a folder that is kept, or one that is not."""
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _measure(contenders: Mapping[str, Step], steps: int) -> dict[str, list[float]]:
    """Seconds of each contender's steps, taken in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(steps):
        for name, step in contenders.items():
            begin = time.perf_counter()
            step(number)
            seconds[name].append(time.perf_counter() - begin)
    return seconds
