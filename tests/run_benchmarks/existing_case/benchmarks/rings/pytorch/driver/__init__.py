"""A driver package that a case brings: an earlier one, not FlagPerf's `benchmarks.driver`."""

from . import dist_pytorch as dist_pytorch
from .base import Driver as Driver
from .event import Event as Event
