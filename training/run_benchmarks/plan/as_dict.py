"""The plan as plain data, for `plan.json`: everything resolved, and no secrets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.redact import redact_argv, redact_url, redact_values


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """`plan` as dicts, lists, texts and numbers; credentials in it are replaced by `***`."""
    content: dict[str, Any] = plain(plan)
    for case in content["cases"]:
        case["container_options"] = redact_argv(case["container_options"])
        case["image_build_args"] = redact_values(case["image_build_args"])
    return content


def plain(value: Any) -> Any:
    """`value` as dicts, lists, texts and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if callable(value):  # the vendor's parser of its device list
        return value.__name__
    if isinstance(value, float) and not math.isfinite(value):  # a script of a case's own may be set so
        return str(value)  # JSON has no such number
    return redact_url(value) if isinstance(value, str) else value
