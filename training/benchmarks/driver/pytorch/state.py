"""State on disk, by PyTorch: plain data and tensors, which are read without running any code."""

from __future__ import annotations

import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch.serialization import get_unsafe_globals_in_checkpoint

from utils.errors import FlagPerfError


def save(state: Any, target: Path | BytesIO) -> None:
    """Write `state`; a tensor on a device is copied to the host no sooner than it is written.

    Raises:
        OSError: the disk does not take it.
        FlagPerfError: it holds something else than plain data and tensors, which `load` would refuse.
    """
    try:
        if isinstance(target, Path):
            with target.open("wb") as stream:
                torch.save(state, stream)
        else:
            torch.save(state, target)
            target.seek(0)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise _not_plain(str(error)) from error
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):  # PyTorch's writer reports the disk's trouble as its own
            raise error.__context__ from error
        raise
    if strangers := get_unsafe_globals_in_checkpoint(target):
        raise _not_plain(", ".join(strangers))


def load(source: BytesIO) -> Any:
    """What `save` wrote, its tensors in the host's memory."""
    return torch.load(source, map_location="cpu", weights_only=True)


def _not_plain(what: str) -> FlagPerfError:
    return FlagPerfError(
        f"the state has what a checkpoint cannot hold: {what}",
        where="checkpoint",
        remedy="let the vendor's optimizer and scaler keep their state in plain data and tensors",
    )
