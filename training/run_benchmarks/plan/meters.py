"""POWER_METERS of cluster_conf.py: meters of whole hosts that this machine asks, such as their BMCs."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass as model

from run_benchmarks.plan import values
from run_benchmarks.plan.config_file import Entry
from run_benchmarks.plan.host_ranges import expand, fold
from run_benchmarks.plan.reader import Reader, fields_of
from run_benchmarks.user_path import user_path
from utils.errors import FlagPerfError
from utils.numbers import counted

SETTING = "POWER_METERS"
# How the address of a meter begins -> its kind, which is the name of the source in MONITORS and in results too, and
# the port where none is given.
SCHEMES: Mapping[str, tuple[str, int]] = {"https": ("redfish", 443), "ipmi": ("ipmi", 623)}
LARGEST_FILE = 4096  # bytes of a password's file
OWN_ALONE = "chmod 600 it: nobody but you may read it"


@model(frozen=True)
class MeterConf:
    """An entry of POWER_METERS as it is written; `address` and `chassis` may stand for as many as there are hosts."""

    address: Annotated[values.Text, Field(examples=['"https://10.9.1.2"'])]
    user: values.Text = ""
    pass_env: values.EnvironmentName = ""
    pass_file: values.Text = ""
    chassis: values.Text = ""
    sensors: values.Texts = ()
    ca_file: values.Text = ""
    accept_self_signed: values.Flag = False
    cipher_suite: values.Count | None = None


@dataclass(frozen=True)
class Meter:
    """A meter of one host. Its password is not among this, but where it is.

    kind: of SCHEMES. chassis, sensors: which part of what the meter has is the host; empty: it is chosen.
    ca_file: verifies the meter's certificate in place of this machine's own authorities. shared_with: other hosts
    that have the same meter: what it reads is of all of them together.
    """

    kind: str
    host: str
    port: int
    user: str = ""
    pass_env: str = ""
    pass_file: str = ""
    chassis: str = ""
    sensors: tuple[str, ...] = ()
    ca_file: str = ""
    accept_self_signed: bool = False
    cipher_suite: int | None = None
    shared_with: tuple[str, ...] = field(default=())

    @property
    def where(self) -> str:
        """For a reader: `redfish at 10.9.1.2`."""
        port = "" if any((self.kind, self.port) == known for known in SCHEMES.values()) else f":{self.port}"
        return f"{self.kind} at {self.host}{port}" + (f", chassis {self.chassis}" if self.chassis else "")

    def password(self) -> str:
        """The password, as the environment or the file has it now; empty where none is given.

        Raises:
            FlagPerfError: it is not there, or its file may be read by others.
        """
        if self.pass_env:
            # taken out: what is started on this machine, a case's script say, gets the environment that is left
            if given := os.environ.pop(self.pass_env, ""):
                _FROM_ENVIRONMENT[self.pass_env] = given
            if self.pass_env not in _FROM_ENVIRONMENT:
                remedy = "export it in the shell that starts run.py, or give pass_file"
                name = self.pass_env if self.pass_env.isupper() else "variable of the name that pass_env says"
                raise FlagPerfError(f"the environment has no {name}", remedy=remedy)
            return _FROM_ENVIRONMENT[self.pass_env]
        return _password_in(_path("pass_file", self.pass_file), self.pass_file) if self.pass_file else ""


_FROM_ENVIRONMENT: dict[str, str] = {}
# In the settings of a cluster: host -> its meter. As the file has them they are read by `read_meters`.
Meters = Annotated[
    dict[str, Meter],
    BeforeValidator(lambda value: value if _are_read(value) else {}),
    Field(examples=['{"node[001-016]": {"address": "https://10.9.1.[1-16]"}}']),
]


def read_meters(reader: Reader, hosts: Sequence[str] | None) -> dict[str, Meter]:
    """Host -> its meter. What is wrong is noted. hosts: those that there are; None where nobody knows yet."""
    written = reader.file.values.get(SETTING)
    if written is None:
        return {}
    if not isinstance(written, dict):
        message = "has the wrong type: it is no dict"
        reader.problem(SETTING, message, 'write {"node1": {"address": "https://10.9.1.2", "user": "reader"}}')
        return {}
    meters: dict[str, Meter] = {}
    for key, section in written.items():
        for host, meter in _of_entry(reader, key, section, hosts):
            if host in meters:
                message = f"{host} stands in two entries"
                reader.problem((SETTING, key), message, "a host has one meter: remove one of the two", key)
            meters[host] = meter
    return _shared(meters)


def check_passwords(reader: Reader, meters: Mapping[str, Meter]) -> frozenset[str]:
    """The meters' passwords, for what must not be shown; what is not there is noted, each place once."""
    passwords, told = set(), set()
    for meter in meters.values():
        try:
            passwords.add(meter.password())
        except FlagPerfError as error:
            if error.message not in told:
                reader.problem(SETTING, error.message, error.remedy, meter.where)
            told.add(error.message)
    return frozenset(passwords - {""})


def _are_read(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, Meter) for each in value.values())


