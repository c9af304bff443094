"""The monitors of a node: what they sample, how often, and where it is written.

A source is one small class (`source.Source`); `frame` samples every source on a schedule of its own
and writes its log and `telemetry.jsonl`. `python3 -m utils.monitors --help` says how to run it.
"""

# How long, in seconds, an order to stop waits for what is slow; where nothing is, a monitor ends at once.
SAMPLES_GRACE_S = 4.0  # for a source to finish the sample that it is at, and to take its last one
INVENTORY_GRACE_S = 3.0  # for the inventory after that
STOP_GRACE_S = SAMPLES_GRACE_S + INVENTORY_GRACE_S
