"""Whether the files still lead to the plan of a run that was begun: by a digest, and what has changed where not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from run_benchmarks.reading import flattened
from utils.text_files import shortened

MOST_CHANGES = 20
LONGEST = 120  # characters of a value that are shown
ABSENT = "nothing"
PLACES = frozenset({"log_path", "metrics_port", "metrics_address"})


def plan_digest(content: Mapping[str, Any]) -> str:
    """The SHA-256 of a plan as `plan_as_dict` gives it, but for where its files, its results and its metrics are."""
    return hashlib.sha256(json.dumps(_decisive(content), sort_keys=True).encode()).hexdigest()


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each value of two plans that is not the same; of many the first."""
    before, after = (dict(flattened(_decisive(content), is_numbered=True)) for content in (then, now))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    lines = [f"{name}: was {_shown(before.get(name))}, is {_shown(after.get(name))}" for name in names]
    more = len(lines) - MOST_CHANGES
    return [*lines[:MOST_CHANGES], *([f"and {more} more"] if more > 0 else [])]


def _decisive(content: Mapping[str, Any]) -> dict[str, Any]:
    run = {name: value for name, value in content.get("run", {}).items() if name not in PLACES}
    return {**content, "run": run, "options": None}


def _shown(value: str | None) -> str:
    return ABSENT if value is None else shortened(value, LONGEST)
