"""Images: how a host comes to one. `open_image_store` and `open_image_files` are the ways in."""

from __future__ import annotations

from run_benchmarks.images.files import ImageFiles, Maker, sif, squash_fs
from run_benchmarks.images.store import ImageStore
from run_benchmarks.names import work_folder
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.runtimes.apptainer import ApptainerRuntime
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.runtimes.image_file import ImageFileRuntime
from run_benchmarks.runtimes.pyxis import PyxisRuntime

FORMS: dict[str, tuple[type[ImageFileRuntime], Maker]] = {
    ApptainerRuntime.name: (ApptainerRuntime, sif),
    PyxisRuntime.name: (PyxisRuntime, squash_fs),
}


def open_image_store(run: RunSettings) -> ImageStore | None:
    """The image store of the hosts' engine; None where units need no engine."""
    return ImageStore(engine_of(run.container_engine)) if run.uses_engine else None


def open_image_files(run: RunSettings) -> ImageFiles | None:
    """The images of a runtime whose images are files; None for any other."""
    if run.runtime not in FORMS:
        return None
    runtime, maker = FORMS[run.runtime]
    return ImageFiles(work_folder(run), runtime.SUFFIX, maker, ImageStore(engine_of(run.container_engine)))
