"""The controller: runs on one machine, imports no training framework."""

BANNER = "FlagPerf: how fast, how efficiently and how reliably chips train models to a stated quality"
