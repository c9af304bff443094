"""A round of a report: everything that its part of the page shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from run_benchmarks.names import node_folder_name
from run_benchmarks.report.chart import Chart, chart
from run_benchmarks.report.curves import LONGEST_NAME, Curves
from run_benchmarks.report.power_tables import power_table, reconciliation_rows
from run_benchmarks.report.round_charts import device_charts, devices_of, time_of, training_charts
from run_benchmarks.report.samples import NodeSamples, read_samples
from run_benchmarks.report.search.section import log_of, search_view
from run_benchmarks.report.tables import bar, flat_fields, heat_maps, inventory, time_in_script
from run_benchmarks.report.trust_tables import disturbance_rows, monitor_rows, straggler_rows
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.rank_logs import RankLog
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.search.of_round import bounds_of
from run_benchmarks.results.shortfall import advice
from run_benchmarks.results.summary import to_be_read
from run_benchmarks.results.tables import job_energy
from utils.errors import FlagPerfError
from utils.figures import DEFINITIONS, Figure
from utils.node import rank_log_name
from utils.numbers import DIGITS, number_in, shown
from utils.text_files import shortened

# Shown large, in this order, as far as a round has them.
LARGE = (
    "score",
    "accuracy",
    "regulated_score",
    "waiting",
    "time_to_target",
    "acc",
    "p_train",
    "MFU",
    "energy",
    "e2e_time",
)
MOST_LARGE = 8
LONGEST_VALUE = 500  # characters of a parameter


def round_view(
    result: RoundResult,
    folder: Path | None,
    case: PlannedCase | None,
    most_values: int,
    hide: Callable[[str], str],
) -> dict[str, Any]:
    """What the template shows of a round, by its result and the logs in its folder, if there is one.

    case: as the plan has it, if there is one. most_values: in all of its charts of devices. hide: what takes the
    run's secrets out of a text.
    """
    labels = _labels(result.hosts)
    nodes = [NodeSamples()] * len(labels)
    if folder:
        folders = [folder / name for name in map(node_folder_name, result.hosts, count())]
        nodes = read_samples(folders, result.clocks)
    curves, left_out = curves_in(result, folder, case)
    search = log_of(result, _node_folder(result, folder) if folder else None)
    for event in bounds_of(search) if search else ():  # which may have begun in an earlier run
        curves.take(replace(event, time_ms=max(event.time_ms, curves.first_ms or 0)))
    curves.metric = hide(curves.metric)
    devices = devices_of(nodes, labels, hide)
    time = time_of(curves, devices, _round_s(result))
    charts: list[Chart] = []
    if time:
        link = f"{result.case} {result.round}"
        charts += training_charts(curves, time, _target(result, case, curves.metric), link)
        charts += device_charts(devices, time, link, most_values)
    doubts = [
        f"telemetry of {label}: {node.doubt}" for label, node in zip(labels, nodes, strict=True) if node.doubt
    ]
    return {
        "result": result,
        "anchor": f"round-{result.case}-{result.round}",
        "search": search_view(result, search, hide) if search else None,
        "charts": list(map(chart, charts)),
        "phases": list(dict.fromkeys(each.kind for each in time.phases)) if time else [],
        "heat_maps": list(heat_maps(devices, time, result)),
        "power": power_table(result, labels),
        "job_energy": job_energy(result),
        "reconciliation": reconciliation_rows(result, labels),
        "disturbances": disturbance_rows(result, labels),
        "stragglers": straggler_rows(result, labels),
        "monitors": monitor_rows(result, labels),
        "stages": bar(result.times),
        "script": bar(time_in_script(result)),
        "notes": [*result.notes, *map(hide, filter(None, [left_out, *doubts]))],
        **_of_result(result),
        **_origin(result, case, labels),
    }


def _of_result(result: RoundResult) -> dict[str, Any]:
    """What the round's result alone says. large: the names of the figures that are shown so."""
    figures = {name: (each, _text(name, each)) for name, each in result.figures.items()}
    own = [name for name, each in result.figures.items() if name not in DEFINITIONS and each.unit != "1"]
    names = dict.fromkeys((*LARGE, *own))
    there = [name for name in names if name in figures and figures[name][0].value is not None]
    evidence = result.failure.evidence if result.failure else ""
    return {
        "figures": figures,
        "large": there[:MOST_LARGE],
        "evidence": to_be_read(evidence) if evidence else "",
        "advice": advice(result),
    }


def _origin(result: RoundResult, case: PlannedCase | None, labels: Sequence[str]) -> dict[str, Any]:
    """Where the round comes from; its parameters as it ran with them where it tells, else as the plan has them."""
    origin = result.as_dict().get("provenance") or {}
    if isinstance(origin.get("monitors"), (list, tuple)):  # by node rank
        origin["monitors"] = dict(zip(labels, origin["monitors"], strict=False))
    configuration = origin.pop("configuration", None) or (case.parameters if case else {})
    return {
        "inventory": inventory(labels, origin.pop("hosts", None)),
        "provenance": flat_fields(origin),
        "parameters": {str(name): _shown(value) for name, value in configuration.items()},
    }


def _target(result: RoundResult, case: PlannedCase | None, metric: str) -> float | None:
    target = number_in(result.facts, "target")
    return number_in(case.parameters, f"target_{metric}") if target is None and case else target


def curves_in(result: RoundResult, folder: Path | None, case: PlannedCase | None) -> tuple[Curves, str]:
    """The curves of the round in a folder, if there is one, and what of them could not be read."""
    quality = result.figures.get("acc")
    curves = Curves((quality.unit if quality and quality.value is not None else "")[:LONGEST_NAME])
    if folder is None:
        return curves, ""
    path, own_script = _node_folder(result, folder) / rank_log_name(0), not (case and case.uses_driver)
    log = RankLog(0, path, own_script=own_script, every_step=True)
    try:
        for _, event in log.events():
            curves.take(event)
    except FlagPerfError as error:
        return curves, str(error)
    return curves, "; ".join(filter(None, (curves.left_out, *log.too_many())))


def _node_folder(result: RoundResult, folder: Path) -> Path:
    """Where global rank 0's log lies."""
    return folder / node_folder_name(result.hosts[0] if result.hosts else "", 0)


def _round_s(result: RoundResult) -> float | None:
    figure = result.figures.get("round_time")
    return figure.value if figure else None


def _labels(hosts: Sequence[str]) -> list[str]:
    """A name for each node: its host, and its rank where a host has several."""
    counts = Counter(hosts)
    return [host if counts[host] == 1 else f"{host} (node {rank})" for rank, host in enumerate(hosts)]


def _shown(value: object) -> str:
    return shortened(value if isinstance(value, str) else json.dumps(value, default=str), LONGEST_VALUE)


def _text(name: str, figure: Figure) -> str:
    digits = DEFINITIONS[name].digits if name in DEFINITIONS else DIGITS
    return "-" if figure.value is None else shown(figure.value, digits) + ("*" if figure.caveat else "")