def _of_entry(
    reader: Reader, key: Any, section: Any, hosts: Sequence[str] | None
) -> Iterator[tuple[str, Meter]]:
    entry: Entry = (SETTING, key)
    if not isinstance(section, dict) or not isinstance(key, str):
        remedy = (
            'write "node1": {"address": "https://10.9.1.2", "user": "reader", "pass_env": "BMC_PASSWORD"}'
        )
        reader.problem(entry, "is no meter of a host", remedy, str(key))
        return
    if "password" in section:
        message = "a password does not stand in this file"
        remedy = "name where it is: pass_env, a variable of the environment, or pass_file, a file of yours"
        reader.problem((*entry, "password"), message, remedy, "***")
        section = {name: value for name, value in section.items() if name != "password"}
    reader.report_unknown_keys(entry, section, list(fields_of(MeterConf)))
    conf = reader.read(MeterConf, section, entry)
    try:
        names = expand(key)
    except ValueError as error:
        reader.problem(entry, str(error), 'write ranges as in HOSTS: "node[001-016]"', key)
        return
    unknown = fold([name for name in names if hosts is not None and name not in hosts])
    if unknown:
        message = f"{unknown}: HOSTS and SPARE_HOSTS have no such host"
        reader.problem(entry, message, f"write hosts as they stand there: {fold(hosts or ())}", key)
    if conf is None or unknown:
        return
    try:
        meters = _meters_of(conf, len(names))
    except FlagPerfError as error:
        reader.problem((*entry, error.where), error.message, error.remedy, section.get(error.where))
        return
    yield from zip(names, meters, strict=True)


def _meters_of(conf: MeterConf, count: int) -> list[Meter]:
    """The meters of so many hosts; FlagPerfError, `where` the key, says what is wrong."""
    addresses = _each("address", conf.address, count)
    chassis = _each("chassis", conf.chassis, count)
    if conf.pass_env and conf.pass_file:
        raise FlagPerfError("stands beside pass_env", where="pass_file", remedy="keep one of the two")
    if (conf.pass_env or conf.pass_file) and not conf.user:
        raise FlagPerfError("is empty, and there is a password", where="user", remedy="write whose it is")
    return [_meter(conf, address, name) for address, name in zip(addresses, chassis, strict=True)]


def _each(key: str, text: str, count: int) -> Sequence[str]:
    """A text for each host: one for all, or as many as a range in it stands for."""
    if re.search(r"\[[^][]*:", text):  # an IPv6 address
        return [text] * count
    try:
        texts = expand(text)
    except ValueError as error:
        raise FlagPerfError(str(error), where=key, remedy="write ranges as in HOSTS") from None
    if len(texts) not in (1, count):
        message = f"stands for {len(texts)}, and the entry for {counted(count, 'host')}"
        raise FlagPerfError(message, where=key, remedy="write one for all, or one for each")
    return texts if len(texts) == count else texts * count


def _meter(conf: MeterConf, address: str, chassis: str) -> Meter:
    remedy = 'write "https://10.9.1.2" for Redfish, or "ipmi://10.9.1.2" for IPMI'
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise FlagPerfError(f"is no address of a meter: {error}", where="address", remedy=remedy) from None
    if parts.scheme not in SCHEMES or not host or host.startswith("-"):
        raise FlagPerfError("is no address of a meter", where="address", remedy=remedy)
    if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
        message = "has more in it than a host and a port"
        raise FlagPerfError(message, where="address", remedy=f"{remedy}; the user stands in user")
    kind, usual = SCHEMES[parts.scheme]
    others = {"redfish": ("sensors", "cipher_suite"), "ipmi": ("chassis", "ca_file", "accept_self_signed")}
    for name in others[kind]:
        if getattr(conf, name):
            raise FlagPerfError(f"is nothing that {kind} has", where=name, remedy="remove it")
    if kind == "ipmi" and not conf.user:
        raise FlagPerfError("is not set", where="user", remedy="IPMI over the network needs one: write it")
    ca_file = str(_path("ca_file", conf.ca_file).absolute()) if conf.ca_file else ""
    if ca_file and not Path(ca_file).is_file():
        raise FlagPerfError("names no file on this machine", where="ca_file", remedy=f"correct it: {ca_file}")
    return Meter(
        kind, host, port or usual, conf.user, conf.pass_env, conf.pass_file, chassis, conf.sensors, ca_file,
        conf.accept_self_signed, conf.cipher_suite,
    )  # fmt: skip


def _path(key: str, written: str) -> Path:
    try:
        return user_path(written)
    except FlagPerfError as error:
        raise FlagPerfError(f"{_shown(written)!r} {error.message}", where=key, remedy=error.remedy) from error


def _shown(written: str) -> str:
    """A path as a message shows it: what does not look like one may be the password that was to be in it."""
    return written if written.startswith(("/", "~", ".")) else "***"


def _shared(meters: Mapping[str, Meter]) -> dict[str, Meter]:
    """The meters, those that several hosts have being marked."""
    hosts: dict[tuple[object, ...], list[str]] = {}
    for host, meter in meters.items():
        hosts.setdefault(_identity(meter), []).append(host)
    return {
        host: replace(meter, shared_with=tuple(each for each in hosts[_identity(meter)] if each != host))
        for host, meter in meters.items()
    }


def _identity(meter: Meter) -> tuple[object, ...]:
    return meter.kind, meter.host, meter.port, meter.chassis, meter.sensors


def _password_in(path: Path, written: str) -> str:
    """The first line of a file that is ours alone."""
    try:
        # a pipe is refused below, and not waited for
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            state = os.fstat(file.fileno())
            content = file.read(LARGEST_FILE) if stat.S_ISREG(state.st_mode) else b""
    except OSError as error:
        message = f"{_shown(written)} cannot be read: {error.strerror}"
        raise FlagPerfError(message, remedy="correct pass_file") from error
    if not stat.S_ISREG(state.st_mode) or state.st_uid not in (os.getuid(), 0):
        raise FlagPerfError(f"{path} is no file of yours", remedy=OWN_ALONE)
    if state.st_mode & 0o077:
        raise FlagPerfError(f"{path} may be read by others", remedy=OWN_ALONE)
    password = content.decode("utf-8", "replace").split("\n", 1)[0].rstrip("\r")
    if not password:
        raise FlagPerfError(f"{path} holds no password", remedy="write it as the file's first line")
    return password
