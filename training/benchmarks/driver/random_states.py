"""The random generators of Python and NumPy, which every framework's code may draw from."""

from __future__ import annotations

import random
from typing import Any

import numpy as np


def host_random_state() -> dict[str, Any]:
    """Their state, as plain data."""
    state: Any = np.random.get_state(legacy=False)
    words = {name: getattr(value, "tolist", lambda v=value: v)() for name, value in state["state"].items()}
    return {"python": random.getstate(), "numpy": {**state, "state": words}}


def set_host_random_state(state: dict[str, Any]) -> None:
    """Put them back into the state that `host_random_state` gave."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
