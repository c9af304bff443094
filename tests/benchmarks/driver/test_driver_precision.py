"""`precision = "auto"`: what the ranks settle on, and that it is what they then compute in and report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.precision import choice, verdict_of
from tests.benchmarks.driver.ranks import arguments, launch_ranks, run_here, values_of
from tests.utils.test_processor import CASCADE_LAKE, GRAVITON_3, SAPPHIRE_RAPIDS, ZEN_4
from utils.events import Event
from utils.processor import CPUINFO, parse_cpuinfo


@pytest.mark.parametrize(
    ("hosts", "precision", "reason"),
    [
        ([SAPPHIRE_RAPIDS], "bf16", "natively (amx_bf16, avx512_bf16)"),
        ([SAPPHIRE_RAPIDS, ZEN_4], "bf16", "natively (avx512_bf16)"),
        ([SAPPHIRE_RAPIDS, GRAVITON_3], "bf16", "natively (amx_bf16, avx512_bf16, bf16)"),
        ([CASCADE_LAKE], "fp32", "rank 0, on "),
        ([ZEN_4, CASCADE_LAKE], "fp32", "rank 1, on "),
        ([ZEN_4, CASCADE_LAKE], "fp32", "2.80GHz has none of amx_bf16, avx512_bf16"),
    ],
)
def test_all_ranks_take_what_each_of_them_computes_natively(
    hosts: list[str], precision: str, reason: str
) -> None:
    settled = choice([verdict_of(cpuinfo) for cpuinfo in hosts])
    assert settled[0] == precision
    assert reason in settled[1]


def test_two_ranks_compute_in_what_they_settled_on_and_say_so(
    data_dir: Path, tmp_path: Path, warm_python: str
) -> None:
    native = parse_cpuinfo(Path(CPUINFO).read_text()).native("bf16")
    events = _two_ranks(tmp_path / "auto", data_dir, "auto", warm_python)
    (init,), (finished,) = values_of(events, "INIT_END"), values_of(events, "FINISHED")
    expected = "bf16" if native else "fp32"
    for value in (init, finished):
        assert value["precision"] == expected
        assert ("natively" in value["precision_reason"]) == bool(native)
    named = _two_ranks(tmp_path / "named", data_dir, expected, warm_python)
    assert values_of(named, "INIT_END")[0]["precision_reason"] is None
    assert _losses(events) == pytest.approx(_losses(named), rel=1e-4)


def _two_ranks(folder: Path, data_dir: Path, precision: str, python: str) -> list[Event]:
    """Rank 0's events."""
    code, (events, _) = launch_ranks(
        folder / "logs", arguments(folder, data_dir, max_steps=4, precision=precision), 2, python
    )
    assert code == 0
    return events


def _losses(events: list[Event]) -> list[float]:
    return [value["loss"] for value in values_of(events, "STEP_END")]


def test_the_engine_computes_in_fp32_where_bf16_would_be_emulated(
    data_dir: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(CASCADE_LAKE)
    monkeypatch.setattr("benchmarks.driver.precision.CPUINFO", str(cpuinfo))
    auto = run_here(capsys, arguments(tmp_path, data_dir, max_steps=4, precision="auto"))
    assert values_of(auto, "FINISHED")[0]["precision"] == "fp32"
    full = run_here(capsys, arguments(tmp_path, data_dir, max_steps=4, precision="fp32"))
    assert _losses(auto) == _losses(full)
