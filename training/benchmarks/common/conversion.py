"""Convert a checkpoint that others wrote into the safetensors file that a case begins from: once, at preparation."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from benchmarks.common.arrays import Array
from benchmarks.common.initial_weights import CONFIG, converted_name
from benchmarks.common.preparation.recipe import fingerprints
from utils.errors import FlagPerfError

SOURCES, NAMES = "converted_from", "original_names"  # metadata of the converted file


@dataclass(frozen=True)
class Original:
    """A checkpoint as it was written.

    Attributes:
        files: all that was read.
        tensors: by the names that the case knows, floating-point ones as float32.
        names: what each of them is called in the files.
        config: the configuration of the model that stands beside them, as transformers write it.
    """

    files: tuple[Path, ...]
    tensors: Mapping[str, Array]
    names: Mapping[str, str]
    config: Mapping[str, Any] = field(default_factory=dict)


def convert(source: Path, target: Path | None, read: Callable[[Path], Original]) -> Path:
    """Write the checkpoint `source` as a safetensors file and return its path.

    Args:
        source: what `read` takes: a file, a folder, the prefix of several files.
        target: None: beside the source, with the ending `.safetensors`.
        read: reads it; raises FlagPerfError where it cannot.

    Raises:
        FlagPerfError: the source cannot be read, or the target is there and was made from something else.
    """
    target = target or source.with_name(converted_name(source))
    original = read(source)
    sources = json.dumps(fingerprints(original.files, workers=1))
    if os.path.lexists(target):
        _check_made_from(target, sources)
        return target
    metadata = {"format": "pt", SOURCES: sources, NAMES: json.dumps(original.names, sort_keys=True)}
    if original.config:
        metadata[CONFIG] = json.dumps(original.config, sort_keys=True)
    _write(target, original.tensors, metadata)
    return target


def _check_made_from(target: Path, sources: str) -> None:
    try:
        with safe_open(target, framework="np") as file:
            metadata = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise _in_the_way(target, f"is there and cannot be read ({error})") from None
    if metadata.get(SOURCES) != sources:
        raise _in_the_way(target, "is there, and was not converted from this checkpoint")


def _in_the_way(target: Path, why: str) -> FlagPerfError:
    return FlagPerfError(
        why, where=str(target), remedy="give another file: --out FILE, or move this one away"
    )


def _write(target: Path, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Under another name until it is whole: one that nobody knows, for strangers may have left links of any other."""
    partial = target.with_name(f".{target.name}.{token_hex(8)}.partial")
    try:
        save_file(dict(tensors), partial, metadata=dict(metadata))
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.rename(target)
    except (OSError, SafetensorError) as error:
        raise FlagPerfError(
            f"cannot be written: {error}", where=str(target), remedy="make room, or give --out FILE elsewhere"
        ) from None
    finally:
        partial.unlink(missing_ok=True)
