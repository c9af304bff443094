"""Batches on their way to a device: every tensor is moved, and its host memory kept until the copy is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest

from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.tensors import Uploads, host_tensor
from tests.fakes.paddle import SlowDevice


def _tensor(value: int) -> paddle.Tensor:
    return host_tensor(np.full(3, value, np.int32), pinned=False)


def test_host_memory_is_kept_until_the_device_is_past_the_copy() -> None:
    device: Any = SlowDevice()
    uploads = Uploads(device)
    for number in range(3):
        uploads.moved([_tensor(number)])
    assert len(uploads._pending) == 3
    device.marks[0].done = device.marks[1].done = True
    uploads.moved([_tensor(3)])
    assert [int(inputs[0][0]) for _, inputs in uploads._pending] == [2, 3]


def test_every_tensor_is_moved_and_the_rest_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paddle.Tensor, "to", lambda tensor, place, blocking: tensor.clone())
    device: Any = SlowDevice()
    inputs: dict[str, Any] = {"a": [_tensor(1), (_tensor(2), "text")], "n": 3}
    there = Uploads(device).moved(inputs)
    assert (there["n"], there["a"][1][1]) == (3, "text")
    assert there["a"][0].numpy().tolist() == [1, 1, 1]
    assert there["a"][1][0] is not inputs["a"][1][0]


def test_a_cpu_takes_what_there_is() -> None:
    inputs = {"a": _tensor(1)}
    assert Uploads(Device("cpu", 0)).moved(inputs) is inputs
