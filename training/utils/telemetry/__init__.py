"""Telemetry: what the monitors write on every node.

`records` holds the values, `lines` their form on disk. Vendors' monitors import `Sample` from here.
"""

from utils.telemetry.records import Sample

__all__ = ["Sample"]
