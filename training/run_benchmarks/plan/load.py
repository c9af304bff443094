"""From the user's two files to a plan: everything is read and checked, and no host is touched."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from run_benchmarks.commands import place_options
from run_benchmarks.plan.case_files import CaseResolver
from run_benchmarks.plan.cases import is_case_dict, read_cases, where_case
from run_benchmarks.plan.cluster import PROVIDED, check_hosts, read_cluster
from run_benchmarks.plan.config_file import ConfigFile, read_config_file, subject
from run_benchmarks.plan.continuation import check_continuation
from run_benchmarks.plan.earlier_run import find_earlier
from run_benchmarks.plan.handover import check_handover
from run_benchmarks.plan.kubernetes import check_run
from run_benchmarks.plan.machine import read_machine
from run_benchmarks.plan.meters import check_passwords
from run_benchmarks.plan.problems import ConfigError, NoValidCaseError, Problems
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import (
    CasePlan,
    CaseSettings,
    ClusterSettings,
    Plan,
    RunSettings,
    VendorChoice,
    VendorSettings,
)
from run_benchmarks.plan.secrets import Secrets, marks_in, secrets_of
from run_benchmarks.plan.settings import (
    NO_VENDOR,
    read_run_settings,
    read_vendor_choice,
    read_vendor_settings,
    require_devices,
    vendor_sections,
)
from run_benchmarks.plan.shell_file import read_script
from run_benchmarks.plan.tool_options import check_tool
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import find_vendors, read_vendor, report_no_vendor
from run_benchmarks.stages.tree import tree_problems

CLUSTER_CONF = "cluster_conf.py"
TEST_CONF = "test_conf.py"


def load_plan(
    config_dir: Path,
    training_dir: Path,
    *,
    only_cases: Sequence[str] | None = None,
    log_path: Path | None = None,
    continue_from: str | None = None,
    above: ConfigFile | None = None,
) -> Plan:
    """Read `cluster_conf.py` and `test_conf.py` in `config_dir`, `machine_conf.py`, and all that they lead to.

    Args:
        training_dir: the controller's copy of `training/`.
        only_cases: names of the cases to run instead of those in CASES (`--cases`).
        log_path: where results go instead of the file's log path (`--log-path`).
        continue_from: the earlier run whose checkpoints the rounds go on from (`--continue-from`).
        above: what stands in the place of settings of `test_conf.py`.

    Raises:
        ConfigError: something is wrong; it holds all problems of all files.
        NoValidCaseError: the two files are right, but no case can be run with what lies in `training_dir`.
    """
    with _no_bytecode():
        planner = _Planner(config_dir, training_dir.resolve(), above)
        plan = planner.plan(only_cases, log_path, continue_from or "")
    return replace(plan, options=place_options(config_dir, log_path))


def load_settings(
    config_dir: Path, training_dir: Path, log_path: Path | None = None
) -> tuple[ClusterSettings, RunSettings]:
    """The hosts and the run's settings alone, for who has to do with neither a vendor nor a case.

    Raises:
        ConfigError: something is wrong with the two files, their cases aside.
    """
    with _no_bytecode():
        return _Planner(config_dir, training_dir.resolve()).settings(log_path)


def load_hosts(config_dir: Path, training_dir: Path, log_path: Path | None = None) -> Plan:
    """A plan without cases: the hosts and the run's settings, for who looks at the hosts themselves.

    Raises:
        ConfigError: something is wrong with the two files, their cases aside.
    """
    with _no_bytecode():
        planner = _Planner(config_dir, training_dir.resolve())
        cluster, run = planner.settings(log_path, with_meters=True)
    options = place_options(config_dir, log_path)
    return Plan(training_dir.resolve(), cluster, run, (), options, secrets=planner.secrets)


def load_vendors(config_dir: Path, training_dir: Path) -> dict[str, Vendor]:
    """The vendors that hosts are listed under in HOSTS, or the one that VENDOR names, as far as there is any.

    Raises:
        ConfigError: something is wrong with one of them.
    """
    with _no_bytecode():
        return _Planner(config_dir, training_dir.resolve()).vendors()


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Leave no `__pycache__` beside the user's files: Python compares whole seconds and the file's size, and
    would run the old file again if it was edited right after a run, say from "32G" to "64G".
    """
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


