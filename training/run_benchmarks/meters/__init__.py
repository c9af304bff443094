"""Meters outside the nodes: this machine reads them by the frame that the nodes' own monitors have.

A kind of meter is a class in a file of this folder, a scheme in `plan/meters.py`, an interval in `plan/monitors.py`
and a line here.
"""

from collections.abc import Callable, Mapping

from run_benchmarks.meters.base import MeterSource
from run_benchmarks.meters.ipmi import IpmiMeter
from run_benchmarks.meters.redfish import RedfishMeter
from run_benchmarks.plan.meters import Meter

_KINDS: Mapping[str, Callable[[Meter], MeterSource]] = {"redfish": RedfishMeter, "ipmi": IpmiMeter}


def open_meter(meter: Meter) -> MeterSource:
    """What reads the meter; it is asked for nothing yet."""
    return _KINDS[meter.kind](meter)
