"""The parameters of a case: which there are, and the one check that the controller and every rank share."""

from utils.parameters.resolution import KIND, TARGET, UNKNOWN, Configuration, Layer, resolve
from utils.parameters.settings import AUTO, KINDS, MeasurementSettings, TrainingSettings, precisions_of

__all__ = [
    "AUTO",
    "KIND",
    "KINDS",
    "TARGET",
    "UNKNOWN",
    "Configuration",
    "Layer",
    "MeasurementSettings",
    "TrainingSettings",
    "precisions_of",
    "resolve",
]
