"""`cluster_conf.py`: the hosts and how they are reached."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from run_benchmarks.plan.config_file import Entry
from run_benchmarks.plan.host_ranges import expand, expand_all, fold
from run_benchmarks.plan.kubernetes import kubernetes, read_kubernetes
from run_benchmarks.plan.meters import read_meters
from run_benchmarks.plan.problems import Problems, listing
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import CaseSettings, ClusterSettings, RunSettings, VendorSettings
from run_benchmarks.plan.slurm import SlurmSettings, own_nodes, read_slurm, slurm
from utils.numbers import counted

_FILE = "cluster_conf.py"
# What HOSTS may be made of in the place of names.
PROVIDED = {"slurm": slurm, "kubernetes": kubernetes}
LOOPBACK_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")


def read_cluster(reader: Reader) -> ClusterSettings:
    """The settings of `cluster_conf.py`. Where there are problems, the reader has noted them."""
    settings = _read_settings(reader) or ClusterSettings(hosts=())
    reader.names.add("HOSTS_PORTS")  # of FlagPerf's TensorFlow launcher alone: existing files have it
    reader.report_rest(lambda name, value: False, {"test_conf.py": [RunSettings, VendorSettings]})
    _check_written(settings, reader)
    groups, spare_groups = _expanded(settings.groups), _expanded(settings.spare_groups)
    spares = _every(spare_groups) or expand_all(settings.spares)
    hosts = _every(groups) or expand_all(settings.hosts)
    _check_spares(hosts, spares, settings, reader)
    if settings.scheduler and spares:
        message = f"has hosts of its own, and those of a run come from {settings.scheduler}"
        reader.problem("SPARE_HOSTS", message, "remove it: a round that is run again gets other nodes")
        spares = ()
    every = tuple(dict.fromkeys((*hosts, *spares)))
    meters = read_meters(reader, None if settings.scheduler else every)
    return replace(
        settings, hosts=every, groups=groups, spares=spares, spare_groups=spare_groups, meters=meters
    )


def _read_settings(reader: Reader) -> ClusterSettings | None:
    if job := read_slurm(reader):
        return _read_on_slurm(reader, job)
    if pods := read_kubernetes(reader):
        others = {name: value for name, value in reader.file.values.items() if name != "HOSTS"}
        return reader.read(ClusterSettings, others, hosts=(), kubernetes=pods)
    if asking := _vendors_that_ask(reader.file.values.get("HOSTS")):
        message = "hosts that a scheduler grants cannot be asked for by vendor"
        remedy = (
            "write a configuration folder for each vendor, and run each with its --config; "
            "`run.py compare` has the results of several runs side by side"
        )
        reader.problem(("HOSTS", asking[0]), message, remedy)
        others = {name: value for name, value in reader.file.values.items() if name != "HOSTS"}
        return reader.read(ClusterSettings, others, hosts=())
    return reader.read(ClusterSettings)


def _vendors_that_ask(hosts: Any) -> list[str]:
    """The vendors in whose place of HOSTS is what a scheduler is asked for."""
    groups = hosts.items() if isinstance(hosts, dict) else ()
    return [
        str(vendor)
        for vendor, entry in groups
        if entry in list(PROVIDED) or (isinstance(entry, dict) and entry.keys() & PROVIDED.keys())
    ]


def _read_on_slurm(reader: Reader, job: SlurmSettings) -> ClusterSettings | None:
    """The settings where HOSTS lists none; those of the job that run.py is in are known all the same."""
    others = {name: value for name, value in reader.file.values.items() if name != "HOSTS"}
    try:
        hosts = own_nodes() if job.inside else ()
    except ValueError as error:
        reader.problem("HOSTS", f"SLURM_JOB_NODELIST cannot be read: {error}", "see what this job sets it to")
        hosts = ()
    return reader.read(ClusterSettings, others, hosts=hosts, slurm=job)


def _expanded(groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {vendor: expand_all(entries) for vendor, entries in groups.items()}


def _every(groups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(host for hosts in groups.values() for host in hosts))


def _check_spares(
    hosts: Sequence[str], spares: Sequence[str], settings: ClusterSettings, reader: Reader
) -> None:
    """Note spares that are no further hosts, or of which nobody knows whose they are."""
    written = set(map(_canonical, hosts))
    both = fold([host for host in spares if _canonical(host) in written])
    if both:
        message = "stands in HOSTS too: a spare has no place of its own"
        reader.problem("SPARE_HOSTS", message, "remove it from one of the two", both)
    if spares and bool(settings.groups) != bool(settings.spare_groups):
        shape = 'a dict: {"vendor": ["10.1.2.9"]}' if settings.groups else 'a list: ["10.1.2.9"]'
        reader.problem("SPARE_HOSTS", "is of another form than HOSTS", f"write it as HOSTS is, as {shape}")
    for vendor in settings.spare_groups.keys() - settings.groups.keys() if settings.groups else ():
        message = "HOSTS has no hosts of this vendor"
        reader.problem(
            ("SPARE_HOSTS", vendor), message, f"HOSTS has {listing(list(settings.groups))}", vendor
        )


def is_loopback(host: str) -> bool:
    """Whether other machines cannot reach this machine by `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES


def check_hosts(case: CaseSettings, where: str, cluster: ClusterSettings, problems: Problems) -> None:
    """Note where there are not the hosts that a case needs."""
    hosts = cluster.hosts_of(case.vendor)
    if not hosts and (not cluster.hosts or case.vendor in cluster.groups):  # cluster_conf.py has a problem
        return
    if not hosts:
        message = f"{_FILE} has no hosts of the vendor {case.vendor}"
        remedy = f'add them: HOSTS = {{"{case.vendor}": [...]}}; it has {listing(list(cluster.groups))}'
        problems.add(where, f"{case.name}: vendor", case.vendor, message, remedy)
    elif case.nnodes > len(hosts):
        group = f"HOSTS[{case.vendor!r}]" if cluster.groups else "HOSTS"
        there = "of the job that run.py is in" if cluster.slurm else f"in {group} of {_FILE}"
        message = f"is more than the {counted(len(hosts), 'host')} {there}"
        more = f"ask Slurm for {case.nnodes} nodes" if cluster.slurm else f"add hosts to {group}"
        remedy = f"{more}, or set nnodes to {len(hosts)} at most"
        problems.add(where, f"{case.name}: nnodes", case.nnodes, message, remedy)
    candidates = (*hosts[: case.nnodes], *cluster.spares_of(case.vendor))
    loopback = [host for host in candidates if is_loopback(host)]
    if case.nnodes > 1 and loopback:
        message = f"the other nodes cannot reach this machine as {loopback[0]!r}"
        remedy = f"replace {loopback[0]!r} in HOSTS by this machine's name or address in their network"
        problems.add(where, f"{case.name}: nnodes", case.nnodes, message, remedy)


def _check_written(settings: ClusterSettings, reader: Reader) -> None:
    """Note lists that are empty, and hosts that stand twice in one."""
    remedy = 'list at least one host: ["10.1.2.2", "10.1.2.3"]; this machine alone is ["localhost"]'
    if reader.file.values.get("HOSTS") in ([], (), {}):
        reader.problem("HOSTS", "is empty", remedy)
    _check_each_once(("HOSTS",), settings.hosts, reader)
    for vendor, hosts in settings.groups.items():
        _check_each_once(("HOSTS", vendor), hosts, reader)
        if not hosts:
            reader.problem(("HOSTS", vendor), "is empty", remedy, [])


def _check_each_once(setting: Entry, entries: Sequence[str], reader: Reader) -> None:
    written: dict[str, str] = {}  # host -> the entry that it stands in
    for number, entry in enumerate(entries):
        hosts = {_canonical(host): host for host in expand(entry)}
        twice = {name: host for name, host in hosts.items() if name in written}
        if twice:
            which = "the host" if [*twice.values()] == [entry] else fold(twice.values())
            earlier = list(dict.fromkeys(written[name] for name in twice))
            alone = "by itself too" if earlier == [*twice.values()] else f"in {listing(earlier)} too"
            where = "twice" if earlier == [entry] else alone
            message = (
                f"{which} stand{'s' * (len(twice) == 1)} {where}; each node rank needs a host of its own"
            )
            reader.problem((*setting, number), message, "remove one of the two", entry)
        written |= dict.fromkeys(hosts, entry)


def _canonical(host: str) -> str:
    """One spelling for all spellings of a host: names have no case, addresses have a short form."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().rstrip(".")
