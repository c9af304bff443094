"""A round of a report: everything that its part of the page shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from run_benchmarks.names import node_folder_name
from run_benchmarks.report.chart import chart
from run_benchmarks.report.curves import LONGEST_NAME, Curves
from run_benchmarks.report.round_charts import device_charts, devices_of, time_of, training_charts
from run_benchmarks.report.samples import read_samples
from run_benchmarks.report.tables import (
    FieldOfHosts,
    HeatMap,
    Part,
    bar,
    flat_fields,
    heat_maps,
    inventory,
    time_in_script,
)
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.rank_logs import RankLog
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.shortfall import advice
from run_benchmarks.results.summary import to_be_read
from utils.errors import FlagPerfError
from utils.figures import DEFINITIONS, Figure
from utils.node import rank_log_name
from utils.numbers import DIGITS, number_in, shown

if TYPE_CHECKING:
    from markupsafe import Markup

# Shown large, in this order, as far as a round has them.
LARGE = ("time_to_target", "acc", "p_train", "MFU", "energy", "e2e_time")
MOST_LARGE = 8
LONGEST_VALUE = 500  # characters of a parameter


@dataclass(frozen=True)
class Parameter:
    """A parameter of the case; `makes_open`: the vendor may not change it, and has."""

    name: str
    value: str
    makes_open: bool


@dataclass(frozen=True)
class RoundView:
    """A round as the template shows it. notes: what could not be read for it."""

    result: RoundResult
    curves: Sequence[Markup]
    devices: Sequence[Markup]
    heat_maps: Sequence[HeatMap]
    stages: Sequence[Part]
    script: Sequence[Part]
    inventory: Sequence[FieldOfHosts]
    provenance: Sequence[tuple[str, str]]
    parameters: Sequence[Parameter]
    phases: Sequence[str]
    notes: Sequence[str]

    @property
    def anchor(self) -> str:
        """Where it stands in the page."""
        return f"round-{self.result.case}-{self.result.round}"

    @property
    def large(self) -> list[tuple[str, Figure, str]]:
        """The figures that are shown large: name, figure, value."""
        figures = [(name, self.result.figures.get(name)) for name in LARGE]
        own = [
            (name, each)
            for name, each in self.result.figures.items()
            if name not in DEFINITIONS and each.unit != "1"
        ]
        there = [(name, each) for name, each in (*figures, *own) if each and each.value is not None]
        return [
            (name, each, shown(each.value, _digits(name))) for name, each in there if each.value is not None
        ][:8]

    @property
    def figures(self) -> list[tuple[str, Figure, str]]:
        """All of them, with the value as it is shown."""
        return [
            (
                name,
                each,
                "-"
                if each.value is None
                else shown(each.value, _digits(name)) + ("*" if each.caveat else ""),
            )
            for name, each in self.result.figures.items()
        ]

    @property
    def evidence(self) -> str:
        """The end of the log that tells of the failure."""
        failure = self.result.failure
        return to_be_read(failure.evidence) if failure and failure.evidence else ""

    @property
    def advice(self) -> str:
        """What to do where nothing failed and the target was not met."""
        return advice(self.result)

    @property
    def differences(self) -> list[FieldOfHosts]:
        """In what the hosts differ."""
        return [each for each in self.inventory if each.differs]


def round_view(
    result: RoundResult,
    folder: Path,
    case: PlannedCase | None,
    most_values: int,
    hide: Callable[[str], str] = str,
) -> RoundView:
    """What is shown of a round, by its result and the logs in its folder.

    case: as the plan has it, if there is one. most_values: in all of its charts of devices. hide: what takes the
    run's secrets out of a text.
    """
    labels = _labels(result.hosts)
    folders = [folder / node_folder_name(host, rank) for rank, host in enumerate(result.hosts)]
    curves, left_out = curves_in(result, folder, case)
    curves.metric = hide(curves.metric)
    notes = [left_out] if left_out else []
    nodes = read_samples(folders)
    notes += [
        f"telemetry of {label}: {node.doubt}" for label, node in zip(labels, nodes, strict=True) if node.doubt
    ]
    devices = devices_of(nodes, labels, hide)
    time = time_of(curves, devices, _round_s(result))
    origin = result.as_dict().get("provenance") or {}
    fields: Mapping[str, Any] = origin if isinstance(origin, Mapping) else {}
    link = f"{result.case} {result.round}"
    target = number_in(result.facts, "target")
    if target is None and case:
        target = number_in(case.parameters, f"target_{curves.metric}")
    return RoundView(
        result=result,
        curves=[chart(each) for each in training_charts(curves, time, target, link)] if time else [],
        devices=[chart(each) for each in device_charts(devices, nodes, time, link, most_values)]
        if time
        else [],
        heat_maps=list(heat_maps(devices, time, result)),
        stages=bar(result.times),
        script=bar(time_in_script(result)),
        inventory=inventory(labels, fields.get("hosts")),
        provenance=flat_fields(_origin(fields, labels)),
        parameters=_parameters(case, result, fields.get("configuration")),
        phases=list(dict.fromkeys(each.kind for each in time.phases)) if time else [],
        notes=[hide(note) for note in notes],
    )


def curves_in(result: RoundResult, folder: Path, case: PlannedCase | None) -> tuple[Curves, str]:
    """The curves of the round in a folder, and what of them could not be read."""
    quality = result.figures.get("acc")
    curves = Curves((quality.unit if quality and quality.value is not None else "")[:LONGEST_NAME])
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
    return [host if hosts.count(host) == 1 else f"{host} (node {rank})" for rank, host in enumerate(hosts)]


def _origin(fields: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """The provenance without what has a table of its own; what is by node rank has the nodes' names."""
    shown = {name: each for name, each in fields.items() if name not in ("hosts", "configuration")}
    monitors = shown.get("monitors")
    named = dict(zip(labels, monitors, strict=False)) if isinstance(monitors, (list, tuple)) else monitors
    return {**shown, "monitors": named}


def _parameters(case: PlannedCase | None, result: RoundResult, configuration: object) -> list[Parameter]:
    """As the round ran with them where it tells, else as the plan has them."""
    values = (
        configuration if isinstance(configuration, Mapping) and configuration else case and case.parameters
    )
    return [
        Parameter(str(name), _shown(value), name in result.rules.differs)
        for name, value in (values or {}).items()
    ]


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _digits(name: str) -> int:
    return DEFINITIONS[name].digits if name in DEFINITIONS else DIGITS
