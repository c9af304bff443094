"""A plan's settings and cases as the two configuration files would say them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import Any

from pydantic import AliasChoices

from run_benchmarks.exports.planned_run import ExportedCase, ExportedPlan
from run_benchmarks.plan.cases import CASE_KEYS, parse_case_key
from run_benchmarks.plan.records import ClusterSettings, RunSettings
from utils.errors import FlagPerfError

_NOT_IN_FILES = ("pip", "machine")  # where packages come from is each machine's own


def config_files(plan: ExportedPlan, run: str) -> dict[str, str]:
    """Name -> text of `cluster_conf.py` and `test_conf.py`."""
    cluster = "".join(_lines(ClusterSettings, plan.cluster))
    test = "".join([*_lines(RunSettings, plan.run), *_vendor_lines(plan.cases), cases_text(plan.cases)])
    return {
        "cluster_conf.py": f"{f'The hosts of {run}, as resolved.'!r}\n\n{cluster}",
        "test_conf.py": f"{f'The cases and settings of {run}, as resolved.'!r}\n\n{test}",
    }


def cases_text(cases: Sequence[ExportedCase], default_vendor: str = "") -> str:
    """CASES, in the dialect in which the cases' names were written.

    Args:
        default_vendor: VENDOR of the file in which it stands; that of the first case, if it is not said.

    Raises:
        FlagPerfError: a name is none that a file can have: what is made here is executed.
    """
    default = default_vendor or next((case.vendor.name for case in cases), "")
    keys = {case.name: _key(case, default) for case in cases}
    if all(keys.values()):
        data = {keys[case.name]: case.settings.get("data_dir_host") for case in cases}
        return f"CASES = {data!r}\n"
    for name in keys:
        if not name.isidentifier() or iskeyword(name):
            raise FlagPerfError(f"{name!r} cannot be the name of a case in a file", where="plan.json")
    dicts = (f"{case.name} = {_case_dict(case)!r}\n" for case in cases)
    return "".join([f"CASES = {list(keys)!r}\n", *dicts])


def _key(case: ExportedCase, default_vendor: str) -> str:
    """The case's key in the later dialect; empty where its name is none."""
    vendor, _, rest = (
        case.name.rpartition(f"{case.vendor.name}:") if case.name.count(":") == 6 else ("", "", case.name)
    )
    parts, wrong = parse_case_key(rest)
    if vendor or wrong or not parts:
        return ""
    return rest if case.vendor.name == default_vendor else f"{case.vendor.name}/{rest}"


def _case_dict(case: ExportedCase) -> dict[str, Any]:
    values = {**case.settings, "vendor": case.vendor.name}
    return {key: values[key] for key in CASE_KEYS if values.get(key) is not None}


def _lines(model: type[Any], values: Mapping[str, Any]) -> Iterator[str]:
    """`NAME = value`, a line for each setting that says something."""
    for name, info in model.__pydantic_fields__.items():
        alias = info.validation_alias or info.alias or name
        written = str(alias.choices[-1] if isinstance(alias, AliasChoices) else alias)
        if name not in _NOT_IN_FILES and values.get(name) not in (None, "", [], {}):
            yield f"{written} = {values[name]!r}\n"


def _vendor_lines(cases: Sequence[ExportedCase]) -> Iterator[str]:
    sections: dict[str, dict[str, Any]] = {}
    for case in cases:
        section = {
            "ACCE_CONTAINER_OPT": shlex.join(case.container_options),
            "ACCE_VISIBLE_DEVICE_ENV_NAME": case.visible_devices_env,
            "IMAGE_BUILD_ARGS": dict(case.image_build_args),
        }
        sections.setdefault(case.vendor.name, section)
    yield f"VENDOR = {next(iter(sections), '')!r}\n"
    yield f"VENDORS = {sections!r}\n"
