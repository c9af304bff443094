"""A node's inventory: of this machine by its real tools, of others by trees of /sys as they have them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from run_benchmarks.reading import parsed
from utils.inventory import INVENTORY_FILE, Inventory, Software
from utils.monitors import inventory as taking
from utils.monitors.accelerators import describe_accelerators
from utils.monitors.frame import Counts
from utils.monitors.inventory import InventoryTaker, Places, host_inventory, software_inventory
from utils.monitors.source import SourceUnavailableError

HERE = Places(Path("/proc"), Path("/sys"))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def read(folder: Path) -> Inventory:
    content = json.loads((folder / INVENTORY_FILE).read_text())
    return parsed(Inventory, content, INVENTORY_FILE)


def vendor(folder: Path, text: str) -> Path:
    made = folder / "acme"
    write(made / "acme_monitor.py", text)
    return made


def test_this_machine_is_described_as_its_own_tools_do() -> None:
    host = host_inventory(HERE)
    count = subprocess.run(["nproc", "--all"], capture_output=True, text=True, check=True).stdout.strip()
    assert host.cpu["CPU(s)"] == count
    assert not any("MHz" in name or "BogoMIPS" in name for name in host.cpu), "they differ at every look"
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    assert host.memory_bytes == int(total.split()[1]) * 1024
    assert os.uname().release in host.kernel
    assert host.limits["cpus"] == str(len(os.sched_getaffinity(0))) and "RLIMIT_NOFILE" in host.limits
    assert host.settings["proc/sys/vm/swappiness"].isdecimal()


def test_the_software_is_that_of_this_python_and_this_system() -> None:
    software = software_inventory(Path("/"))
    assert software.python == sys.version.split()[0]
    # of two of one name Python imports the first: setuptools, once imported, brings further ones of its own
    first = {each.name: each.version for each in reversed(list(metadata.distributions()))}
    assert software.packages == first
    assert software.system_packages or "dpkg-query" in software.unmeasured["system_packages"]


def test_what_sys_tells_of_machine_nics_and_settings(tmp_path: Path) -> None:
    """As a container sees it: links in /sys/class lead to /sys/devices, those of drivers lead nowhere."""
    write(tmp_path / "devices/virtual/dmi/id/product_name", "DGX A100")
    write(tmp_path / "devices/virtual/dmi/id/product_serial", "1570721000123")
    write(tmp_path / "devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
    card = tmp_path / "devices/pci0/0000:01:00.0"
    for name, value in {"speed": "200000", "mtu": "9000", "address": "00:11:22:33:44:55"}.items():
        write(card / "net/eth0" / name, value)
    write(card / "infiniband/mlx5_0/fw_ver", "20.31.1014")
    write(card / "infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)")
    write(card / "numa_node", "-1")
    (card / "driver").symlink_to("../../../bus/pci/drivers/mlx5_core")
    write(tmp_path / "devices/virtual/net/veth1/speed", "10000")
    for kind, names in {"net": ("eth0",), "infiniband": ("mlx5_0",)}.items():
        (tmp_path / "class" / kind).mkdir(parents=True)
        for name in names:
            (card / kind / name / "device").symlink_to("../..")
            (tmp_path / "class" / kind / name).symlink_to(card / kind / name)
    (tmp_path / "class/net/veth1").symlink_to(tmp_path / "devices/virtual/net/veth1")
    (tmp_path / "class/dmi").mkdir()
    (tmp_path / "class/dmi/id").symlink_to(tmp_path / "devices/virtual/dmi/id")
    host = host_inventory(Places(Path("/proc"), tmp_path))
    assert host.machine == {"product_name": "DGX A100"}
    assert host.nics == {
        "eth0": {"driver": "mlx5_core", "speed": "200000", "mtu": "9000"},
        "mlx5_0": {"driver": "mlx5_core", "fw_ver": "20.31.1014", "ports/1/rate": "200 Gb/sec (4X HDR)"},
    }
    assert host.settings["sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] == "performance"
    assert "1570721000123" not in str(host) and "00:11:22" not in str(host)


def test_a_machine_that_has_none_of_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    host = host_inventory(Places(tmp_path, tmp_path, root=tmp_path))
    assert (host.cpu, host.memory_bytes, host.machine, host.nics) == ({}, None, {}, {})
    assert host.unmeasured["cpu"] == "there is no lscpu"
    assert set(host.unmeasured) == {"cpu", "memory_bytes", "machine", "nics"}
    software = software_inventory(tmp_path)
    assert software.unmeasured["system_packages"] == "there is no dpkg-query; there is no rpm"


def tool(folder: Path, name: str, script: str) -> None:
    write(folder / name, f"#!/bin/sh\n{script}")
    (folder / name).chmod(stat.S_IRWXU)


def test_a_tool_that_fails_or_prints_something_else_costs_its_own_field_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    tool(tmp_path, "dpkg-query", "exit 2")
    tool(tmp_path, "rpm", "printf 'bash.x86_64\\t5.1.8-9.el9\\n'")
    tool(tmp_path, "lscpu", "echo 'lscpu: unrecognized option'")
    assert software_inventory(Path("/")).system_packages == {"bash.x86_64": "5.1.8-9.el9"}
    host = host_inventory(HERE)
    assert "JSONDecodeError" in host.unmeasured["cpu"] and host.memory_bytes


def test_no_secret_of_the_environment_or_of_a_command_line_is_in_it(tmp_path: Path) -> None:
    """In a process of its own, that has one in each."""
    code = (
        "import sys; from pathlib import Path; from utils.monitors.inventory import InventoryTaker, Places;"
        "InventoryTaker(Places(Path('/proc'), Path('/sys')), Path(sys.argv[1])).finish([], limit_s=30)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path), "--token=sesame-in-a-command"]
    training = Path(taking.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(training), "HF_TOKEN": "sesame-in-the-environment"}
    subprocess.run(argv, env=env, check=True, timeout=60)
    text = (tmp_path / INVENTORY_FILE).read_text()
    assert read(tmp_path).monitor and "sesame" not in text


def test_the_end_adds_what_the_monitor_cost(tmp_path: Path) -> None:
    sampler: Any = SimpleNamespace(source=SimpleNamespace(name="cpu"), counts=Counts(sampled=5, late=1))
    InventoryTaker(HERE, tmp_path).finish([sampler], limit_s=30)
    cost = read(tmp_path).monitor
    assert cost and cost.cpu_s > 0 and cost.wall_s > 0
    assert cost.of_a_core == pytest.approx(cost.cpu_s / cost.wall_s, rel=0.05)
    assert cost.sources == {"cpu": {"sampled": 5, "failed": 0, "late": 1, "missed": 0}}


def test_a_vendors_library_that_hangs_costs_the_accelerators_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, asked = threading.Event(), threading.Event()

    def hangs(folder: Path | None) -> tuple[()]:
        asked.set()
        released.wait(60)
        return ()

    monkeypatch.setattr(taking, "describe_accelerators", hangs)
    taker = InventoryTaker(HERE, tmp_path)
    assert asked.wait(60)
    taker.finish([], limit_s=0.01)
    before = read(tmp_path)
    released.set()
    taker._thread.join(60)
    assert before.monitor and read(tmp_path).monitor == before.monitor, (
        "what comes too late takes nothing away"
    )
    assert before.host.cpu and "not answered" in before.host.unmeasured["accelerators"]


def test_an_inventory_that_comes_after_the_end_has_the_cost_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a slow host a package manager may take longer than the round."""
    released, take = threading.Event(), taking.software_inventory

    def slow(root: Path) -> Software:
        released.wait(60)
        return take(root)

    monkeypatch.setattr(taking, "software_inventory", slow)
    taker = InventoryTaker(HERE, tmp_path)
    taker.finish([], limit_s=0.01)
    assert "not taken: it did not come to an end" in caplog.text and not (tmp_path / INVENTORY_FILE).exists()
    released.set()
    taker._thread.join(60)
    assert read(tmp_path).monitor and read(tmp_path).software.packages


