"""A round's power as MLPerf's power logs have it: `power/result_<i>/node_<rank>.txt`, where it was measured.

MLPerf asks for the power of whole nodes; each line says of which part of a machine it speaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from run_benchmarks.exports.chosen import Round
from run_benchmarks.exports.mlperf_log import Line, written
from run_benchmarks.results.clocks import placements
from run_benchmarks.results.energy import power_sums
from run_benchmarks.results.power import training_window
from run_benchmarks.results.telemetry_file import read_power
from utils.errors import FlagPerfError
from utils.events import Event
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.power_sources import best_power_source, described
from utils.telemetry.records import Telemetry, Window

MOST_READINGS = 500_000  # of a node: each is a line and a record; a day of ten a second has more


def write_power(each: Round, events: Sequence[Event], folder: Path) -> str:
    """Write a file for each node into the new `folder`; why there is none where a node has no readings of power."""
    window = training_window(events)
    if isinstance(window, str):
        return f"no power: {window}"
    texts = []
    folders = list(each.node_folders())
    for node, placement in zip(folders, placements(each.result.clocks, len(folders)), strict=True):
        try:
            lines = _lines(read_power(node / TELEMETRY_FILE, placement), window)
        except FlagPerfError as error:
            return f"no power: {node.name}: {error.message}"
        if not lines:
            return f"no power: {node.name} has no readings of it, in W, while it trained"
        texts.append(written(lines))
    folder.mkdir(parents=True)
    for rank, text in enumerate(texts):
        (folder / f"node_{rank}.txt").write_text(text, encoding="utf-8")
    return ""


def _lines(telemetry: Telemetry, window: Window) -> list[Line]:
    """The readings in the window, in W; none where the node's best source of power does not read it."""
    source = best_power_source(telemetry)
    sums = power_sums(telemetry, source) if source else {}
    inside = {at: watts for at, watts in sorted(sums.items()) if window.start_ms <= at <= window.end_ms}
    if not source or not inside:
        return []
    if len(inside) > MOST_READINGS:
        message = f"has {len(inside)} readings of power, more than the {MOST_READINGS} that are exported"
        raise FlagPerfError(message, where=telemetry.path)
    about = {"source": described(telemetry, source)}
    return [
        Line(window.start_ms, "event", "power_measurement_start", None, about),
        *(Line(at, "event", "power_reading", watts, about) for at, watts in inside.items()),
        Line(window.end_ms, "event", "power_measurement_stop", None, about),
    ]