class _Planner:
    """`file_problems` are those of the two files themselves, `case_problems` those of what they lead to."""

    def __init__(self, config_dir: Path, training_dir: Path, above: ConfigFile | None = None) -> None:
        self.training_dir = training_dir
        self.file_problems = Problems()
        self.case_problems = Problems()
        shipped = training_dir / "run_benchmarks" / "config"
        remedy = f"give the folder that holds it with --config, or copy the one from {shipped}"
        if not config_dir.is_dir():
            self.file_problems.add(config_dir, "--config", None, "there is no such folder", remedy)
            raise ConfigError(self.file_problems.all)
        self.cluster_conf = read_config_file(
            config_dir / CLUSTER_CONF,
            self.file_problems,
            remedy,
            provided=PROVIDED,
        )
        self.test_conf = read_config_file(config_dir / TEST_CONF, self.file_problems, remedy)
        if self.test_conf and above:
            self.test_conf = self.test_conf.under(above)
        self.machine = read_machine(training_dir, self.file_problems)
        self._hide(self._secrets_of_files())

    def _hide(self, secrets: Secrets) -> None:
        """From here on no problem shows these."""
        self.secrets = self.file_problems.secrets = self.case_problems.secrets = secrets

    def _secrets_of_files(self) -> Secrets:
        files = [file for file in (self.cluster_conf, self.test_conf, self.machine.file) if file is not None]
        names = marks_in(self.test_conf.values) if self.test_conf else []
        return secrets_of(names, *(file.values for file in files))

    def _secrets_of_cases(self, run: RunSettings, cases: Sequence[CasePlan]) -> Secrets:
        """Those of the files, and what pip, the vendors and the cases bring besides."""
        secrets = self.secrets.with_those_of(run.pip.options)
        for case in cases:
            text = read_script(self.training_dir, case.files.environment_script)
            secrets = secrets.with_those_of(case.parameters, case.container_options, text)
        return secrets

    def plan(self, only_cases: Sequence[str] | None, log_path: Path | None, continue_from: str) -> Plan:
        cluster, run, reader = self._settings(log_path)
        self._check_meters(cluster)
        if cluster.kubernetes:
            check_run(cluster.kubernetes, run.uses_images, run.image_registry, reader)
        choice = read_vendor_choice(reader)
        settings = read_cases(reader, only_cases, choice.vendor)
        sections = vendor_sections(reader, choice, self.machine.vendors)
        of_vendors = read_vendor_settings(reader, sections)
        reader.report_rest(is_case_dict, {"cluster_conf.py": [ClusterSettings]})
        self._check_vendor_names(cluster, choice, reader)
        vendors = self._vendors(choice.vendor, settings, reader, of_vendors)
        cases = [self._case(case, cluster, run, vendors, of_vendors, reader.file) for case in settings]
        valid = [case for case in cases if case is not None]
        self._hide(self._secrets_of_cases(run, valid))
        check_handover(reader, of_vendors, valid if run.uses_images else (), self.training_dir)
        check_tool(reader, cluster, run, valid)
        earlier = find_earlier(continue_from, run.log_path, valid, self.training_dir)
        check_continuation(valid, run, earlier, reader.file, self.file_problems)
        self.file_problems.extend(tree_problems(self.training_dir, run.log_path))
        self._raise_if_wrong(settings, valid, reader.file)
        used = self.machine.use(reader.file, self.secrets, sections, {case.vendor.name for case in valid})
        run = replace(run, machine=used)
        done, uid = earlier.done, earlier.uid
        return Plan(self.training_dir, cluster, run, tuple(valid), (), uid, done, self.secrets)

    def settings(
        self, log_path: Path | None, *, with_meters: bool = False
    ) -> tuple[ClusterSettings, RunSettings]:
        cluster, run, _ = self._settings(log_path)
        if with_meters:
            self._check_meters(cluster)
        if self.file_problems:
            raise ConfigError(self.file_problems.all)
        return cluster, run

    def vendors(self) -> dict[str, Vendor]:
        cluster, _, reader = self._settings(None)
        choice = read_vendor_choice(reader)
        conf = self.cluster_conf
        groups = {name: (conf.where("HOSTS", name), "HOSTS") for name in cluster.groups} if conf else {}
        named = groups or {choice.vendor: (reader.file.where("VENDOR"), "VENDOR")}
        vendors = {
            name: read_vendor(name, self.training_dir, *place, self.file_problems)
            for name, place in named.items()
            if name != NO_VENDOR
        }
        if self.file_problems:
            raise ConfigError(self.file_problems.all)
        return {name: vendor for name, vendor in vendors.items() if vendor is not None}

    def _settings(self, log_path: Path | None) -> tuple[ClusterSettings, RunSettings, Reader]:
        """The hosts and the run's settings; where one of the files cannot be read, the other's problems too."""
        cluster = ClusterSettings(hosts=())
        if self.cluster_conf is not None:
            cluster = read_cluster(Reader(self.cluster_conf, self.file_problems))
        if self.test_conf is None:
            raise ConfigError(self.file_problems.all)
        reader = Reader(self.machine.below(self.test_conf), self.file_problems)
        run = read_run_settings(reader, self.training_dir, log_path)
        return cluster, replace(run, machine=self.machine.use(reader.file, self.secrets, {})), reader

    def _check_meters(self, cluster: ClusterSettings) -> None:
        """The meters' passwords must be where it is said that they are, for who is to read the meters."""
        if self.cluster_conf is not None and cluster.meters:
            reader = Reader(self.cluster_conf, self.file_problems)
            self._hide(self.secrets.and_those(check_passwords(reader, cluster.meters)))

    def _check_vendor_names(self, cluster: ClusterSettings, choice: VendorChoice, reader: Reader) -> None:
        """A misspelt vendor in HOSTS or VENDORS would be a setting that does nothing."""
        vendors = find_vendors(self.training_dir)
        named = [(reader.file, ("VENDORS", name)) for name in choice.vendors]
        if self.cluster_conf is not None:
            named += [(self.cluster_conf, ("HOSTS", name)) for name in cluster.groups]
        if self.machine.file is not None:
            named += [(self.machine.file, ("VENDORS", name)) for name in self.machine.vendors]
        for file, entry in named:
            if entry[1] not in vendors:
                where = file.where(*entry)
                report_no_vendor(entry[1], self.training_dir, where, subject(entry), self.file_problems)

    def _vendors(
        self,
        default: str,
        settings: Sequence[CaseSettings],
        reader: Reader,
        of_vendors: Mapping[str, VendorSettings],
    ) -> dict[str, Vendor]:
        """The vendors of the cases and the default one, as far as they can be had."""
        named = {default: (reader.file.where("VENDOR"), "VENDOR")}
        for case in settings:
            named.setdefault(case.vendor, (where_case(reader.file, case), f"{case.name}: vendor"))
        named.pop(NO_VENDOR, None)
        vendors = {}
        for name, (where, setting) in named.items():
            vendor = read_vendor(name, self.training_dir, where, setting, self.case_problems)
            if vendor is None:
                continue
            vendors[name] = vendor
            if not vendor.described:
                require_devices(vendor, of_vendors.get(name, VendorSettings()), name == default, reader)
        return vendors

    def _case(
        self,
        case: CaseSettings,
        cluster: ClusterSettings,
        run: RunSettings,
        vendors: Mapping[str, Vendor],
        of_vendors: Mapping[str, VendorSettings],
        file: ConfigFile,
    ) -> CasePlan | None:
        where = where_case(file, case)
        check_hosts(case, where, cluster, self.file_problems)
        resolver = CaseResolver(case, where, run, self.training_dir, self.case_problems)
        return resolver.plan(cluster, vendors.get(case.vendor), of_vendors.get(case.vendor, VendorSettings()))

    def _raise_if_wrong(
        self, settings: Sequence[CaseSettings], cases: Sequence[CasePlan], file: ConfigFile
    ) -> None:
        if not self.file_problems and not settings:
            remedy = 'add a case, e.g. CASES = {"bert:pytorch:cpu:1:2:1": "/data/bert"}'
            written = file.values["CASES"]
            self.case_problems.add(file.where("CASES"), "CASES", written, "has no case in it", remedy)
        problems = [*self.file_problems.all, *self.case_problems.all]
        if problems and not self.file_problems and not cases:
            raise NoValidCaseError(problems)
        if problems:
            raise ConfigError(problems)
