"""Telemetry: what the monitors write on every node, and the figures that are computed from it.

`records` holds the values, `lines` their form on disk, and `windows` the figures over a span of wall-clock time.
"""
