"""Where a case's files lie, and whether they are all there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from run_benchmarks.frameworks import FRAMEWORKS, STARTED_ELSEWHERE
from run_benchmarks.plan.case_code import check_case_code
from run_benchmarks.plan.energy_factors import EnergyFactors
from run_benchmarks.plan.hook_code import check_hook_code
from run_benchmarks.plan.own_script import driver_of, takes_vendor, wants_driver
from run_benchmarks.plan.parameters import Parameters, read_parameters
from run_benchmarks.plan.problems import Problems, choices
from run_benchmarks.plan.records import (
    CaseFiles,
    CasePlan,
    CaseSettings,
    ClusterSettings,
    RunSettings,
    VendorSettings,
)
from run_benchmarks.plan.redact import redact_text
from run_benchmarks.plan.requirement_lines import check_requirements
from run_benchmarks.plan.search_limits import search_misfits
from run_benchmarks.plan.shell_file import read_script, syntax_error
from run_benchmarks.plan.vendor_record import Chip, Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from utils.code_files import code_files
from utils.config_files import config_name
from utils.errors import FlagPerfError, closest
from utils.parameters import KIND

DRIVER_SCRIPT = "benchmarks/driver/run_pretraining.py"
CASE_SCRIPT = "run_pretraining.py"
_HOUR_S = 3600.0
MISSPELT = 0.8  # so near is the name of a file that is meant for another one (1: equal)


class CaseResolver:
    """Finds the files of one case. Every problem is noted, so that all of them are seen at once."""

    def __init__(
        self, case: CaseSettings, where: str, run: RunSettings, training_dir: Path, problems: Problems
    ) -> None:
        self.case = case
        self.where = where
        self.run = run
        self.root = training_dir
        self.problems = problems
        self.vendor_dir = f"{case.vendor}/{case.model}-{case.framework_name}"

    def plan(
        self, cluster: ClusterSettings, vendor: Vendor | None, chosen: VendorSettings
    ) -> CasePlan | None:
        """The case with everything resolved; None where a file is missing or wrong."""
        before = len(self.problems.all)
        case_dir = self._case_dir()
        if vendor is None and not self._exists(f"{self.case.vendor}/{VENDOR_FILE}"):
            return None  # that there is no such vendor has been reported once, for all cases
        chip = self._chip(vendor, case_dir) if vendor else None
        if len(self.problems.all) == before:  # else a missing config is the same slip
            self._check_config()
        image_dir = self._image_dir() if case_dir else ""
        if len(self.problems.all) > before or case_dir is None or vendor is None:
            return None
        files = self._files(case_dir, image_dir)
        self._check_script(files, vendor)
        check_requirements(self.root, files.requirements, self.problems)
        parameters = read_parameters(self.root, files, self.problems, vendor.device_type)
        extern = self._extern(files)
        roles = self._check_code(files, parameters, extern) if files.script == DRIVER_SCRIPT else ()
        if parameters is None or len(self.problems.all) > before:
            return None
        hours = self.case.deadline_hours or self.run.case_deadline_hours
        misfits = [*search_misfits(parameters.values, self.case.nproc, hours, cluster.slurm)] if roles else []
        for name, misfit in misfits:
            self._report(name, str(parameters.values[name]), misfit.message, misfit.remedy)
        if misfits:
            return None
        options, visible = chosen.container_options, chosen.visible_devices_env
        return CasePlan(
            settings=self.case,
            vendor=vendor,
            files=files,
            hosts=cluster.hosts_of(vendor.name)[: self.case.nnodes],
            chip=chip,
            parameters=parameters.values,
            deadline_s=hours * _HOUR_S,
            differs=parameters.differs,
            container_options=vendor.options_for(self.case.nproc) if options is None else options,
            visible_devices_env=vendor.visible_devices_env if visible is None else visible,
            image_build_args=chosen.image_build_args,
            extern=extern,
            environment=self._environment(files),
            writable=self.run.case_writable and files.script != DRIVER_SCRIPT,
            undisturbed=self.run.require_undisturbed,
            energy_factors=EnergyFactors(self.run.carbon_g_per_kwh, self.run.cost_per_kwh),
            roles=roles,
        )

    def _report(self, name: str, value: str, message: str, remedy: str) -> None:
        self.problems.add(self.where, f"{self.case.name}: {name}", value, message, remedy)

    def _report_missing(
        self, name: str, value: str, what: str, present: list[str], wanted: Path | None = None
    ) -> None:
        """Note that something is not there. `wanted`: the path where it would be; a misspelt one beside it is named."""
        remedy = f"there is: {choices(value, present)}" if present else "there is none yet: CONTRIBUTING.md"
        misspelt = wanted and _misspelt(wanted, present)
        if misspelt and wanted:
            remedy = f"rename {misspelt} to {wanted.name}, if that is it; else {remedy}"
        self._report(name, value, f"there is no {what}", remedy)

    def _case_dir(self) -> str | None:
        """`benchmarks/<model>/<framework>`, or below the vendor's folder for TEST_TYPE = "customized"."""
        if self.case.framework in STARTED_ELSEWHERE:
            message = f"is not run here: {STARTED_ELSEWHERE[self.case.framework]}"
            remedy = (
                "run it as its README says; a case of the framework itself (megatron, flagscale) runs here"
            )
            self._report("framework", self.case.framework, message, remedy)
            return None
        customized = self.run.test_type == "customized"
        home = f"{self.case.vendor}/benchmarks" if customized else "benchmarks"
        model_dir = f"{home}/{self.case.model}"
        case_dir = f"{model_dir}/{self.case.framework_name}"
        if not (self.root / model_dir).is_dir():
            present = sorted({folder.parent.name for folder in _cases_in(self.root / home, "*/*")})
            self._report_missing("model", self.case.model, f"folder {self.root / model_dir}", present)
            return None
        if self.case.framework_name not in FRAMEWORKS:
            what = "framework of this name that FlagPerf can start"
            self._report_missing("framework", self.case.framework_name, what, sorted(FRAMEWORKS))
            return None
        if not (self.root / case_dir).is_dir():
            present = sorted({folder.name for folder in _cases_in(self.root / model_dir, "*")})
            what = f"folder {self.root / case_dir}"
            self._report_missing("framework", self.case.framework_name, what, present)
            return None
        return case_dir

    def _check_config(self) -> None:
        folder = self.root / self.vendor_dir / "config"
        if not folder.is_dir():
            present = [path.parent.name for path in (self.root / self.case.vendor).glob("*-*/config/")]
            what = f"folder {folder}"
            wanted = folder if folder.parent.is_dir() else folder.parent
            self._report_missing("vendor folder", Path(self.vendor_dir).name, what, sorted(present), wanted)
        elif not (folder / f"{self.case.config}.py").is_file():
            present = sorted(path.stem for path in folder.glob("config_*x*x*.py"))
            wanted = folder / f"{self.case.config}.py"
            self._report_missing("config", self.case.config, f"file {wanted}", present, wanted)

    def _image_dir(self) -> str:
        """The folder of the Dockerfile. A version that is not there is never replaced by another."""
        home = self.root / self.case.vendor / "docker_image"
        image_dir = f"{self.case.vendor}/docker_image/{self.case.framework}"
        if self.run.uses_images and not (self.root / image_dir / "Dockerfile").is_file():
            present = sorted(path.parent.name for path in home.glob("*/Dockerfile"))
            what, wanted = f"Dockerfile in {self.root / image_dir}", self.root / image_dir / "Dockerfile"
            plain = self.case.framework_name
            other = next((name for name in present if re.match(rf"{re.escape(plain)}[-.]", name)), "")
            if other:
                remedy = f"rename {home / other} {plain} or {plain}_{other[len(plain) + 1 :]}"
                self._report("framework", self.case.framework, f"there is no {what}", remedy)
            else:
                self._report_missing("framework", self.case.framework, what, present, wanted)
        return image_dir

    def _chip(self, vendor: Vendor, case_dir: str | None) -> Chip | None:
        """The chip that the config's name speaks of; None where the vendor describes no chips, or not this one.

        A script of a case's own may call its configurations as it likes; the shared driver's result needs the peak.
        """
        chip = vendor.chips.get(self.case.chip)
        names_a_chip = self.case.config == config_name(self.case.chip, self.case.nnodes, self.case.nproc)
        has_own = case_dir is not None and self._exists(f"{case_dir}/{CASE_SCRIPT}")
        if chip is None and vendor.chips and names_a_chip and not has_own:
            what = f"such chip in {vendor.folder / VENDOR_FILE}"
            self._report_missing("chip", self.case.chip, what, sorted(vendor.chips))
        return chip

    def _files(self, case_dir: str, image_dir: str) -> CaseFiles:
        own_script = f"{case_dir}/{CASE_SCRIPT}"
        has_own = self._exists(own_script)
        if not has_own and not self._exists(DRIVER_SCRIPT):
            message = f"the case brings no {CASE_SCRIPT}, and the shared driver is missing"
            self._report("script", DRIVER_SCRIPT, message, "restore the file: the checkout is incomplete")
        config_dir = f"{self.vendor_dir}/config"
        self._check_sourced(f"{config_dir}/environment_variables.sh")
        environment, extension = f"{config_dir}/environment_variables.sh", f"{self.vendor_dir}/csrc"
        requirements = (f"{case_dir}/requirements.txt", f"{config_dir}/requirements.txt")
        names = (f"{self.case.framework}_install.sh", f"{self.case.framework_name}_install.sh")
        installs = [f"{image_dir}/{name}" for name in names if self._exists(f"{image_dir}/{name}")]
        return CaseFiles(
            case_dir=case_dir,
            script=own_script if has_own else DRIVER_SCRIPT,
            script_args=() if has_own else ("--case_dir", case_dir),
            config_dir=config_dir,
            config_file=f"{self.case.config}.py",
            extern_dir=f"{self.vendor_dir}/extern",
            requirements=tuple(path for path in requirements if self._exists(path)),
            environment_script=environment if self._exists(environment) else None,
            dockerfile_dir=image_dir,
            install_script=installs[0] if installs else None,
            takes_vendor=not has_own or takes_vendor(self.root, Path(case_dir)),
            extension_dir=extension if self._exists(f"{extension}/setup.py") else None,
        )

    def _check_script(self, files: CaseFiles, vendor: Vendor) -> None:
        """The shared driver needs `vendor.py`; a script of the case's own may need a driver of its own."""
        if files.script == DRIVER_SCRIPT:
            if not vendor.described:
                message = f"the shared driver reads {vendor.folder / VENDOR_FILE}, which is missing"
                remedy = (
                    "write it (CONTRIBUTING.md); a case that brings its own run_pretraining.py runs without"
                )
                self._report("vendor folder", vendor.name, message, remedy)
            else:
                self._check_vendor(vendor)
            return
        own_driver = driver_of(self.root, Path(files.case_dir))
        if wants_driver(self.root / files.script) and own_driver is None:
            message = "it imports a package `driver` that is not in the case's folder (benchmarks/driver is another)"
            remedy = f"copy the driver package that the case was written for to {files.case_dir}/driver"
            self._report("script", files.script, message, remedy)

    def _check_vendor(self, vendor: Vendor) -> None:
        """What every rank needs of `vendor.py`."""
        path, name = vendor.folder / VENDOR_FILE, self.case.framework_name
        if not vendor.device_type:
            remedy = 'write what the framework calls it, e.g. "cuda"; "cpu" for none'
            self.problems.add(path, "DEVICE_TYPE", "", "is empty", remedy)
        if not vendor.collective_backend.get(name):
            message = f"does not say how ranks of {name} talk to each other"
            remedy = f'add "{name}": and a backend of {name}, e.g. "nccl"'
            self.problems.add(path, "COLLECTIVE_BACKEND", vendor.collective_backend, message, remedy)

    def _extern(self, files: CaseFiles) -> Mapping[str, str]:
        try:
            return code_files(self.root / files.extern_dir)
        except FlagPerfError as error:
            self.problems.add(error.where, "extern", None, error.message, error.remedy)
            return {}

    def _check_code(
        self, files: CaseFiles, parameters: Parameters | None, extern: Mapping[str, str]
    ) -> tuple[str, ...]:
        """What the shared driver loads: the vendor's hooks and, once it is clear what the case is, its class."""
        check_hook_code(self.root / files.extern_dir, extern, self.problems)
        if parameters is None:
            return ()
        kind = str(parameters.values[KIND])
        return check_case_code(self.root / files.case_dir, kind, parameters.metric, self.problems)

    def _environment(self, files: CaseFiles) -> dict[str, str]:
        """The vendor's file that is sourced before the ranks start, with the digest of what anybody may see of it.

        By the digest of all of it a short password could be guessed at leisure.
        """
        script = files.environment_script
        if not script:
            return {}
        text = read_script(self.root, script)
        shown = self.problems.secrets.with_those_of({}, text=text).hide(redact_text(text))
        return {script: sha256(shown.encode()).hexdigest()}

    def _check_sourced(self, path: str) -> None:
        """Note what has a script's name and is none: without a word the ranks would start without it."""
        file = self.root / path
        if not file.exists():
            return
        try:
            read_script(self.root, path)
        except FlagPerfError as error:
            self._report("file", path, error.message, error.remedy)
            return
        if refused := syntax_error(file):
            message = f"bash cannot parse it ({refused[1]}): the ranks would start without the rest of it"
            self.problems.add(refused[0], file.name, None, message, f"mend it as `bash -n {file}` says")

    def _exists(self, path: str) -> bool:
        return (self.root / path).is_file()


def _misspelt(wanted: Path, present: Sequence[str]) -> str:
    """What lies in the place of `wanted` under nearly its name, and is none of those `present`; empty for nothing."""
    there = sorted(path.name for path in wanted.parent.glob("*"))
    others = [name for name in there if name.removesuffix(wanted.suffix) not in present]
    return closest(wanted.name, others, MISSPELT)


def _cases_in(home: Path, pattern: str) -> list[Path]:
    """The folders that hold a case: `<model>/<framework>` below `home`, or `<framework>` below a model."""
    marks = (f"{pattern}/config/_base.py", f"{pattern}/{CASE_SCRIPT}")
    files = [file for mark in marks for file in home.glob(mark)]
    return [file.parent.parent if file.name == "_base.py" else file.parent for file in files]
