"""The random generators of Python and NumPy, which every framework's code may draw from."""

from __future__ import annotations

import random
from typing import Any

import numpy as np


def host_random_state() -> dict[str, Any]:
    """Their state, as plain data."""
    state: Any = np.random.get_state(legacy=False)
    inner = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in state["state"].items()
    }
    return {"python": random.getstate(), "numpy": {**state, "state": inner}}


def set_host_random_state(state: dict[str, Any]) -> None:
    """Put them back into the state that `host_random_state` gave."""
    random.setstate(state["python"])
    of_numpy = state["numpy"]
    inner = {
        name: np.array(value, dtype=np.uint32) if isinstance(value, list) else value
        for name, value in of_numpy["state"].items()
    }
    np.random.set_state({**of_numpy, "state": inner})
