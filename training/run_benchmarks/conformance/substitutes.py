"""What stands in for a vendor's chips where there are none: its device in PyTorch, and its tool by what it printed."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from run_benchmarks.conformance.folder import chip_of
from run_benchmarks.conformance.recordings import Recording
from run_benchmarks.conformance.site import Site, add_settings, ask_output
from run_benchmarks.frameworks.pytorch import PyTorch
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE

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
{otherwise}
"""


@dataclass(frozen=True)
class Names:
    """What the ranks call the device and its collectives here; `said`: how that differs from the vendor's, or empty."""

    device: str
    backend: str
    said: str = ""


def made_python(site: Site) -> tuple[Site, Path]:
    """The site with a Python of its own, which has all that the given one has; and where more goes that it is to have.

    Raises:
        FlagPerfError: it cannot be made.
    """
    home = site.folder / "python"
    ask_output(site.python, "-m", "venv", "--without-pip", str(home))
    own = replace(site, python=home / "bin" / "python")
    (packages,) = ask_output(own.python, "-c", PACKAGES).split("\n")
    lines = [
        f"import site; site.addsitedir({path!r})"
        for path in ask_output(site.python, "-c", PACKAGES).split("\n")
    ]
    (Path(packages) / f"{PACKAGE}.pth").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return own, Path(packages)


def lay_device(site: Site, packages: Path, vendor: Vendor) -> Names:
    """Put the stand-in where the vendor's plug-in is imported from, among the `packages` of the ranks' Python.

    PyTorch keeps the names of devices that it knows to itself: then vendor.py of the copy names another one.
    """
    shutil.copytree(SOURCE, packages / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    plugin, backend = vendor.plugin.get(FRAMEWORK, ""), vendor.collective_backend[FRAMEWORK]
    names = Names(vendor.device_type, backend)
    if not plugin or vendor.device_type in PyTorch.device_types:
        said = f"PyTorch keeps {vendor.device_type} and {backend} for itself: they are called {OWN_NAME} here"
        plugin, names = f"{PACKAGE}_plugin", Names(OWN_NAME, OWN_NAME, said)
        settings = {
            "DEVICE_TYPE": OWN_NAME,
            "COLLECTIVE_BACKEND": {FRAMEWORK: OWN_NAME},
            "PLUGIN": {FRAMEWORK: plugin},
            "RAGGED_ATTENTION": [],  # the stand-in has no nested tensors
        }
        add_settings(site.vendor_folder / VENDOR_FILE, settings)
    module = packages.joinpath(*plugin.split(".")) / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text(PLUGIN.format(package=PACKAGE, device=names.device, backend=names.backend))
    return names


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


def lay_tools(site: Site, vendor: Vendor, listing: Listing, recordings: Iterable[Recording]) -> None:
    """Put programs on the PATH that print the recordings, each by the vendor's own command for it.

    What a monitor reads is printed whatever the options: those of a recording need not be those that it uses now.
    """
    tools: dict[str, Tool] = {}
    for recording in recordings:
        if recording.expected.devices_error or recording.expected.samples_error:
            continue
        path, arguments = _program(shlex.split(recording.expected.command))
        tool = tools.setdefault(Path(path).name, Tool())
        tool.texts.setdefault(" ".join(arguments), recording.path.with_suffix(".txt"))
        if recording.expected.samples:
            tool.samples = tool.samples or recording.path.with_suffix(".txt")
    if listing.recording is None:
        made_up = {"LIST_DEVICES_COMMAND": ["printf", r"%s\n", *listing.text.splitlines()]}
        add_settings(site.vendor_folder / VENDOR_FILE, made_up)
        with (site.vendor_folder / VENDOR_FILE).open("a") as file:
            file.write(MADE_UP_PARSER)
    else:
        path, arguments = _program(list(vendor.list_devices_command))
        text = listing.recording.path.with_suffix(".txt")
        tools.setdefault(Path(path).name, Tool()).texts[" ".join(arguments)] = text
        _redirect(site, path)
    for name, tool in tools.items():
        _write_tool(site.tools / name, tool)


@dataclass
class Tool:
    """What a program prints: by its arguments, and with any others; None: those are the true program's business."""

    texts: dict[str, Path] = field(default_factory=dict)
    samples: Path | None = None


def _program(command: list[str]) -> tuple[str, list[str]]:
    """The program that a command starts, and its arguments, behind `env NAME=VALUE...`."""
    words = list(command)
    if words and Path(words[0]).name == "env":
        words = words[1:]
        while words and "=" in words[0]:
            words = words[1:]
    return (words[0], words[1:]) if words else ("", [])


def _redirect(site: Site, path: str) -> None:
    """A tool that is called by its absolute path is found here by another one."""
    if not Path(path).is_absolute():
        return
    for file in site.vendor_folder.glob("*.py"):
        text = file.read_text(encoding="utf-8")
        if path in text:
            file.write_text(text.replace(path, str(site.tools / Path(path).name)), encoding="utf-8")


def _write_tool(program: Path, tool: Tool) -> None:
    cases = "\n".join(
        f"  {shlex.quote(arguments)}) exec cat {shlex.quote(str(text))} ;;"
        for arguments, text in tool.texts.items()
    )
    path, name = shlex.quote(os.environ.get("PATH", os.defpath)), shlex.quote(program.name)
    otherwise = f'PATH={path} exec {name} "$@"'
    if tool.samples:
        otherwise = f"exec cat {shlex.quote(str(tool.samples))}"
    program.write_text(TOOL.format(cases=cases, otherwise=otherwise))
    program.chmod(0o755)
