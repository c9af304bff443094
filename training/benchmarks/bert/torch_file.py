"""Read the tensors of a file that `torch.save` wrote, without PyTorch.

The format since PyTorch 1.6 is a zip archive: `<name>/data.pkl` is the pickled object, in which each tensor's memory
is a reference to `<name>/data/<key>`. Before, three pickles (a magic number, the protocol, facts about the machine)
stood before the pickled object, then the keys, pickled, then each key's memory: its number of elements and its bytes.
transformers' first checkpoints, bert-large-uncased among them, are of the old form.

Only dictionaries of tensors and plain values are read: whatever else the pickle names is refused, so that a file cannot
run code.
"""

from __future__ import annotations

import collections
import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

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
_OLD_MAGIC = 0x1950A86A20F9469CFC6C


def read_torch_file(path: Path) -> Any:
    """The object that was saved, its tensors as arrays.

    Raises:
        OSError, ValueError: there is no such file, or it is not of this format, is cut short or holds other things.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return _of_archive(archive)
        with path.open("rb") as file:
            return _of_old_form(file)
    except (zipfile.BadZipFile, pickle.UnpicklingError, EOFError, KeyError, struct.error) as error:
        raise ValueError(f"not a file of torch.save, or cut short ({error})") from error


def _of_archive(archive: zipfile.ZipFile) -> Any:
    (name,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
    folder = name.removesuffix("data.pkl")

    def memory(kind: str, key: str, _: int) -> Array:
        return np.frombuffer(archive.read(f"{folder}data/{key}"), dtype=_STORAGES[kind])

    return _Unpickler(io.BytesIO(archive.read(name)), memory).load()


def _of_old_form(file: IO[bytes]) -> Any:
    """The memory follows the object: this is read twice, first to learn how large each memory is."""
    memories: dict[str, Array] = {}

    def memory(kind: str, key: str, size: int) -> Array:
        return memories.setdefault(key, np.zeros(size, dtype=_STORAGES[kind]))

    def load() -> Any:
        return _Unpickler(file, memory).load()

    if load() != _OLD_MAGIC:
        raise ValueError("not a file of torch.save")
    load()  # the protocol's number
    if not load().get("little_endian"):
        raise ValueError("a file of torch.save on a big-endian machine, which is not read here")
    begin = file.tell()
    load()
    for key in load():
        (size,) = struct.unpack("<q", file.read(8))
        content = file.read(size * memories[key].itemsize)
        memories[key][:] = np.frombuffer(content, dtype=memories[key].dtype)
    file.seek(begin)
    return load()


class _Unpickler(pickle.Unpickler):
    """`memory(kind, key, number of elements)` is where a tensor's elements are."""

    def __init__(self, file: IO[bytes], memory: Callable[[str, str, int], Array]) -> None:
        super().__init__(file)
        self._memory = memory

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
        """A tensor's memory: ("storage", type, key, device, number of elements), then a view in the old form."""
        _, kind, key, _, size, *_ = pid
        return kind, self._memory(kind, key, size)


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
