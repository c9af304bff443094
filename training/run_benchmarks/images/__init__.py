"""Image stores: how a host comes to an image. `open_image_store` is the way in."""

from __future__ import annotations

from run_benchmarks.images.store import ImageStore
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.runtimes.engine import engine_of


def open_image_store(run: RunSettings) -> ImageStore | None:
    """The image store of the runtime that the settings name; None where units need no images."""
    return ImageStore(engine_of(run.container_engine)) if run.uses_images else None
