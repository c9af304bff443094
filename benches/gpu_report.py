"""The tables of benches/gpu.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_rounds import Round

NOT_MEASURED = "-"
NOTE = (
    "Random weights and random tokens of the tasks' lengths (benches/made_data.py): throughput, not quality. "
    "MFU counts no padding; `of gemm` is the model's FLOP/s over what `gemm` reaches in that dtype in the same run. "
    "p_train is of all steps, the first included; `steady` is the median of the logged intervals."
)


@dataclass(frozen=True)
class Table:
    """A heading, names of columns, rows of cells."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Aligned, for a terminal."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.columns))]
        cells = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
        ]
        return "\n".join([self.heading, *(line.rstrip() for line in cells)])

    def markdown(self) -> str:
        """As docs/measured.md has them."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join([f"### {self.heading}", "", *("| " + " | ".join(line) + " |" for line in lines)])


def gemm_rates(gemm: Round | None) -> dict[str, float]:
    """FLOP/s by dtype; of int8 OP/s."""
    operations = gemm.facts.get("figures", {}) if gemm else {}
    return {
        name.removeprefix("gemm_"): figure["value"] * 1e12
        for name, figure in operations.items()
        if name.startswith("gemm_") and not name.endswith("_spread")
    }


def gemm_table(gemm: Round, peaks: Mapping[str, float | None]) -> Table:
    """A row a dtype."""
    figures = gemm.facts["figures"]
    rows = []
    for dtype, rate in gemm_rates(gemm).items():
        peak = peaks.get(dtype)
        figure = figures[f"gemm_{dtype}"]
        spread = figures[f"gemm_{dtype}_spread"]["value"]
        part = NOT_MEASURED if not peak else f"{rate / peak:.3f}"
        rows.append([dtype, f"{rate / 1e12:.4g}", figure["unit"], part, f"{spread:.2%}"])
    return Table("Matrix multiplication", ["dtype", "rate", "unit", "of peak", "spread"], rows)


def training_row(name: str, trained: Round, gemm: Mapping[str, float]) -> list[str]:
    """The figures of a case."""
    figure, config = trained.figures.get, trained.config
    return [
        name,
        str(config["precision"]),
        f"{config['train_batch_size']} x {config['gradient_accumulation_steps']}",
        _number(figure("p_train"), ".1f"),
        _number(trained.steady, ".1f"),
        _number(figure("tokens_per_second"), ".0f"),
        _number(figure("MFU"), ".3f"),
        _number(part_of_gemm(trained, gemm), ".3f"),
        _number(figure("mem"), ".1f"),
        _number(figure("mem_reserved"), ".1f"),
        _number(figure("avg_power"), ".0f"),
        _number(figure("energy"), ".0f"),
    ]


TRAINING_COLUMNS = (
    "case", "precision", "batch x accumulation", "p_train, samples/s", "steady, samples/s", "tokens/s", "MFU",
    "of gemm", "memory, GiB", "reserved, GiB", "power, W", "energy, J",
)  # fmt: skip
NUMERICS_COLUMNS = ("case", "precision", "loss", "norm", "gradients", "within tolerance")


def part_of_gemm(trained: Round, gemm: Mapping[str, float]) -> float | None:
    """Model FLOP/s over what `gemm` reaches in the same precision; None where either is not measured."""
    flops, rate = trained.facts.get("model_flops_per_sample"), trained.figures.get("p_train")
    reached = gemm.get(str(trained.config.get("precision")))
    return float(flops) * rate / reached if flops and rate and reached else None


def numerics_rows(name: str, compared: Mapping[str, Any]) -> list[list[str]]:
    """A row a precision: each difference from the CPU, and what is allowed."""
    rows = []
    for precision, row in compared["precisions"].items():
        cells = [
            f"{_number(row['differences'][part], '.1e')} (<= {_number(row['tolerance'][part], '.0e')})"
            for part in ("loss", "norm", "gradients")
        ]
        rows.append([name, precision, *cells, row.get("error") or ("yes" if row["within"] else "NO")])
    return rows


def _number(value: float | None, form: str) -> str:
    return NOT_MEASURED if value is None else format(value, form)
