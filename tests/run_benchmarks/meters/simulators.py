"""SIMULATED BMCs: Debian's `ipmi_sim` under the real ipmitool, and OpenStack's `sushy-static` by HTTPS.

Both read what they tell from files at each request: the power moves while they run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from run_benchmarks.meters import open_meter
from run_benchmarks.plan.meters import Meter
from tests.ports import free_port

USER, PASSWORD = "reader", "Wj7-BMC-secret"
WATTS_PER_COUNT = 4  # of the simulated sensors, whose raw readings have eight bits
Resources = dict[str, dict[str, Any]]  # by their paths below /redfish/v1
SYSTEM_BOARD, POWER_SUPPLY = 7, 10  # entity IDs
FIRST_SUPPLY = 100  # from which number on the simulated sensors of power supplies' states are
STATIC = Path(sys.executable).with_name("sushy-static")


@dataclass(frozen=True)
class Simulated:
    """A BMC at a port of this machine. folder: with what it tells. ca_file: its own certificate, if it has one."""

    port: int
    folder: Path
    ca_file: str = ""

    def set_sensor(self, name: str, watts: int) -> None:
        """What a sensor of an IPMI BMC tells from now on."""
        _replace(self.folder / name, f"{watts // WATTS_PER_COUNT}\n")

    def set_present(self, name: str, *, is_present: bool) -> None:
        """Whether the power supply of a sensor is in its bay."""
        _replace(self.folder / f"{name} Status", f"{int(is_present)}\n")

    def set_resource(self, path: str, content: Mapping[str, Any]) -> None:
        """What lies at a path below /redfish/v1 from now on."""
        file = self.folder / path / "index.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, json.dumps(content))


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


@contextmanager
def running(argv: Sequence[str | Path], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A simulator while it runs."""
    with (folder / "simulator.log").open("wb") as log:
        process = subprocess.Popen(list(map(str, argv)), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


# ---- IPMI


@contextmanager
def ipmi_bmc(folder: Path, sensors: Mapping[str, int], supplies: Sequence[str] = ()) -> Iterator[Simulated]:
    """One with these sensors, in watts. `ipmi_sim` has neither DCMI nor cipher suite 17.

    sensors: what stands behind a # in a name tells apart sensors that have the same one for the BMC.
    supplies: those of the sensors that are of power supplies; `set_present` takes such a supply out of its bay.
    """
    simulator = shutil.which("ipmi_sim", path=f"{os.environ['PATH']}:/usr/sbin")
    if simulator is None or shutil.which("ipmitool") is None:
        pytest.skip("there is no ipmi_sim (openipmi) or no ipmitool")
    port = _free_udp_port()
    bmc = Simulated(port, folder)
    (folder / "state").mkdir(parents=True)
    (folder / "lan.conf").write_text(_lan_conf(port))
    lines = ["mc_setbmc 0x20", "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02"]
    for number, name in enumerate(supplies, start=1):
        bmc.set_present(name, is_present=True)
        lines += _supply_commands(number, folder / f"{name} Status")
    for number, (name, watts) in enumerate(sensors.items(), start=1):
        bmc.set_sensor(name, watts)
        lines += _sensor_commands(
            number, folder / name, list(supplies).index(name) + 1 if name in supplies else 0
        )
    (folder / "commands").write_text("\n".join([*lines, "mc_enable 0x20", ""]))
    argv = (simulator, "-n", "-c", folder / "lan.conf", "-f", folder / "commands", "-s", folder / "state")
    with running(argv, folder):
        _wait(lambda: all(f",{watts}," in _ipmitool(port) for watts in sensors.values()), folder)
        yield bmc


def _sensor_commands(number: int, file: Path, supply: int) -> list[str]:
    """A sensor in watts; supply: of which power supply, 0 of none."""
    depends = f" depends=0x20,0,{FIRST_SUPPLY + supply},0" if supply else ""
    entity = (POWER_SUPPLY, supply) if supply else (SYSTEM_BOARD, 1)
    return [
        f'sensor_add 0x20 0 {number} 0x0b 0x01 poll 50 file "{file}"{depends}',
        f"sensor_set_event_support 0x20 0 {number} enable scanning none" + 4 * " 000000000000000",
        "main_sdr_add 0x20 "
        + " ".join(f"{byte:#04x}" for byte in _sensor_record(number, file.name.partition("#")[0], entity)),
    ]


def _supply_commands(supply: int, file: Path) -> list[str]:
    """The state of a power supply, of which bit 0 is that it is there."""
    number = FIRST_SUPPLY + supply
    return [
        f'sensor_add 0x20 0 {number} 0x08 0x6f poll 50 file "{file}"',
        f"sensor_set_event_support 0x20 0 {number} enable scanning per-state" + 4 * " 000000000000001",
        "main_sdr_add 0x20 "
        + " ".join(f"{byte:#04x}" for byte in _state_record(number, f"State {supply}", supply)),
    ]


def _lan_conf(port: int) -> str:
    allowed = "".join(
        f"    allowed_auths_{who} none md2 md5 straight\n"
        for who in ("callback", "user", "operator", "admin")
    )
    guid = "    guid a123456789abcdefa123456789abcdef\n"
    lan = f"  startlan 1\n    addr 127.0.0.1 {port}\n    priv_limit admin\n{allowed}{guid}  endlan\n"
    return f'name "bmc"\nset_working_mc 0x20\n{lan}  user 2 true "{USER}" "{PASSWORD}" admin 10 none md2 md5 straight\n'


def _sensor_record(number: int, name: str, entity: tuple[int, int]) -> list[int]:
    """A full sensor record (IPMI 2.0, table 43-1) of a threshold sensor in watts."""
    owner = [0x20, 0, number, *entity, 0x7F, 0x68, 0x0B, 0x01, *6 * [0]]
    units = [0, 6, 0, 0, WATTS_PER_COUNT, *5 * [0]]
    limits = [0, 0, 0, 0, 0xFF, 0, *11 * [0]]
    body = [*owner, *units, *limits, 0xC0 | len(name), *name.encode()]
    return [0, 0, 0x51, 1, len(body), *body]


def _state_record(number: int, name: str, supply: int) -> list[int]:
    """A compact sensor record (IPMI 2.0, table 43-2) of the states of a power supply."""
    owner = [0x20, 0, number, POWER_SUPPLY, supply, 0x7F, 0x40, 0x08, 0x6F, *6 * [0]]
    body = [*owner, 0, 0, 0, 1, *7 * [0], 0xC0 | len(name), *name.encode()]
    return [0, 0, 0x51, 2, len(body), *body]


def _ipmitool(port: int) -> str:
    argv = (
        "ipmitool",
        "-I",
        "lanplus",
        "-H",
        "127.0.0.1",
        "-p",
        str(port),
        "-U",
        USER,
        "-E",
        "-C",
        "3",
        "-N",
        "1",
    )
    environment = {**os.environ, "IPMITOOL_PASSWORD": PASSWORD}
    done = subprocess.run(
        [*argv, "-R", "1", "-c", "sdr", "list", "full"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def _free_udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as place:
        place.bind(("127.0.0.1", 0))
        port: int = place.getsockname()[1]
        return port


# ---- Redfish


@contextmanager
def redfish_bmc(folder: Path, resources: Mapping[str, Mapping[str, Any]]) -> Iterator[Simulated]:
    """One with these resources, by their paths below /redfish/v1; it asks nobody for a password."""
    if not STATIC.exists():
        pytest.skip("there is no sushy-static (sushy-tools)")
    certificate, key = self_signed(folder)
    bmc = Simulated(free_port(), folder / "mockup", str(certificate))
    for path, content in resources.items():
        bmc.set_resource(path, content)
    argv = (STATIC, "-i", "127.0.0.1", "-p", bmc.port, "-m", bmc.folder, "-c", certificate, "-k", key)
    with running(list(map(str, argv)), folder):
        _wait(lambda: _listens(bmc.port), folder)
        yield bmc


@contextmanager
def reading(folder: Path, resources: Mapping[str, Any], **options: Any) -> Iterator[Any]:
    """What reads a BMC with these resources, and the BMC."""
    with redfish_bmc(folder / "bmc", resources) as bmc:
        source = open_meter(Meter("redfish", "127.0.0.1", bmc.port, ca_file=bmc.ca_file, **options))
        yield source, bmc
        source.close()


def self_signed(folder: Path, name: str = "127.0.0.1") -> tuple[Path, Path]:
    """A certificate as BMCs make them for themselves, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a BMC")])
    now = datetime.now(timezone.utc)
    built = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(name))]), critical=False)
    )
    folder.mkdir(parents=True, exist_ok=True)
    certificate, secret = folder / "bmc.crt", folder / "bmc.key"
    certificate.write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, secret


def chassis(name: str = "1", **more: Any) -> dict[str, dict[str, Any]]:
    """The resources of a service with one chassis."""
    return {
        "": {"Chassis": link("Chassis")},
        "Chassis": {"Members": [link(f"Chassis/{name}")]},
        f"Chassis/{name}": {"Id": name, **more},
    }


def link(path: str) -> dict[str, str]:
    """A reference to a resource."""
    return {"@odata.id": f"/redfish/v1/{path}"}


def power(watts: float | None) -> dict[str, Any]:
    """A Power resource with one PowerControl."""
    return {"PowerControl": [{"MemberId": "0", "Name": "System Power Control", "PowerConsumedWatts": watts}]}


def _listens(port: int) -> bool:
    with socket.socket() as place:
        return place.connect_ex(("127.0.0.1", port)) == 0


def _wait(is_so: Any, folder: Path) -> None:
    until = time.monotonic() + 30
    while not is_so():
        if time.monotonic() > until:
            raise AssertionError((folder / "simulator.log").read_text())
        time.sleep(0.05)
