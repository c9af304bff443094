"""The plan as plain data, for `plan.json`: everything resolved, and no secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.records import PipSettings, Plan
from run_benchmarks.plan.redact import redact_text, redact_values


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """`plan` as dicts, lists, texts and numbers; credentials in it are replaced by `***`."""
    content: dict[str, Any] = _plain(plan)
    return content


def _plain(value: Any) -> Any:
    if isinstance(value, PipSettings):
        value = {"options": value.options, "ca_file": value.ca_file, "wheel_dirs": value.wheel_dirs}
    if callable(value):
        return getattr(value, "__name__", str(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return redact_values({str(name): _plain(item) for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return redact_text(value) if isinstance(value, str) else value
