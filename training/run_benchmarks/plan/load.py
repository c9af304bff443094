"""From the user's two files to a plan: everything is read and checked, and no host is touched."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from run_benchmarks.plan import kinds
from run_benchmarks.plan.case_files import CaseResolver
from run_benchmarks.plan.cases import is_case_dict, read_cases, where_case
from run_benchmarks.plan.cluster import is_loopback, read_cluster
from run_benchmarks.plan.earlier import find_earlier
from run_benchmarks.plan.problems import ConfigError, NoValidCaseError, Problems, listing
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import (
    CasePlan,
    CaseSettings,
    ClusterSettings,
    Plan,
    RunSettings,
    Vendor,
)
from run_benchmarks.plan.restart import check_restart
from run_benchmarks.plan.settings import read_settings
from run_benchmarks.plan.source import read_source
from run_benchmarks.plan.vendor_settings import VendorSettings, read_vendor_settings, require_devices
from run_benchmarks.plan.vendors import find_vendors, read_vendor, report_no_vendor

CLUSTER_CONF = "cluster_conf.py"
TEST_CONF = "test_conf.py"


def load_plan(
    config_dir: Path,
    training_dir: Path,
    *,
    only_cases: Sequence[str] | None = None,
    log_path: Path | None = None,
    continue_from: str | None = None,
) -> Plan:
    """Read `cluster_conf.py` and `test_conf.py` in `config_dir` and every file that they lead to.

    Args:
        training_dir: the controller's copy of `training/`.
        only_cases: names of the cases to run instead of those in CASES (`--cases`).
        log_path: where results go instead of the file's log path (`--log-path`).
        continue_from: the earlier run whose checkpoints the rounds go on from (`--continue-from`).

    Raises:
        ConfigError: something is wrong; it holds all problems of all files.
        NoValidCaseError: the two files are right, but no case can be run with what lies in `training_dir`.
    """
    with _no_bytecode():
        planner = _Planner(config_dir, training_dir.resolve())
        return planner.plan(only_cases, log_path, continue_from or "")


def load_settings(config_dir: Path, training_dir: Path) -> tuple[ClusterSettings, RunSettings]:
    """The hosts and the run's settings alone, for who has to do with neither a vendor nor a case.

    Raises:
        ConfigError: something is wrong with the two files, their cases aside.
    """
    with _no_bytecode():
        return _Planner(config_dir, training_dir.resolve()).settings()


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

    def __init__(self, config_dir: Path, training_dir: Path) -> None:
        self.training_dir = training_dir
        self.file_problems = Problems()
        self.case_problems = Problems()
        remedy = f"give the folder that holds it with --config, or copy the one from {_shipped(training_dir)}"
        self.cluster_conf = read_source(config_dir / CLUSTER_CONF, self.file_problems, remedy)
        self.test_conf = read_source(config_dir / TEST_CONF, self.file_problems, remedy)

    def plan(self, only_cases: Sequence[str] | None, log_path: Path | None, continue_from: str) -> Plan:
        cluster = self._cluster()
        if self.test_conf is None:
            raise ConfigError(self.file_problems.found)
        reader = Reader(self.test_conf, self.file_problems)
        default = self._default_vendor(reader)
        run = read_settings(reader, self.training_dir, log_path)
        settings = read_cases(reader, only_cases, default)
        of_vendors = read_vendor_settings(reader, default)
        reader.report_unknown(is_case_dict)
        self._check_vendor_names(cluster, of_vendors)
        vendors = self._vendors(default, settings, reader, of_vendors)
        cases = self._cases(settings, cluster, run, vendors, of_vendors)
        earlier = find_earlier(continue_from, run.log_path, cases)
        check_restart(cases, run, earlier, self.test_conf, self.file_problems)
        self._raise_if_wrong(settings, cases)
        if cluster is None:  # cannot be: it has left a problem
            raise ConfigError(self.file_problems.found)
        return Plan(self.training_dir, cluster, run, tuple(cases), earlier.uid, earlier.done)

    def settings(self) -> tuple[ClusterSettings, RunSettings]:
        cluster = self._cluster()
        if self.test_conf is None or cluster is None:
            raise ConfigError(self.file_problems.found)
        run = read_settings(Reader(self.test_conf, self.file_problems), self.training_dir, None)
        if self.file_problems:
            raise ConfigError(self.file_problems.found)
        return cluster, run

    def _cluster(self) -> ClusterSettings | None:
        if self.cluster_conf is None:
            return None
        return read_cluster(Reader(self.cluster_conf, self.file_problems))

    def _default_vendor(self, reader: Reader) -> str:
        vendors = find_vendors(self.training_dir)
        example = repr(vendors[0] if vendors else "nvidia")
        return reader.require("VENDOR", kinds.path_name, example) or ""

    def _check_vendor_names(
        self, cluster: ClusterSettings | None, of_vendors: Mapping[str, VendorSettings]
    ) -> None:
        """A misspelt vendor in HOSTS or VENDORS would be a setting that does nothing."""
        vendors = find_vendors(self.training_dir)
        written = self.test_conf.values.get("VENDORS") if self.test_conf else None
        sections = written if isinstance(written, dict) else ()
        named = [(self.test_conf, "VENDORS", name) for name in of_vendors if name in sections]
        named += [(self.cluster_conf, "HOSTS", name) for name in (cluster.groups if cluster else ())]
        for file, setting, name in named:
            if name not in vendors and file is not None:
                where, subject = file.where(setting, name), f"{setting}[{name!r}]"
                report_no_vendor(name, self.training_dir, where, subject, self.file_problems)

    def _vendors(
        self,
        default: str,
        settings: Sequence[CaseSettings],
        reader: Reader,
        of_vendors: Mapping[str, VendorSettings],
    ) -> dict[str, Vendor]:
        """The vendors of the cases and the default one, as far as they can be had."""
        source = reader.source
        named = {default: (source.where("VENDOR"), "VENDOR")} if default else {}
        for case in settings:
            named.setdefault(case.vendor, (where_case(source, case), f"{case.name}: vendor"))
        vendors = {}
        for name, (where, subject) in named.items():
            vendor = read_vendor(name, self.training_dir, where, subject, self.case_problems)
            if vendor is None:
                continue
            vendors[name] = vendor
            if not vendor.described:
                require_devices(vendor, of_vendors.get(name, VendorSettings()), name == default, reader)
        return vendors

    def _cases(
        self,
        settings: Sequence[CaseSettings],
        cluster: ClusterSettings | None,
        run: RunSettings,
        vendors: Mapping[str, Vendor],
        of_vendors: Mapping[str, VendorSettings],
    ) -> list[CasePlan]:
        """The cases that are valid."""
        assert self.test_conf is not None
        plans = []
        for case in settings:
            where = where_case(self.test_conf, case)
            if cluster is not None:
                self._check_hosts(case, where, cluster)
            self._check_launcher(case, where, run)
            resolver = CaseResolver(case, where, run, self.training_dir, self.case_problems)
            chosen = of_vendors.get(case.vendor, VendorSettings())
            hosts = cluster or ClusterSettings(hosts=())
            plans.append(resolver.plan(hosts, vendors.get(case.vendor), chosen))
        return [plan for plan in plans if plan is not None]

    def _check_hosts(self, case: CaseSettings, where: str, cluster: ClusterSettings) -> None:
        name = f"{case.name}: nnodes"
        hosts = cluster.hosts_of(case.vendor)
        group = f"HOSTS[{case.vendor!r}]" if cluster.groups else "HOSTS"
        if cluster.hosts and not hosts:
            message = f"{CLUSTER_CONF} has no hosts of the vendor {case.vendor}"
            remedy = f'add them: HOSTS = {{"{case.vendor}": [...]}}; it has {listing(list(cluster.groups))}'
            self.file_problems.add(where, f"{case.name}: vendor", case.vendor, message, remedy)
        elif case.nnodes > len(hosts):
            message = f"is more than the {len(hosts)} host(s) in {group} of {CLUSTER_CONF}"
            remedy = f"add hosts to {group}, or set nnodes to {len(hosts)} at most"
            self.file_problems.add(where, name, case.nnodes, message, remedy)
        loopback = [host for host in hosts[: case.nnodes] if is_loopback(host)]
        if case.nnodes > 1 and loopback:
            message = f"the other nodes cannot reach this machine as {loopback[0]!r}"
            remedy = f"replace {loopback[0]!r} in HOSTS by this machine's name or address in their network"
            self.file_problems.add(where, name, case.nnodes, message, remedy)

    def _check_launcher(self, case: CaseSettings, where: str, run: RunSettings) -> None:
        if run.rank_launcher == "torchrun" and case.framework_name != "pytorch":
            message = f"is PyTorch's, and {case.name} is a case of {case.framework_name}"
            remedy = 'set RANK_LAUNCHER = "flagperf", which starts the ranks of every framework'
            self.file_problems.add(where, "RANK_LAUNCHER", run.rank_launcher, message, remedy)

    def _raise_if_wrong(self, settings: Sequence[CaseSettings], cases: Sequence[CasePlan]) -> None:
        if not self.file_problems and not settings:
            assert self.test_conf is not None
            remedy = 'add a case, e.g. CASES = {"bert:pytorch:cpu:1:2:1": "/data/bert"}'
            written = self.test_conf.values["CASES"]
            where = self.test_conf.where("CASES")
            self.case_problems.add(where, "CASES", written, "has no case in it", remedy)
        found = [*self.file_problems.found, *self.case_problems.found]
        if found and not self.file_problems and not cases:
            raise NoValidCaseError(found)
        if found:
            raise ConfigError(found)


def _shipped(training_dir: Path) -> Path:
    return training_dir / "run_benchmarks" / "config"
