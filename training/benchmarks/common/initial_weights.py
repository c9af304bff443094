"""The initial checkpoint of a case: one safetensors file, converted once from what others wrote.

`benchmarks.common.conversion` makes it, when the data are prepared; the cases of every framework read it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from benchmarks.common.prepare_command import prepare_command
from utils.errors import FlagPerfError, Problem, ProblemsError, nearest

Shape = tuple[int, ...]
SUFFIX = ".safetensors"
ORIGINAL_SUFFIXES = (".pt", ".pth", ".bin", ".index")  # of PyTorch's files, and of TensorFlow's
CONFIG = "config"  # the metadata under which the model's own configuration stands, as JSON
_REMEDY = "give the checkpoint of a model whose shape is the configuration's"


@dataclass(frozen=True)
class InitialWeights:
    """Tensors by the names that they have in the file, and what the file says of itself."""

    tensors: dict[str, Any]
    metadata: Mapping[str, str]


def converted_name(original: Path) -> str:
    """What the converted file of the checkpoint `original` is called."""
    name = original.name
    return (name.removesuffix(original.suffix) if original.suffix in ORIGINAL_SUFFIXES else name) + SUFFIX


def read_weights(path: Path, *, model: str, framework: str) -> InitialWeights:
    """Read the initial checkpoint `path` of a case.

    Args:
        path: of the safetensors file.
        model: folder of the case below `benchmarks`, whose `prepare` converts checkpoints.
        framework: as safetensors names them: "pt" gives PyTorch's tensors, "np" arrays.

    Raises:
        FlagPerfError: there is none, it is not converted yet, or it cannot be read.
    """
    if path.suffix != SUFFIX or not path.is_file():
        raise _no_converted_file(path, model)
    try:
        with safe_open(path, framework=framework) as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
            return InitialWeights(tensors, file.metadata() or {})
    except (OSError, TypeError, ValueError, SafetensorError) as error:
        raise FlagPerfError(
            f"cannot read the checkpoint: {error}", where=str(path), remedy="copy or convert it again"
        ) from error


def check_form(present: Mapping[str, Shape], wanted: Mapping[str, Shape], *, where: str) -> None:
    """Compare names and shapes.

    Args:
        present: of the checkpoint's tensors.
        wanted: of the model's, by the names that they have in the checkpoint.
        where: the checkpoint's file.

    Raises:
        ProblemsError: tensors are missing, not expected or of another shape: all of them.
    """
    problems = [
        Problem(where, name, "", "is not a tensor of this model", _REMEDY)
        for name in present
        if name not in wanted
    ]
    for name, shape in wanted.items():
        if name not in present:
            problems.append(Problem(where, name, "", "is missing", _REMEDY))
        elif present[name] != shape:
            message = f"has the wrong shape: {shape} is wanted"
            problems.append(Problem(where, name, str(present[name]), message, _REMEDY))
    if problems:
        raise ProblemsError(problems)


def _no_converted_file(path: Path, model: str) -> FlagPerfError:
    """Why `path` cannot be read, and what to do: most often it is to be converted."""
    original = _original_of(path)
    name = converted_name(original or path)
    setting = "" if path.name == name else f'set init_checkpoint to its name with {SUFFIX}: "{name}"'
    if setting and path.with_name(name).is_file():
        return _unread("checkpoints are read from their converted files", path, setting)
    if original is None:
        beside = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
        remedy = nearest(path.name, beside) or "put it there, or set init_checkpoint to its name there"
        return _unread("there is none of this name in the data directory", path, remedy)
    command = prepare_command(model, "--convert-checkpoint", str(original))
    return _unread(
        f"only {original.name} is there, which is not converted yet",
        path,
        "; ".join(filter(None, [f"convert it once, {command}", setting])),
    )


def _unread(why: str, path: Path, remedy: str) -> FlagPerfError:
    return FlagPerfError(f"cannot read the checkpoint: {why}", where=str(path), remedy=remedy)


def _original_of(path: Path) -> Path | None:
    """The checkpoint of another format that `path` is, or is to be converted from."""
    stem = path.with_name(path.name.removesuffix(SUFFIX))
    candidates = [path, stem, *(stem.with_name(stem.name + suffix) for suffix in ORIGINAL_SUFFIXES)]
    return next((candidate for candidate in candidates if candidate.exists()), None)
