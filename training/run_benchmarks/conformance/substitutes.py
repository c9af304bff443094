"""What stands in for a vendor's chips where there are none: its device in PyTorch, and its tool by what it printed."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from run_benchmarks.conformance.folder import chip_of
from run_benchmarks.conformance.recordings import Recording
from run_benchmarks.conformance.sandbox import QUICK_S, Sandbox, add_settings
from run_benchmarks.frameworks.pytorch import PyTorch
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from utils.monitors.tool import run_tool

FRAMEWORK = "pytorch"
SOURCE = Path(__file__).with_name("standin")
PACKAGE = "flagperf_standin"  # the name of its copy
OWN_NAME = "standin"  # of device, collectives and plug-in where PyTorch keeps the vendor's for itself
PLUGIN = '''"""The conformance kit's, in the place of the vendor's plug-in."""

from {package} import install

__version__ = "stand-in"

install({device!r}, {backend!r})
'''
# The folders that `pip install` fills, of the Python that executes it.
PACKAGES = "import site, sys; print(*(p for p in sys.path if p.endswith('-packages')), sep=chr(10))"
MADE_UP_PARSER = """

def parse_device_list(stdout):
    return stdout.splitlines()
"""
TOOL = """#!/bin/sh
# Prints what the vendor's tool printed somewhere.
case "$*" in
{cases}
esac
"""
OTHERWISE = "*"  # the pattern that any arguments meet


@dataclass(frozen=True)
class Names:
    """What the ranks call the device and its collectives here; `note`: how that differs from the vendor's, or empty."""

    device: str
    backend: str
    note: str = ""


def made_python(sandbox: Sandbox) -> tuple[Sandbox, Path]:
    """The sandbox with a Python of its own, which has all that the given one has; and the folder for what it gets more.

    Raises:
        FlagPerfError: it cannot be made.
    """
    home = sandbox.folder / "python"
    run_tool((str(sandbox.python), "-m", "venv", "--without-pip", str(home)), QUICK_S)
    own = replace(sandbox, python=home / "bin" / "python")
    (packages,) = _packages_of(own.python)
    lines = [f"import site; site.addsitedir({path!r})\n" for path in _packages_of(sandbox.python)]
    (Path(packages) / f"{PACKAGE}.pth").write_text("".join(lines), encoding="utf-8")
    return own, Path(packages)


def _packages_of(python: Path) -> list[str]:
    return run_tool((str(python), "-c", PACKAGES), QUICK_S).splitlines()


