"""The monitors of a node: what they sample, how often, and where it is written.

A source is one small class (`source.Source`); `frame` samples every source on a schedule of its own
and writes its log and `telemetry.jsonl`. `python3 -m utils.monitors --help` says how to run it.
"""
