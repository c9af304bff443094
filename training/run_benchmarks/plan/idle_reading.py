"""IDLE_READING of test_conf.py: how long monitors sample the hosts of a round before its ranks start."""

from __future__ import annotations

from run_benchmarks.plan.monitors import intervals_of
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.plan.vendor_record import Vendor
from utils.monitors.accelerators import monitor_file

# Chips that have just worked need some seconds to fall to their idle power, and a mean wants some samples.
IDLE_READING_S = 5.0


def idle_reading_s(run: RunSettings, vendor: Vendor) -> float:
    """How long, in seconds; by default not at all without chips: most hosts have no other source of power either."""
    sources = intervals_of(run.monitors, run.monitor_interval_s)
    if run.idle_reading_s is not None:
        return run.idle_reading_s if sources else 0.0
    return IDLE_READING_S if "accelerators" in sources and monitor_file(vendor.folder).exists() else 0.0
