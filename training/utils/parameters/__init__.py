"""The parameters of a case: which there are, and the one check that the controller and every rank share."""

from utils.parameters.resolution import KIND, TARGET, UNKNOWN, Configuration, Layer, resolve
from utils.parameters.search import SEARCH_SECONDS
from utils.parameters.settings import (
    AUTO,
    KINDS,
    PRECISIONS,
    ROUND,
    MeasurementSettings,
    TrainingSettings,
    precisions_of,
    seed_of_round,
)

__all__ = [
    "AUTO",
    "KIND",
    "KINDS",
    "PRECISIONS",
    "ROUND",
    "SEARCH_SECONDS",
    "TARGET",
    "UNKNOWN",
    "Configuration",
    "Layer",
    "MeasurementSettings",
    "TrainingSettings",
    "precisions_of",
    "resolve",
    "seed_of_round",
]
