"""What stands in for a vendor's tool, and the device's place in the copy of the tree."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.conformance.folder import require_vendor
from run_benchmarks.conformance.recordings import Expected, Recording
from run_benchmarks.conformance.sandbox import Sandbox
from run_benchmarks.conformance.substitutes import Listing, chosen_listing, lay_device, lay_tools
from run_benchmarks.plan.vendor_record import Vendor
from tests.warm_python import Warm
from utils.config_files import load_constants
from utils.errors import FlagPerfError

VENDOR = """\
DEVICE_TYPE = "acme"
PLUGIN = {"pytorch": "torch_acme"}
VISIBLE_DEVICES_ENV = ""
COLLECTIVE_BACKEND = {"pytorch": "accl"}
CONTAINER_OPTIONS = {}
CHIPS = {
    name: {"device_names": [f"Acme {name}"], "memory_gib": None, "peak_flops": {}, "source": "none"}
    for name in ("A1", "B2")
}
LIST_DEVICES_COMMAND = ["acme-smi", "--list", "all of them"]


def parse_device_list(stdout):
    return stdout.splitlines()
"""

LOOP = """\
import torch, torch_acme
total = torch.ones(3).to("acme").sum(0, keepdim=True)
total.record_stream(torch.accelerator.current_stream())
for made in (torch.tensor([total], dtype=torch.float32, device="acme"), torch.tensor([total]).to("acme")):
    print(made.device, made.tolist())
