"""Read the tensors of a file that `torch.save` wrote, without PyTorch.

The format (PyTorch 1.6 and later) is a zip archive: `<name>/data.pkl` is the pickled object, in which each
tensor's memory is a reference to `<name>/data/<key>`. Only dictionaries of tensors and plain values are read:
whatever else the pickle names is refused, so that a file cannot run code.
"""

from __future__ import annotations

import collections
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# bfloat16, which numpy lacks, is read as 16-bit integers and widened.
_STORAGES = {
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "BFloat16Storage": np.uint16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}


def read_torch_file(path: Path) -> Any:
    """The object that was saved, its tensors as arrays.

    Raises:
        OSError, ValueError: there is no such file, or it is not of this format or holds other things.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            return _Unpickler(archive, name.removesuffix("data.pkl")).load()
    except (zipfile.BadZipFile, pickle.UnpicklingError, EOFError, KeyError) as error:
        raise ValueError(f"not a file of torch.save since PyTorch 1.6 ({error})") from error


class _Unpickler(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{folder}data.pkl")))
        self._archive, self._folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        """The few things that a state dict consists of."""
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in _STORAGES:
            return name
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _parameter
        raise pickle.UnpicklingError(f"{module}.{name} is none of a state dict's parts")

    def persistent_load(self, pid: Any) -> tuple[str, Array]:
        """A tensor's memory: ("storage", type, key, device, number of elements)."""
        _, kind, key, _, _ = pid
        return kind, np.frombuffer(self._archive.read(f"{self._folder}data/{key}"), dtype=_STORAGES[kind])


def _tensor(storage: tuple[str, Array], offset: int, size: Any, stride: Any, *_: Any) -> Array:
    """A view of `storage`; the further arguments are of no use to an array."""
    kind, memory = storage
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if min((*size, *stride, offset), default=0) < 0 or (0 not in size and last >= len(memory)):
        raise ValueError(f"a tensor of shape {tuple(size)} reaches past its {len(memory)} elements")
    steps = [step * memory.itemsize for step in stride]
    array = np.array(np.lib.stride_tricks.as_strided(memory[offset:], size, steps))
    if kind == "BFloat16Storage":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def _parameter(tensor: Array, *_: Any) -> Array:
    return tensor
