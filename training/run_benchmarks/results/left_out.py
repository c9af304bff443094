"""Telemetry without the readings of power that cannot be, and which these were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from utils.telemetry.plausible import PLAUSIBLE_W
from utils.telemetry.records import Scope, Telemetry
from utils.telemetry.series import ENERGY, POWER, Series


def without_implausible(telemetry: Telemetry) -> Telemetry:
    """The telemetry, whose columns lose what nothing of their source's kind draws that is on."""
    left_out, without_power = {}, {}
    for name, info in {info.source: info for info in telemetry.sources}.items():
        devices = telemetry.series(name)
        if info.reason or info.scope not in PLAUSIBLE_W:
            continue
        text = _taken_out(devices, info.scope)
        if text:
            left_out[name] = text
        if not any(series.has_read(POWER) or series.has_read(ENERGY) for series in devices.values()):
            errors = (series.error for series in devices.values() if series.error)
            without_power[name] = text or next(errors, "it has not told any power")
    return replace(telemetry, left_out=left_out, without_power=without_power)


def _taken_out(devices: Mapping[str, Series], scope: Scope) -> str:
    """Which readings of the devices were taken out, or nothing."""
    least, most = PLAUSIBLE_W[scope]
    taken = of_all = 0
    first = ""
    for device, series in devices.items():
        if POWER in series.columns:
            watts = np.frombuffer(series.columns[POWER])
            cannot_be = (watts >= 0) & ((watts < least) | (watts > most))
            if not first and cannot_be.any():
                first = f"{watts[cannot_be][0]:g} W" + (f" of {device}" if device else "")
            taken, of_all = taken + int(cannot_be.sum()), of_all + int((watts >= 0).sum())
            watts[cannot_be] = np.nan
    which = f"readings of power left out: {taken} of {of_all}, first {first}"
    return f"{which}; no {scope.value} that is on draws that" if taken else ""
