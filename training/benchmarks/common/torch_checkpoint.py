"""The tensors of a file of `torch.save`, read by PyTorch without running what the file may hold."""

from __future__ import annotations

import importlib
import pickle
import pickletools
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.conversion import Original
from utils.errors import FlagPerfError

# Keys under which DeepSpeed, Megatron, NVIDIA and FlagPerf save the weights, and what wrapping modules put
# before their names.
_WRAPPERS = ("module", "model")
_COPY_AGAIN = (
    "copy or download it again; or save its tensors alone, by torch.save of a state dict, where it was made"
)
_PICKLES_OF_OLD_FILES = 4  # before PyTorch 1.6: a magic number, the protocol, the machine, the object


class _Inert:
    """Stands for each class and function that a checkpoint names beside its tensors: takes anything, does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


def read_torch_checkpoint(path: Path, rename: Callable[[str], str] = str) -> Original:
    """The tensors of a state dict, bare or wrapped; `rename` gives the name that the case knows.

    Raises:
        FlagPerfError: PyTorch is missing, or the file cannot be read, or does not hold one state dict of dense tensors.
    """
    torch = imported("torch", "torch safetensors")
    try:
        content = _loaded(torch, path)
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, pickle.UnpicklingError) as error:
        raise unreadable(path, str(error)) from error
    return original_of((path,), _state_dict(path, content), rename)


def original_of(
    files: tuple[Path, ...], tensors: Mapping[str, Any], rename: Callable[[str], str]
) -> Original:
    """PyTorch's tensors as arrays, floating-point ones as float32.

    Raises:
        FlagPerfError: there is none, two get one name, or one is not dense.
    """
    if not tensors:
        raise unreadable(files[0], "it holds no state dict")
    names = original_names(files[0], tensors, rename)
    arrays = {name: _array(files[0], original, tensors[original]) for name, original in names.items()}
    return Original(files, arrays, names)


def original_names(
    path: Path, originals: Iterable[str], rename: Callable[[str], str | None]
) -> dict[str, str]:
    """What each tensor is called in the file, by the name that the case knows; without those renamed to None.

    Raises:
        FlagPerfError: two tensors get one name: which of them is meant, nobody can tell.
    """
    names: dict[str, str] = {}
    for original in originals:
        name = rename(original)
        if name is None:
            continue
        if name in names:
            raise unreadable(
                path,
                f"its tensors {names[name]} and {original} are both {name} by the names used here",
                "save it without the one that is not meant, where it was made",
            )
        names[name] = original
    return names


def unwrapped(name: str) -> str:
    """`name` without what wrapping modules put before it."""
    while name.startswith(tuple(f"{wrapper}." for wrapper in _WRAPPERS)):
        name = name.split(".", 1)[1]
    return name


def imported(module: str, packages: str) -> Any:
    """A module that only conversions need.

    Raises:
        FlagPerfError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise FlagPerfError(
            f"this checkpoint is read by {module}, which is not installed here ({error})",
            where="--convert-checkpoint",
            remedy=f"python3 -m pip install {packages} (a virtual environment of its own will do)",
        ) from None


def unreadable(path: Path, why: str, remedy: str = _COPY_AGAIN) -> FlagPerfError:
    return FlagPerfError(f"cannot read the checkpoint: {why}", where=str(path), remedy=remedy)


def _state_dict(path: Path, content: Any) -> dict[str, Any]:
    """The tensors of what a file held, whatever they are wrapped in."""
    if not isinstance(content, Mapping):
        return {}
    wrapped = {key: content[key] for key in _WRAPPERS if isinstance(content.get(key), Mapping)}
    if not wrapped:
        return {str(name): tensor for name, tensor in content.items() if hasattr(tensor, "untyped_storage")}
    candidates = {key: tensors for key in wrapped if (tensors := _state_dict(path, wrapped[key]))}
    if len(candidates) > 1:
        raise unreadable(
            path,
            f"there are tensors under each of the keys {' and '.join(candidates)}",
            "save the state dict that is meant alone, by torch.save, where it was made",
        )
    return next(iter(candidates.values()), {})


def _loaded(torch: Any, path: Path) -> Any:
    """What was saved: tensors and plain values as they are, everything else inert."""
    stand_ins = [(type("Inert", (_Inert,), {}), name) for name in _foreign_names(torch, path)]
    with torch.serialization.safe_globals(stand_ins):
        return torch.load(path, map_location="cpu", weights_only=True)


def _foreign_names(torch: Any, path: Path) -> list[str]:
    """Classes and functions that the file names and PyTorch does not know as harmless."""
    if zipfile.is_zipfile(path):
        return list(torch.serialization.get_unsafe_globals_in_checkpoint(path))
    names: set[str] = set()
    with path.open("rb") as stream:
        for _ in range(_PICKLES_OF_OLD_FILES):
            parts = [argument for code, argument, _ in pickletools.genops(stream) if code.name == "GLOBAL"]
            names.update(str(argument).replace(" ", ".") for argument in parts)
    return sorted(name for name in names if not name.startswith(("torch.", "collections.")))


def _array(path: Path, name: str, tensor: Any) -> Any:
    try:
        whole = tensor.detach().float() if tensor.is_floating_point() else tensor.detach()
        return whole.contiguous().numpy()
    except (RuntimeError, TypeError) as error:
        raise unreadable(
            path,
            f"its tensor {name} ({tensor.dtype}, {tensor.layout}) is no dense array: {error}",
            "save it dense, by its to_dense() or dequantize(), where it was made",
        ) from error
