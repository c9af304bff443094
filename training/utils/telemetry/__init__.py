"""Telemetry: what the monitors write on every node, and the figures that are computed from it.

`records` holds the values, `lines` their form on disk, and `windows` the figures over a span of wall-clock
time. Vendors' monitors import `Sample` from here.
"""

from utils.telemetry.records import Sample

__all__ = ["Sample"]
