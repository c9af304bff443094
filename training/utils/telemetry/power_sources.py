"""Which sources of a node tell of power, and which of them is nearest to the whole machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from utils.telemetry.records import Scope, Telemetry
from utils.text_files import shortened

if TYPE_CHECKING:
    from utils.telemetry.series import Series

DEFAULT_INTERVAL_S = 1.0
MOST_NAMED, LONGEST_NAMES = 64, 300  # of a source's devices, and characters
# From the whole machine to the least part of it.
POWER_SCOPES = (Scope.MACHINE, Scope.ACCELERATOR, Scope.PACKAGE)
WITH_POWER = frozenset({*POWER_SCOPES, Scope.CHASSIS})  # also where it is nobody's own


def metered(carriers: Mapping[str, str | None]) -> list[str]:
    """Of a source's devices, each with who carries its power, those whose power no other one of them carries."""
    carrying = {device for device, carrier in carriers.items() if carrier is None}
    return [device for device, carrier in carriers.items() if carrier not in carrying]


def metered_series(telemetry: Telemetry, source: str) -> Mapping[str, Series]:
    """The devices of the source by whose readings its power is reckoned, with these."""
    devices = telemetry.series(source)
    names = metered({device: series.carrier for device, series in devices.items()})
    return {device: devices[device] for device in names}


def best_power_source(telemetry: Telemetry) -> str | None:
    """The source nearest to the whole machine: machine, else accelerators, else packages.

    Of several that have told any power one that the controller reads, for no task can write that, else the quickest.
    """
    for scope in POWER_SCOPES:
        if sources := [name for name in telemetry.with_scope(scope) if name not in telemetry.without_power]:
            return min(
                sources, key=lambda name: (name not in telemetry.of_controller, interval_ms(telemetry, name))
            )
    return None


def described(telemetry: Telemetry, source: str) -> str:
    """What a source measures: its name, its scope, and its devices, which are none for a host as a whole."""
    info = telemetry.info(source)
    names = list(filter(None, telemetry.series(source)))
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    devices = shortened(", ".join([*names[:MOST_NAMED], *more]), LONGEST_NAMES)
    scope = info.scope.value if info else "unknown scope"
    return f"{source} ({scope}: {devices})" if devices else f"{source} ({scope})"


def interval_ms(telemetry: Telemetry, source: str) -> float:
    """How often the source is to be read."""
    info = telemetry.info(source)
    return (info.interval_s if info else DEFAULT_INTERVAL_S) * 1000
