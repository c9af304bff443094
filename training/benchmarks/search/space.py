"""What a search looks among, by the case's settings and its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.search.architecture import Architecture, Images
from benchmarks.search.hyperparameters import Space
from benchmarks.search.images import ImageFacts
from benchmarks.search.resnet import resnet50, small_resnet
from utils.errors import FlagPerfError

STARTS: Mapping[str, Callable[[Images, int, int], Architecture]] = {
    "resnet50": resnet50,
    "small_resnet": small_resnet,
}


def space_of(settings: Mapping[str, Any], facts: ImageFacts) -> Space:
    """The first architecture, its limits, and the batch sizes that may be tuned.

    Raises:
        FlagPerfError: a setting is nothing that can be searched among.
    """
    name, size = settings["start"], settings["image_size"]
    if name not in STARTS:
        raise _wrong(f"start is {name!r}", f"choose one of {', '.join(STARTS)}")
    if not 0 < size <= min(facts.height, facts.width):
        raise _wrong(f"image_size is {size}", f"the stored images are of {facts.height} x {facts.width}")
    start = STARTS[name](Images(size, size, facts.channels), facts.classes, settings["start_width"])
    if start.parameters > settings["most_parameters"]:
        raise _wrong(f"most_parameters is {settings['most_parameters']}", f"the start has {start.parameters}")
    return Space(start, tuple(settings["batch_sizes"]), settings["most_parameters"])


def _wrong(message: str, remedy: str) -> FlagPerfError:
    return FlagPerfError(f"{message}: nothing can be searched by that", where="configuration", remedy=remedy)
