"""Read a safetensors file (https://huggingface.co/docs/safetensors, "Format") without the package.

8 bytes with the header's size, little-endian; the header, JSON: name -> dtype, shape, begin and end of its bytes;
the bytes. Reading it takes fewer lines than the package would take in every image.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# bfloat16, which numpy lacks, is read as 16-bit integers and widened.
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4"}


def read_safetensors(path: Path) -> dict[str, Array]:
    """The tensors by name; all but bfloat16 are only mapped into memory.

    Raises:
        OSError, ValueError: there is no such file, or it is cut short or not of this format.
    """
    content = np.memmap(path, dtype=np.uint8, mode="r")
    begin = 8 + int.from_bytes(content[:8].tobytes(), "little")
    if begin > len(content):
        raise ValueError("not a safetensors file, or its header is cut short")
    header: dict[str, Any] = json.loads(content[8:begin].tobytes())
    header.pop("__metadata__", None)
    return {name: _tensor(name, facts, content[begin:]) for name, facts in header.items()}


def _tensor(name: str, facts: dict[str, Any], content: Array) -> Array:
    kind, shape, (begin, end) = facts["dtype"], facts["shape"], facts["data_offsets"]
    if kind not in _DTYPES:
        raise ValueError(f"the tensor {name} is of the data type {kind}, which is not read here")
    dtype = np.dtype(_DTYPES[kind])
    if not 0 <= begin <= end <= len(content) or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(
            f"the tensor {name} of shape {tuple(shape)} reaches past the file's end: it is cut short"
        )
    array: Array = content[begin:end].view(dtype).reshape(shape)
    if kind == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array
