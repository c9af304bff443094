"""The charts of a round: training over steps and time, and what was sampled on its nodes over the same time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from run_benchmarks.report.chart import TIME, Axis, Chart, Extent, Line, Phase
from run_benchmarks.report.curves import STEP_CURVES, Curves
from run_benchmarks.report.samples import DRAWN, DeviceSamples, NodeSamples, Values
from run_benchmarks.report.thinning import MOST_POINTS, Grid, extent_of, on_grid, thinned
from run_benchmarks.results.idle import LEAST_IDLE_S
from run_benchmarks.results.phases import Phase as PhaseName
from utils.telemetry.power_sources import WITH_POWER
from utils.telemetry.quantities import Quantity
from utils.telemetry.records import Scope

SCOPES: Mapping[Scope | None, str] = {
    Scope.MACHINE: "machine",
    Scope.CHASSIS: "chassis that machines share",
    Scope.ACCELERATOR: "accelerators",
    Scope.PACKAGE: "processor packages",
    Scope.HOST: "host",
    Scope.TASK: "training",
    None: "of an unknown kind",
}
LONGEST_DAYS = 30  # of a round whose length is not known
CLOCKS_DIFFER_S = 60.0  # so much later than the round's end a sample may say that it is
LEAST_POINTS, SHORTEST_INTERVAL_S, LONGEST_INTERVAL_S = 40, 0.05, 3600.0
THINNED = (
    "In each {step} of the axis the least and the greatest reading are drawn, in their order: no spike is lost. "
    "The table is of all readings."
)


@dataclass(frozen=True)
class Device:
    """What was sampled of a device: on which node, by which source; its name there."""

    host: str
    source: str
    label: str
    samples: DeviceSamples


@dataclass(frozen=True)
class RoundTime:
    """A round's time axis: 0 is at `origin_ms` (since the epoch), the end at `end_s`."""

    origin_ms: float
    end_s: float
    phases: Sequence[Phase] = ()

    def seconds(self, times_ms: Values) -> Values:
        """Places on the axis."""
        return (times_ms - self.origin_ms) / 1000

    @property
    def training(self) -> tuple[float, float]:
        """The part that was trained in; all of it where nothing says so."""
        return next(
            ((each.start, each.end) for each in self.phases if each.kind == "train"), (0.0, self.end_s)
        )


def devices_of(
    nodes: Sequence[NodeSamples], hosts: Sequence[str], hide: Callable[[str], str]
) -> list[Device]:
    """Every device that was sampled, the names without the run's secrets."""
    return [
        Device(host, source, f"{hide(source)} {hide(name)}".strip(), samples)
        for host, of_node in zip(hosts, nodes, strict=True)
        for (source, name), samples in of_node.devices.items()
    ]


def time_of(curves: Curves, devices: Sequence[Device], round_s: float | None) -> RoundTime | None:
    """From the first event or sample to the last one; None where there is neither.

    round_s: how long the controller saw it go on. Samples that lie outside of that are not believed.
    """
    starts = [each.samples.times[0] for each in devices if len(each.samples.times)]
    first = curves.first_ms if curves.first_ms is not None else min(starts, default=None)
    if first is None:
        return None
    round_ms = 1000 * (LONGEST_DAYS * 86_400 if round_s is None else round_s)
    last = curves.last_ms if curves.last_ms is not None else first
    ends = [first, last, first + 1.0]
    for device in devices:
        times = device.samples.times
        latest = first + round_ms + CLOCKS_DIFFER_S * 1000
        inside = times[(times >= min(first, last - round_ms)) & (times <= latest)]
        ends += [*inside[:1].tolist(), *inside[-1:].tolist()]
    origin = float(min(ends))
    phases = [*_idle(curves, devices, origin), *curves.phases(origin)]
    return RoundTime(origin, (max(ends) - origin) / 1000, phases)


def _idle(curves: Curves, devices: Sequence[Device], origin_ms: float) -> Iterator[Phase]:
    """Before the first rank, as far as power was read: see `results.idle`."""
    firsts = [
        each.samples.times[0]
        for each in devices
        if each.samples.scope in WITH_POWER and len(each.samples.times)
    ]
    end = curves.phase_events.ranks_start_ms
    start = max(origin_ms, min(firsts, default=math.inf))
    if end is not None and end - start >= LEAST_IDLE_S * 1000:
        yield Phase(PhaseName.IDLE.value, (start - origin_ms) / 1000, (end - origin_ms) / 1000)


