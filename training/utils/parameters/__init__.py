"""The parameters of a case: which there are, and the one check that the controller and every rank share."""

from utils.parameters.resolution import KIND, UNKNOWN, Configuration, Layer, resolve
from utils.parameters.settings import KINDS, MeasurementSettings, TrainingSettings

__all__ = [
    "KIND",
    "KINDS",
    "UNKNOWN",
    "Configuration",
    "Layer",
    "MeasurementSettings",
    "TrainingSettings",
    "resolve",
]