def test_a_disk_that_is_full_ends_no_monitor(tmp_path: Path) -> None:
    (tmp_path / f".{INVENTORY_FILE}.partial").symlink_to("/dev/full")
    InventoryTaker(HERE, tmp_path).finish([], limit_s=30)
    assert [path.name for path in tmp_path.iterdir()] == [
        INVENTORY_FILE
    ]  # the disk had room again, and no part is left


def test_a_vendors_words_become_what_json_can_hold(tmp_path: Path) -> None:
    text = """
def describe_devices():
    return [{"name": b"X1", "memory": 64, "clock": float("nan"), "ecc": True, 5: object}]
"""
    (device,) = describe_accelerators(vendor(tmp_path, text))
    assert device == {"name": "X1", "memory": 64, "clock": "nan", "ecc": True, "5": "<class 'object'>"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [("def open_devices():\n    pass\n", "has no describe_devices"), (None, "has no monitor")],
)
def test_a_vendor_that_does_not_describe_its_chips_says_so(
    text: str | None, reason: str, tmp_path: Path
) -> None:
    folder = vendor(tmp_path, text) if text else tmp_path / "acme"
    with pytest.raises(SourceUnavailableError, match=reason):
        describe_accelerators(folder)


def test_sources_and_inventory_execute_a_vendors_file_once(tmp_path: Path) -> None:
    folder = vendor(
        tmp_path, "COUNT = []\ndef describe_devices():\n    COUNT.append(1)\n    return [{'n': len(COUNT)}]\n"
    )
    assert describe_accelerators(folder) == ({"n": 1},)
    assert describe_accelerators(folder) == ({"n": 2},)
