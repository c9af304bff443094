"""What a node draws now, by its telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.telemetry.power_sources import best_power_source, metered
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry, samples_of
from utils.telemetry.series import carrier_of

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick

# A node has a few sources and a few devices; who names more is not shown with them.
MOST_SOURCES, MOST_DEVICES = 64, 1024


@dataclass(frozen=True)
class Power:
    """What a node draws now, in W, and what of the node that speaks of."""

    watts: float
    scope: Scope


class PowerMeter:
    """The power of a node from its telemetry, record by record: of the source that the figures will use."""

    def __init__(self) -> None:
        self._sources: dict[str, SourceInfo] = {}  # the latest word on each
        self._best: SourceInfo | None = None
        self._samples: dict[str, Sample] = {}  # the newest, by device

    def take(self, record: AnyTick | SourceInfo) -> Power | None:
        """All devices of the source together, when a tick of it comes in and each has one, or is counted with one."""
        if isinstance(record, SourceInfo):
            if len(self._sources) < MOST_SOURCES:
                self._sources[record.source] = record
            telemetry = Telemetry("", tuple(self._sources.values()))
            name = best_power_source(telemetry)
            self._best = telemetry.info(name) if name else None
            self._samples.clear()
            return None
        if self._best is None or record.source != self._best.source or len(self._samples) > MOST_DEVICES:
            return None
        self._samples |= {sample.device: sample for sample in samples_of(record)}
        devices = metered({device: carrier_of(sample) for device, sample in self._samples.items()})
        draws = [self._samples[device].power_w for device in devices]
        watts = [draw for draw in draws if draw is not None and draw >= 0]
        return Power(sum(watts), self._best.scope) if len(watts) == len(draws) else None