def training_charts(curves: Curves, time: RoundTime, target: float | None, link: str) -> Iterator[Chart]:
    """A chart a curve that has values."""
    columns = {name: np.frombuffer(values) for name, values in curves.steps.items()}
    for key, title, unit in STEP_CURVES:
        values = columns[key]
        if len(values) and not np.isnan(values).all():
            yield _curve(title, unit, columns["time_ms"], columns["global_steps"], values, time, link)
    if curves.evaluations:
        times, steps, values = (np.array(column) for column in zip(*curves.evaluations, strict=True))
        if not np.isnan(values).all():
            levels = [("target", target)] if target is not None else []
            title = f"Quality: {curves.metric}"
            yield _curve(title, "", times, steps, values, time, link, levels)


def _curve(
    title: str,
    unit: str,
    times_ms: Values,
    steps: Values,
    values: Values,
    time: RoundTime,
    link: str,
    levels: Sequence[tuple[str, float]] = (),
) -> Chart:
    order = np.argsort(times_ms, kind="stable")
    times_ms, steps, values = times_ms[order], steps[order], values[order]
    kept = thinned(values)
    axes = [Axis("time", _rounded(time.seconds(times_ms[kept])), TIME)]
    if not np.isnan(steps).any() and (np.diff(steps) >= 0).all():
        axes.append(Axis("step", steps[kept].astype(int).tolist()))
    line = Line(title, _values(values[kept]), extent=extent_of(values))
    note = THINNED.format(step="part") if len(kept) < len(values) else ""
    return Chart(
        title,
        unit,
        axes,
        [line],
        time.phases,
        levels,
        link,
        note,
        end=time.end_s,
        is_from_zero=unit == "samples/s",
    )


def device_charts(devices: Sequence[Device], time: RoundTime, link: str, most_values: int) -> Iterator[Chart]:
    """A chart a quantity and kind of device. most_values: in all of the charts together."""
    lines = sum(len(of_kind) for _, _, of_kind in kinds(devices))
    most = max(LEAST_POINTS, min(MOST_POINTS, most_values // max(1, lines)))
    for quantity, scope, of_kind in kinds(devices):
        intervals = [_interval(each) for each in of_kind]
        grids = [Grid.over(time.end_s, interval, most) for interval in intervals]
        grid = min(grids, key=lambda each: each.pair_s)
        drawn = [_line(*each, quantity, time, grid) for each in zip(of_kind, grids, strict=True)]
        note = THINNED.format(step=f"{grid.pair_s:.3g} s") if grid.pair_s > 2 * min(intervals) else ""
        title = f"{quantity.title}, {SCOPES[scope]}"
        axes = [Axis("time", grid.places, TIME)]
        yield Chart(
            title, quantity.unit, axes, drawn, time.phases, link=link, note=note, end=time.end_s,
            is_from_zero=not quantity.may_be_negative,
        )  # fmt: skip


def kinds(devices: Sequence[Device]) -> Iterator[tuple[Quantity, Scope | None, list[Device]]]:
    """What was measured, of which kind of device, and those of which there is a value."""
    for quantity in DRAWN:
        for scope in SCOPES:
            of_kind = [each for each in devices if each.samples.scope is scope and _is_read(each, quantity)]
            if of_kind:
                yield quantity, scope, of_kind


def _is_read(device: Device, quantity: Quantity) -> bool:
    return not np.isnan(device.samples.columns.get(quantity.name, np.nan)).all()


def extent_in(
    device: Device, quantity: Quantity, time: RoundTime, start_s: float, end_s: float
) -> Extent | None:
    """What a device's readings in a part of the round come to."""
    seconds = time.seconds(device.samples.times)
    is_inside = (seconds >= start_s) & (seconds <= end_s)
    return extent_of(device.samples.columns[quantity.name][is_inside])


def _interval(device: Device) -> float:
    return min(max(device.samples.interval_s, SHORTEST_INTERVAL_S), LONGEST_INTERVAL_S)


def _line(device: Device, own: Grid, quantity: Quantity, time: RoundTime, shared: Grid) -> Line:
    """A line on the places that those of its chart share, drawn as coarsely as its own source is read."""
    seconds = time.seconds(device.samples.times)
    places = shared.filled(on_grid(seconds, device.samples.columns[quantity.name], own), own)
    return Line(device.label, places, device.host, extent=extent_in(device, quantity, time, 0.0, time.end_s))


def _rounded(seconds: Values) -> list[float]:
    return [round(value, 3) for value in seconds.tolist()]


def _values(values: Values) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
