"""A run's plan as an export needs it: where its code lay, which cases it had, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from run_benchmarks.plan.records import CaseFiles
from run_benchmarks.reading import parsed


@dataclass(frozen=True)
class PlannedVendor:
    """The vendor's folder."""

    name: str


@dataclass(frozen=True)
class ExportedCase:
    """A case of `plan.json`. settings: as the user chose it."""

    settings: Mapping[str, Any]
    vendor: PlannedVendor
    files: CaseFiles
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its folder in the result tree."""
        return str(self.settings.get("name"))

    def paths(self) -> tuple[str, ...]:
        """Those that its code is found by, in `training/`."""
        return (self.files.case_dir, self.files.script, self.files.extern_dir)

    def code_folders(self) -> tuple[str, ...]:
        """What of the tree it ran, vendor and image included: paths in `training/`."""
        model = PurePosixPath(self.files.case_dir).parent.as_posix()
        return (f"{model}/", f"{self.vendor.name}/")


@dataclass(frozen=True)
class ExportedPlan:
    """`plan.json`. run: the settings of test_conf.py, as resolved."""

    run: Mapping[str, Any]
    cases: tuple[ExportedCase, ...]


def read_plan(content: Mapping[str, Any], where: str) -> ExportedPlan:
    """The plan that a run's `plan.json` holds; FlagPerfError where it is none of this version's."""
    return parsed(ExportedPlan, content, where)
