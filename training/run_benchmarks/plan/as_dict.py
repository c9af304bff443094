"""The plan as plain data, for `plan.json`: everything resolved, and no secrets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.redact import redact_argv, redact_url
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """`plan` as dicts, lists, texts and numbers; credentials in it are replaced by `***`."""
    content: dict[str, Any] = plain(replace(plan, secrets=NO_SECRETS))
    del content["secrets"]
    for shown, case in zip(content["cases"], plan.cases, strict=True):
        shown["container_options"] = _options(plan.secrets, case.container_options)
        shown["vendor"]["container_options"] = _options(plan.secrets, case.vendor.container_options)
        for values in (shown["image_build_args"], shown["parameters"]):
            texts = {name: value for name, value in values.items() if isinstance(value, str)}
            values |= {name: plan.secrets.shown(name, value) for name, value in texts.items()}
    return plan.secrets.hide_in(content, names=False)


def _options(secrets: Secrets, options: Sequence[str]) -> list[str]:
    kept, variables = secrets.split_options(options)
    shown = (f"--env={name}={secrets.shown(name, value)}" for name, value in variables.items())
    return [*redact_argv(kept), *shown]


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
