"""Files of torch.save, read without PyTorch."""

from __future__ import annotations

import collections
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.bert.torch_file import read_torch_file


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before PyTorch 1.6"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool]
)
def test_tensors_keep_values_type_and_shape(tmp_path: Path, dtype: torch.dtype, zipped: bool) -> None:
    tensor = torch.arange(24).reshape(2, 3, 4).to(dtype)
    saved = {
        "whole": tensor,
        "view": tensor.transpose(0, 2)[1:],
        "empty": tensor[:0],
        "scalar": tensor[0, 0, 1],
    }
    content = {"model": collections.OrderedDict(saved), "step": 7, "name": "x"}
    torch.save(content, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    read = read_torch_file(tmp_path / "x.pt")
    assert (read["step"], read["name"]) == (7, "x")
    for name, expected in saved.items():
        np.testing.assert_array_equal(read["model"][name], expected.numpy(), strict=True)


def test_bfloat16_is_widened_and_a_parameter_is_a_tensor(tmp_path: Path) -> None:
    tensor = torch.tensor([1.0, -2.5, 3e38]).bfloat16()
    torch.save({"half": tensor, "weight": torch.nn.Parameter(torch.ones(2))}, tmp_path / "x.pt")
    read = read_torch_file(tmp_path / "x.pt")
    np.testing.assert_array_equal(read["half"], tensor.float().numpy(), strict=True)
    np.testing.assert_array_equal(read["weight"], np.ones(2, np.float32))


OLD_MAGIC = 0x1950A86A20F9469CFC6C  # of torch.save before PyTorch 1.6


class _Evil:
    def __reduce__(self) -> Any:
        return os.getcwd, ()


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_file_is_not_run(tmp_path: Path, zipped: bool) -> None:
    torch.save({"model": _Evil()}, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match="getcwd is none of a state dict's parts"):
        read_torch_file(tmp_path / "x.pt")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no checkpoint")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps({"a": 1}))
    (tmp_path / "big.pt").write_bytes(
        b"".join(map(pickle.dumps, (OLD_MAGIC, 1001, {"little_endian": False})))
    )
    for name, message in (
        ("text.pt", r"not a file of torch\.save"),
        ("pickle.pt", r"not a file of torch\.save"),
        ("big.pt", "big-endian"),
    ):
        with pytest.raises(ValueError, match=message):
            read_torch_file(tmp_path / name)
    with pytest.raises(OSError, match="absent"):
        read_torch_file(tmp_path / "absent.pt")
