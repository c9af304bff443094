"""`cluster_conf.py`: the hosts and how they are reached."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from run_benchmarks.plan import kinds
from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.plan.source import Source

LOOPBACK_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")
_HOST_EXAMPLE = '["10.1.2.2", "10.1.2.3"]'


def read_cluster(reader: Reader) -> ClusterSettings:
    """The settings of `cluster_conf.py`. Where there are problems, the reader has noted them."""
    defaults = ClusterSettings(hosts=())
    hosts, groups = _read_hosts(reader)
    settings = ClusterSettings(
        hosts=hosts,
        groups=groups,
        ssh_port=reader.get("SSH_PORT", kinds.port, None),
        ssh_user=reader.get("SSH_USER", _user, None),
        ssh_connect_timeout_s=reader.get(
            "SSH_CONNECT_TIMEOUT", kinds.number(0, above=True), defaults.ssh_connect_timeout_s
        ),
        ssh_accept_new_host_keys=reader.get("SSH_ACCEPT_NEW_HOST_KEYS", kinds.flag, False),
        master_port=reader.get("MASTER_PORT", kinds.port, defaults.master_port),
        host_lost_after_s=reader.get(
            "HOST_LOST_AFTER", kinds.number(0, above=True), defaults.host_lost_after_s
        ),
    )
    # FlagPerf's TensorFlow launcher alone reads these ports; they are checked and otherwise left alone.
    reader.get("HOSTS_PORTS", kinds.texts("2222"), ())
    reader.report_unknown(lambda name, value: False)
    return settings


def is_loopback(host: str) -> bool:
    """Whether other machines cannot reach this machine by `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES


def _read_hosts(reader: Reader) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """All hosts, each once, and those of each vendor, where HOSTS is in groups."""
    written = reader.require("HOSTS", _hosts, _HOST_EXAMPLE)
    if written is None:
        return (), {}
    groups = written if isinstance(written, dict) else {"": written}
    if not groups or not all(groups.values()):
        remedy = f'list at least one host: HOSTS = {_HOST_EXAMPLE}; this machine alone is ["localhost"]'
        reader.unfit("HOSTS", "is empty", remedy)
    for hosts in groups.values():
        _check_hosts(hosts, reader)
    every = tuple(dict.fromkeys(host for hosts in groups.values() for host in hosts))
    return every, written if isinstance(written, dict) else {}


def _hosts(value: Any) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """A list of hosts, or one for each vendor."""
    check = kinds.texts("10.1.2.2")
    if isinstance(value, dict):
        return {kinds.path_name(vendor): check(hosts) for vendor, hosts in value.items()}
    return check(value)


def _check_hosts(hosts: tuple[str, ...], reader: Reader) -> None:
    seen: set[str] = set()
    for host in hosts:
        _check_host(host, reader, seen)
        seen.add(_canonical(host))


def _check_host(host: str, reader: Reader, seen: set[str]) -> None:
    where = _where(reader.source, host)
    try:
        check_host_name(host)
    except UnfitError as unfit:
        reader.problems.add(where, "HOSTS", host, unfit.message, unfit.remedy)
        return
    if _canonical(host) in seen:
        message = "the host stands twice; each node rank needs a host of its own"
        reader.problems.add(where, "HOSTS", host, message, "remove one of the two")


def _where(source: Source, host: str) -> str:
    return source.where("HOSTS", host)


def _canonical(host: str) -> str:
    """One spelling for all spellings of a host: names have no case, addresses have a short form."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().rstrip(".")


def check_host_name(host: str) -> None:
    """Raise UnfitError unless `host` is a name, an ssh alias or an address."""
    if "@" in host:
        remedy = f"write {host.rpartition('@')[2]!r} here and the user as SSH_USER, or into your ssh config"
        raise UnfitError("is not a host but user@host", remedy)
    if re.fullmatch(r"[^:\s]+:\d+", host):
        raise UnfitError(
            "has a port in it", f"write {host.partition(':')[0]!r} here and the port as SSH_PORT"
        )
    if re.fullmatch(r"[\d.]+", host) or ":" in host:
        _check_address(host)
    elif not re.fullmatch(r"[A-Za-z0-9_]([\w.-]{0,251}[A-Za-z0-9_.])?", host, re.ASCII):
        raise UnfitError(
            "cannot be the name of a host", 'write one name or address an item, e.g. "10.1.2.2" or "node1"'
        )


def _check_address(host: str) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise UnfitError("is not an IP address", "correct it: four numbers from 0 to 255, or IPv6") from None


def _user(value: object) -> str:
    user = kinds.text("alice")(value)
    if not re.fullmatch(r"[A-Za-z0-9_][^\s:/@]*", user):
        raise UnfitError("cannot be a user's name", 'write the user who logs in on the hosts, e.g. "alice"')
    return user