def lay_device(sandbox: Sandbox, packages: Path, vendor: Vendor) -> Names:
    """Put the stand-in where the vendor's plug-in is imported from, among the `packages` of the ranks' Python.

    PyTorch keeps the names of devices that it knows to itself: then vendor.py of the copy names another one.
    """
    shutil.copytree(SOURCE, packages / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    plugin = vendor.plugin.get(FRAMEWORK, "")
    names = _names(vendor)
    settings: dict[str, object] = {}
    if names.device == OWN_NAME:
        plugin = f"{PACKAGE}_plugin"
        settings |= {"DEVICE_TYPE": OWN_NAME, "PLUGIN": {FRAMEWORK: plugin}}
        settings["RAGGED_ATTENTION"] = []  # the stand-in has no nested tensors
    if names.backend == OWN_NAME:
        settings["COLLECTIVE_BACKEND"] = {FRAMEWORK: OWN_NAME}
    if settings:
        add_settings(sandbox.vendor_folder / VENDOR_FILE, settings)
    module = packages.joinpath(*plugin.split(".")) / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text(PLUGIN.format(package=PACKAGE, device=names.device, backend=names.backend))
    return names


def _names(vendor: Vendor) -> Names:
    own = (vendor.device_type, vendor.collective_backend[FRAMEWORK])
    kept = [name for name in own if name in (*PyTorch.device_types, *PyTorch.backends)]
    device, backend = (OWN_NAME if name in kept else name for name in own)
    listed = " and ".join(kept)
    note = f"{OWN_NAME} stands for {listed} here: PyTorch keeps these names for itself" if kept else ""
    return Names(device, backend, note)


@dataclass(frozen=True)
class Listing:
    """What the vendor's tool shall list: devices of one chip, by a recording, or made up where none will do."""

    chip: str
    text: str
    recording: Recording | None = None


def chosen_listing(
    vendor: Vendor, recordings: Iterable[Recording], chips: Iterable[str], count: int
) -> Listing | None:
    """The first recording of at least so many devices, all of one of `chips`; else one made up; None without chips."""
    chips = list(chips)
    for recording in recordings:
        devices = recording.expected.devices or ()
        taken = {chip_of(vendor, device) for device in devices}
        if len(devices) >= count and len(taken) == 1 and taken <= set(chips):
            return Listing(taken.pop(), recording.text, recording)
    if not chips:
        return None
    return Listing(chips[0], "".join(f"{vendor.chips[chips[0]].device_names[0]}\n" for _ in range(count)))


def lay_tools(sandbox: Sandbox, vendor: Vendor, listing: Listing, recordings: Iterable[Recording]) -> None:
    """Put programs on the PATH that print the recordings, each by the vendor's own command for it.

    What a monitor reads is printed whatever the options: those of a recording need not be those that it uses now.
    """
    replies: dict[str, dict[str, Path]] = {}
    for recording in recordings:
        if recording.expected.devices_error or recording.expected.samples_error:
            continue
        path, arguments = _program(shlex.split(recording.expected.command))
        reply = replies.setdefault(Path(path).name, {})
        reply.setdefault(arguments, recording.path.with_suffix(".txt"))
        if recording.expected.samples:
            reply.setdefault(OTHERWISE, recording.path.with_suffix(".txt"))
    if listing.recording is None:
        made_up = {"LIST_DEVICES_COMMAND": ["printf", r"%s\n", *listing.text.splitlines()]}
        add_settings(sandbox.vendor_folder / VENDOR_FILE, made_up)
        with (sandbox.vendor_folder / VENDOR_FILE).open("a") as file:
            file.write(MADE_UP_PARSER)
    else:
        path, arguments = _program(list(vendor.list_devices_command))
        replies.setdefault(Path(path).name, {})[arguments] = listing.recording.path.with_suffix(".txt")
        _redirect(sandbox, path)
    for name, reply in replies.items():
        _write_tool(sandbox.tools / name, reply)


def _program(command: list[str]) -> tuple[str, str]:
    """The program that a command starts, and its arguments as a pattern of a shell's, behind `env NAME=VALUE...`."""
    words = list(command)
    if words and Path(words[0]).name == "env":
        words = words[1:]
        while words and "=" in words[0]:
            words = words[1:]
    return (words[0], shlex.quote(" ".join(words[1:]))) if words else ("", "")


def _redirect(sandbox: Sandbox, path: str) -> None:
    """A tool that is called by its absolute path is found here by another one."""
    if not Path(path).is_absolute():
        return
    for file in sandbox.vendor_folder.glob("*.py"):
        text = file.read_text(encoding="utf-8")
        if path in text:
            file.write_text(text.replace(path, str(sandbox.tools / Path(path).name)), encoding="utf-8")


def _write_tool(program: Path, reply: Mapping[str, Path]) -> None:
    """A program that prints the file of the pattern that its arguments meet; any others the true one is to answer."""
    path, name = shlex.quote(os.environ.get("PATH", os.defpath)), shlex.quote(program.name)
    cases = {pattern: f"cat {shlex.quote(str(text))}" for pattern, text in reply.items()}
    last = cases.pop(OTHERWISE, f'env PATH={path} {name} "$@"')
    lines = (f"  {pattern}) exec {command} ;;" for pattern, command in (*cases.items(), (OTHERWISE, last)))
    program.write_text(TOOL.format(cases="\n".join(lines)))
    program.chmod(0o755)
