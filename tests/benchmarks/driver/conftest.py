"""What the tests of the driver share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.benchmarks.bert.shard_files import write_data


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BERT's, tiny."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A run sets the number of threads; other tests get theirs back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