"""


@pytest.fixture
def vendor(tmp_path: Path) -> Vendor:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "vendor.py").write_text(VENDOR)
    return require_vendor(tmp_path / "acme")


@pytest.fixture
def sandbox(tmp_path: Path, vendor: Vendor) -> Sandbox:
    """As `prepare` makes it, without the code that these tests do not run."""
    sandbox = Sandbox(tmp_path / "sandbox", "acme", Path(sys.executable))
    sandbox.tools.mkdir(parents=True)
    sandbox.vendor_folder.mkdir(parents=True)
    (sandbox.vendor_folder / "vendor.py").write_text(VENDOR)
    return sandbox


def recording(folder: Path, name: str, command: str, text: str, devices: tuple[str, ...] = ()) -> Recording:
    path = folder / f"{name}.json"
    path.with_suffix(".txt").write_text(text)
    return Recording(path, text, Expected(source="a test", command=command, devices=devices))


def printed(sandbox: Sandbox, *command: str) -> str:
    done = subprocess.run(command, env=sandbox.environment, capture_output=True, text=True, check=False)
    return done.stdout or f"{done.returncode}"


def test_the_recording_of_enough_devices_of_one_chip_is_taken(tmp_path: Path, vendor: Vendor) -> None:
    mixed = recording(tmp_path, "mixed", "acme-smi", "", ("Acme A1", "Acme B2"))
    one = recording(tmp_path, "one", "acme-smi", "", ("Acme A1",))
    two = recording(tmp_path, "two", "acme-smi", "two", ("Acme B2", "Acme B2"))
    assert chosen_listing(vendor, [mixed, one, two], ["A1", "B2"], 2) == Listing("B2", "two", two)
    made_up = chosen_listing(vendor, [mixed, one, two], ["A1"], 2)
    assert made_up == Listing("A1", "Acme A1\nAcme A1\n", None)
    assert chosen_listing(vendor, [two], [], 2) is None


def test_the_tool_prints_what_was_recorded_of_each_command_and_leaves_the_rest_to_the_true_one(
    tmp_path: Path, sandbox: Sandbox, vendor: Vendor
) -> None:
    listed = recording(tmp_path, "listed", "acme-smi --list 'all of them'", "two\n", ("Acme A1",) * 2)
    power = recording(tmp_path, "power", "acme-smi -q", "it's 5 W\n")
    lay_tools(sandbox, vendor, Listing("A1", listed.text, listed), [listed, power])
    assert printed(sandbox, "acme-smi", "--list", "all of them") == "two\n"
    assert printed(sandbox, "acme-smi", "-q") == "it's 5 W\n"
    assert printed(sandbox, "acme-smi", "-v") == "127"
    sampled = replace(power, expected=replace(power.expected, samples={"0": {"power_w": 5.0}}))
    lay_tools(sandbox, vendor, Listing("A1", listed.text, listed), [listed, sampled])
    assert printed(sandbox, "acme-smi", "-v") == "it's 5 W\n", "a monitor may use other options now"
    assert printed(sandbox, "acme-smi", "--list", "all of them") == "two\n"
    grep = replace(vendor, list_devices_command=("grep", "-r", "/sys/class/acme"))
    lay_tools(sandbox, grep, Listing("A1", listed.text, listed), [])
    assert printed(sandbox, "grep", "-r", "/sys/class/acme") == "two\n"
    assert (
        printed(sandbox, "grep", "--count", "DEVICE_TYPE", str(sandbox.vendor_folder / "vendor.py")) == "1\n"
    )


def test_a_tool_with_an_absolute_path_is_replaced_in_the_copy(
    tmp_path: Path, sandbox: Sandbox, vendor: Vendor
) -> None:
    tool = "/opt/acme/bin/acme-smi"
    file = sandbox.vendor_folder / "vendor.py"
    file.write_text(VENDOR.replace('["acme-smi"', f'["env", "LD_LIBRARY_PATH=/opt/acme/lib", "{tool}"'))
    listed = recording(tmp_path, "listed", tool, "two\n", ("Acme A1",) * 2)
    command = ("env", "LD_LIBRARY_PATH=/opt/acme/lib", tool, "--list", "all of them")
    lay_tools(
        sandbox, replace(vendor, list_devices_command=command), Listing("A1", listed.text, listed), [listed]
    )
    assert printed(sandbox, *load_constants(file)["LIST_DEVICES_COMMAND"]) == "two\n"


def test_a_list_that_was_made_up_is_read_by_lines(sandbox: Sandbox, vendor: Vendor) -> None:
    lay_tools(sandbox, vendor, Listing("A1", "Acme A1\nAcme A1\n"), [])
    copy = require_vendor(sandbox.vendor_folder)
    assert copy.parse_devices(printed(sandbox, *copy.list_devices_command)) == ["Acme A1"] * 2


def test_the_stand_in_lies_where_the_plug_in_is_imported_from(sandbox: Sandbox, vendor: Vendor) -> None:
    names = lay_device(sandbox, sandbox.folder / "packages", vendor)
    assert (names.device, names.backend, names.note) == ("acme", "accl", "")
    assert (
        "install('acme', 'accl')" in (sandbox.folder / "packages" / "torch_acme" / "__init__.py").read_text()
    )
    assert (sandbox.vendor_folder / "vendor.py").read_text() == VENDOR


def test_a_device_that_pytorch_knows_is_called_otherwise_and_that_is_said(
    sandbox: Sandbox, vendor: Vendor
) -> None:
    posing = replace(vendor, device_type="cuda", collective_backend={"pytorch": "nccl"}, plugin={})
    names = lay_device(sandbox, sandbox.folder / "packages", posing)
    assert (names.device, names.backend) == ("standin", "standin")
    assert names.note == "standin stands for cuda and nccl here: PyTorch keeps these names for itself"
    constants = load_constants(sandbox.vendor_folder / "vendor.py")
    assert (constants["DEVICE_TYPE"], constants["COLLECTIVE_BACKEND"]) == ("standin", {"pytorch": "standin"})
    assert (sandbox.folder / "packages" / constants["PLUGIN"]["pytorch"] / "__init__.py").is_file()


def test_only_the_name_that_pytorch_keeps_is_replaced(sandbox: Sandbox, vendor: Vendor) -> None:
    packages = sandbox.folder / "packages"
    names = lay_device(sandbox, packages, replace(vendor, collective_backend={"pytorch": "nccl"}))
    assert (names.device, names.backend) == ("acme", "standin")
    constants = load_constants(sandbox.vendor_folder / "vendor.py")
    assert (constants["DEVICE_TYPE"], constants["PLUGIN"]) == ("acme", {"pytorch": "torch_acme"})
    assert constants["COLLECTIVE_BACKEND"] == {"pytorch": "standin"}
    assert "install('acme', 'standin')" in (packages / "torch_acme" / "__init__.py").read_text()


def test_the_stand_in_computes_what_training_loops_ask_of_a_device(
    sandbox: Sandbox, vendor: Vendor, warm_pytorch: Warm
) -> None:
    """Also what PyTorch calls below the dispatch that Python sees, or for work that is still under way."""
    packages = sandbox.folder / "packages"
    lay_device(sandbox, packages, vendor)
    script = sandbox.folder / "loop.py"
    script.write_text(LOOP)
    command = [warm_pytorch.of(sys.executable, str(packages)), "-u", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["acme:0 [3.0]", "acme:0 [3.0]"], done.stderr


def test_a_module_may_print_what_is_no_text(sandbox: Sandbox) -> None:
    (sandbox.training / "talks.py").write_text(r"import sys; sys.stderr.buffer.write(b'\xbe\xaf')")
    assert sandbox.run_module("talks", limit_s=60).stderr == "\ufffd\ufffd"


def test_a_module_that_prints_without_end_is_ended(sandbox: Sandbox) -> None:
    (sandbox.training / "talks.py").write_text("while True: print('x' * 9999)")
    with pytest.raises(FlagPerfError, match="talks printed more than"):
        sandbox.run_module("talks", limit_s=60)
