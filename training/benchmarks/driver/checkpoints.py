"""A folder of checkpoints: written whole or not at all, the last two kept, the newest whole one found again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.driver.state_file import read_verified, write_state
from utils.checkpoints import CHECKPOINT_PATTERN, checkpoint_name
from utils.errors import FlagPerfError

KEPT = 2


class NotWrittenError(FlagPerfError):
    """The disk did not take a checkpoint: it is full, or may not be written to."""


def write_checkpoint(folder: Path, step: int, state: Mapping[str, Any]) -> Path:
    """Write `state` and remove what is older than it and the checkpoint before it; the file.

    Under its name a file is whole: it is written under another one, brought to the disk, and renamed. An
    older checkpoint is removed only after that; one of a higher step, which another run left, never.

    Raises:
        NotWrittenError: the disk does not take it.
        FlagPerfError: `state` holds what no checkpoint can hold.
    """
    path = folder / checkpoint_name(step)
    partial = folder / f".{path.name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _removed_on_error(partial), partial.open("wb") as stream:
            write_state(stream, state)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
        _bring_names_to_disk(folder)
        older = sorted(file for file in folder.glob(CHECKPOINT_PATTERN) if file.name < path.name)
        for old in older[: 1 - KEPT]:
            old.unlink()
    except OSError as error:
        raise NotWrittenError(
            f"the checkpoint of step {step} cannot be written: {error.strerror}",
            where=str(folder),
            remedy="free space or allow this user to write there, or set save_steps = None",
        ) from error
    return path


@contextmanager
def _removed_on_error(partial: Path) -> Iterator[None]:
    """Half a checkpoint is of no use to anybody, whatever ended its writing."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # what went wrong first is what is told
            partial.unlink(missing_ok=True)
        raise


def has_checkpoints(folder: Path) -> bool:
    """Whether any lies there, be it whole or not."""
    return next(folder.glob(CHECKPOINT_PATTERN), None) is not None


def read_newest(folder: Path) -> tuple[Path, bytearray, tuple[str, ...]]:
    """The newest checkpoint that is whole: its file, its bytes, and why each newer one was passed over.

    Raises:
        FlagPerfError: there is none.
    """
    skipped: list[str] = []
    for path in sorted(folder.glob(CHECKPOINT_PATTERN), reverse=True):
        try:
            return path, read_verified(path), tuple(skipped)
        except FlagPerfError as error:
            skipped.append(f"{path.name} {error.message}")
    raise FlagPerfError(
        f"there is no whole checkpoint: {'; '.join(skipped) or 'the folder has none'}",
        where=str(folder),
        remedy="name another run, or start anew",
    )


def refuse_other_task(then: Mapping[str, Any], now: Mapping[str, Any], file: Path) -> None:
    """A checkpoint goes on only as what it was: the loss curve must be that of one run.

    Raises:
        FlagPerfError: what was trained then differs from what is to be trained now; every name is told.
    """
    names = sorted({*then, *now})
    different = [
        f"{name} = {then.get(name)!r} (now {now.get(name)!r})"
        for name in names
        if then.get(name) != now.get(name)
    ]
    if different:
        raise FlagPerfError(
            f"the checkpoint is of another task: {', '.join(different)}",
            where=str(file),
            remedy="set these as they were, or start anew",
        )


def _bring_names_to_disk(folder: Path) -> None:
    """A renamed file survives a loss of power only once its folder is on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
