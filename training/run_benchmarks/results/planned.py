"""What judging a round needs of the plan, as it stands in `plan.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from run_benchmarks.frameworks import FRAMEWORKS
from run_benchmarks.plan import values
from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.plan.energy_factors import EnergyFactors
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.reading import parsed
from run_benchmarks.results.round_result import CONVERGE
from utils.parameters import KIND, KINDS, seed_of_round


@dataclass(frozen=True)
class PlannedSettings:
    """The case as the user chose it."""

    name: str
    framework: str
    nnodes: values.CaseSize
    nproc: values.CaseSize
    repeat: values.CaseSize


@dataclass(frozen=True)
class PlannedFiles:
    """Relative to `training/`: the training script, and the case's folder, which earlier plans do not all name."""

    script: str
    case_dir: str = ""


@dataclass(frozen=True)
class PlannedChip:
    """peak_flops: dtype -> dense FLOP/s. source: of the peaks, or, field by field, of all that is said of the chip."""

    name: str
    peak_flops: Mapping[str, float | None]
    source: str | Mapping[str, str]

    def source_of_peaks(self) -> str:
        """Where `peak_flops` come from."""
        by_field = {"": self.source} if isinstance(self.source, str) else self.source
        return by_field.get("peak_flops", by_field.get("", "no source is given"))


@dataclass(frozen=True)
class PlannedCase:
    """A case of `plan.json`.

    differs: what the plan says of changes beyond the mutable names, if it looked. extern: the files of the vendor's
    `extern/`, path -> SHA-256; None where the plan does not say. environment: the file that is sourced before the
    ranks start, likewise. writable: whether it ran in a copy of its code, which it may have changed. undisturbed:
    whether a round that something disturbed does not count.
    energy_factors: the user's. roles: what its processes are, of a search.
    """

    settings: PlannedSettings
    files: PlannedFiles
    chip: PlannedChip | None
    parameters: Mapping[str, Any]
    deadline_s: float
    differs: Mapping[str, Any] | None = None
    extern: Mapping[str, str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    writable: bool = False
    undisturbed: bool = False
    energy_factors: EnergyFactors = field(default_factory=EnergyFactors)
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a kind that this version does not know: no verdict would be its own."""
        if self.kind not in KINDS:
            raise ValueError(f"{KIND} is {self.kind!r}, not one of {', '.join(KINDS)}")

    @property
    def kind(self) -> str:
        """MEASURE for a case that does a fixed amount of work and reports figures of its own, else CONVERGE."""
        return str(self.parameters.get(KIND, CONVERGE))

    def parameters_of(self, number: int) -> Mapping[str, Any]:
        """Those of a round, counted from 1, which may have a seed of its own."""
        seed, step = self.parameters.get("seed"), self.parameters.get("seed_step")
        if not (self.uses_driver and isinstance(seed, int) and isinstance(step, int)):
            return self.parameters
        return {**self.parameters, "seed": seed_of_round(seed, step, number)}

    @property
    def ranks_of_node(self) -> int:
        """How many processes the launcher started on each node: that of a script which starts its own ranks is one."""
        framework = FRAMEWORKS.get(self.settings.framework.partition("_")[0])
        nproc = self.settings.nproc
        return framework.ranks_of_node(nproc) if framework else nproc

    @property
    def vendors_folder(self) -> str:
        """The case's folder where it is a vendor's own (TEST_TYPE = "customized"), else empty."""
        return "" if self.files.case_dir.startswith("benchmarks/") else self.files.case_dir

    @property
    def uses_driver(self) -> bool:
        """Whether the shared driver trains it; an existing case brings a script of its own."""
        return self.files.script == DRIVER_SCRIPT


def planned(case: CasePlan) -> PlannedCase:
    """A live case as a reader of `plan.json` sees it."""
    return parsed(PlannedCase, plain(case), f"case {case.settings.name}")
