"""Figures of chips: within what chips can have, in agreement with each other, and each with a source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from run_benchmarks.conformance.records import CheckResult, failed
from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.vendor_record import Chip, Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE

# Field -> what no chip is below, what none is above, and the unit: what is outside is in another unit.
BOUNDS: Mapping[str, tuple[float, float, str]] = {
    "memory_gib": (1, 2048, "GiB"),
    "power_w": (10, 20_000, "W"),
    "memory_bandwidth": (1e10, 1e14, "bytes/s"),
    "link_bandwidth": (1e9, 1e14, "bytes/s"),
    "peak_flops": (1e10, 1e17, "FLOP/s"),
}
_SAYS_NOTHING = re.compile(
    r"\W*(\w?|(to ?do|fix ?me|tbd|xxx+|n/?a|none|unknown)\b.*"
    r"|(is )?(needed|required|necessary)|(the |its )?(data ?sheet|documentation|docs|web ?site|vendor))\W*",
    re.IGNORECASE,
)


def says_nothing(text: str) -> bool:
    """Whether a source or a reason is a place that nobody has filled in."""
    return _SAYS_NOTHING.fullmatch(text) is not None


def figures_trouble(vendor: Vendor) -> Iterator[CheckResult]:
    """Figures that cannot be, contradict each other, or cannot be looked up."""
    file = read_config_file(vendor.folder / VENDOR_FILE, Problems(), "")
    for chip in vendor.chips.values():
        for field, detail, remedy in (*_implausible(chip), *_of_sources(chip)):
            where = file.where("CHIPS", chip.name, field) if file else vendor.folder / VENDOR_FILE
            yield failed(detail, where, remedy)


def values_of(chip: Chip, field: str) -> dict[str, float]:
    """What a figure says, by `chip`, `host` or dtype, or under an empty name; nothing where nobody knows."""
    value = getattr(chip, field)
    return {} if value is None else dict(value) if isinstance(value, Mapping) else {"": value}


def _implausible(chip: Chip) -> Iterator[tuple[str, str, str]]:
    """Field, what is wrong, what to do."""
    for field, (least, most, unit) in BOUNDS.items():
        for key, value in values_of(chip, field).items():
            if not least <= value <= most:
                name = f"{field}[{key!r}]" if key else field
                detail = (
                    f"{name} of {chip.name} is {value:g} {unit}, and no chip has that: {least:g} to {most:g}"
                )
                yield field, detail, f"write it in {unit}"
    peaks = chip.peak_flops
    if peaks.get("fp32", 0) > peaks.get("bf16", float("inf")):
        detail = f"peak_flops of {chip.name}: fp32 ({peaks['fp32']:g}) is above bf16 ({peaks['bf16']:g})"
        yield "peak_flops", detail, "correct one of the two; of matrices in TF32 the key is tf32"


def _of_sources(chip: Chip) -> Iterator[tuple[str, str, str]]:
    """Field, what is wrong, what to do."""
    for field in BOUNDS:
        if values_of(chip, field) and not (chip.source.get(field) or chip.source.get("")):
            remedy = (
                f'write into "source" of {chip.name} where {field} comes from; None where nobody knows it'
            )
            yield field, f"{field} of {chip.name} has no source", remedy
    for field, text in chip.source.items():
        if text and says_nothing(text):
            detail = (
                f"the source of {field or 'the figures'} of {chip.name} is {text!r}, where nobody can look"
            )
            yield "source", detail, "write the document and its table; None for a figure that nobody knows"


def peak_trouble(chip: Chip, rows: str, readme: Path) -> Iterator[CheckResult]:
    """A bf16 peak that the README's rows of the chip say otherwise: of all numbers there, none is it."""
    peak = chip.peak_flops.get("bf16")
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", rows)]
    if peak and rows and not any(abs(number * 1e12 / peak - 1) < 0.01 for number in numbers):
        detail = f"its row of `{chip.name}` does not say the bf16 peak that {VENDOR_FILE} has, {peak / 1e12:g} TFLOP/s"
        yield failed(detail, readme, "correct the one that its source does not say")
