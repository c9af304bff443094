"""DEVICE_TYPE, COLLECTIVE_BACKEND and RAGGED_ATTENTION: names that a framework or a plug-in brings, and that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from run_benchmarks.conformance.records import CheckResult, failed, not_proven
from run_benchmarks.frameworks import FRAMEWORKS, open_framework
from run_benchmarks.frameworks.base import Framework
from run_benchmarks.frameworks.pytorch import PLUGINS
from run_benchmarks.plan.problems import choices
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from utils.errors import nearest

# Where the plug-ins are that the kit knows.
PLUGINS_FILE = "run_benchmarks/frameworks/pytorch.py"
# What a library is called by its maker -> the framework's name of what it takes the place of.
CALLED_OTHERWISE: Mapping[str, str] = {"rccl": "nccl"}


def backends_trouble(vendor: Vendor, frameworks: Iterable[str]) -> Iterator[CheckResult]:
    """Names that nothing brings end every rank at its start; so do collectives of another kind of device."""
    where = vendor.folder / VENDOR_FILE
    for name in sorted(set(frameworks)):
        framework, plugin = open_framework(name), vendor.plugin.get(name, "")
        brought = PLUGINS.get(plugin, ((), ()))
        backend = vendor.collective_backend.get(name, "")
        yield from _unbrought(
            "DEVICE_TYPE", vendor.device_type, framework.device_types, plugin, brought[0], where, framework
        )
        yield from _unbrought(
            "COLLECTIVE_BACKEND", backend, framework.backends, plugin, brought[1], where, framework
        )
        yield from _unfit(backend, vendor.device_type, framework, where)
        yield from _unpaired(vendor.device_type, framework, plugin, where)
    for name in vendor.ragged_attention:
        if name not in FRAMEWORKS:
            remedy = f"write one of {choices(name, sorted(FRAMEWORKS))}"
            yield failed(f"RAGGED_ATTENTION has {name!r}, which is no framework", where, remedy)


def _unbrought(
    setting: str, value: str, own: Iterable[str], plugin: str, of_plugin: tuple[str, ...], where: Path,
    framework: Framework,
) -> Iterator[CheckResult]:  # fmt: skip
    """A name that is neither the framework's own nor known of the plug-in."""
    own = tuple(own)
    if value in (*own, *of_plugin):
        return
    detail = f"{setting} = {value!r} is none of {framework.name}'s own ({', '.join(own)})"
    if value.lower() != value:
        yield failed(f"{detail}, and not in lower case", where, f"write {value.lower()!r}")
    elif value in CALLED_OTHERWISE:
        other = CALLED_OTHERWISE[value]
        yield failed(detail, where, f"write {other!r}: {framework.name} calls {value} that")
    elif plugin and not of_plugin:
        remedy = f"add what it brings, and where that is documented, to PLUGINS in {PLUGINS_FILE}"
        yield not_proven(f"{detail}, and PLUGINS does not say what {plugin} brings", where, remedy)
    else:
        brings = (
            f", nor what {plugin} brings ({', '.join(of_plugin)})" if plugin else ", and PLUGIN names none"
        )
        remedy = (
            nearest(value, (*own, *of_plugin)) or "correct it, or name the plug-in that brings it in PLUGIN"
        )
        yield failed(detail + brings, where, remedy)


def _unfit(backend: str, device_type: str, framework: Framework, where: Path) -> Iterator[CheckResult]:
    """The framework's own collectives for another of its kinds of devices, or for those of a plug-in."""
    devices = framework.backends.get(backend, ())
    if devices and device_type not in devices:
        fit = [name for name, own in framework.backends.items() if device_type in own]
        right = f"write one of {', '.join(fit)}" if fit else "write what the plug-in brings"
        detail = f"COLLECTIVE_BACKEND = {backend!r} is for {', '.join(devices)}, and not for {device_type!r}"
        yield failed(detail, where, f"correct COLLECTIVE_BACKEND: {right}")


def _unpaired(device_type: str, framework: Framework, plugin: str, where: Path) -> Iterator[CheckResult]:
    """A device of the framework's own beside a plug-in whose devices are others: nothing would use the plug-in's."""
    devices, collectives = PLUGINS.get(plugin, ((), ()))
    if devices and device_type in framework.device_types and device_type not in devices:
        brings = ", ".join((*devices, *collectives))
        detail = (
            f"DEVICE_TYPE = {device_type!r} is {framework.name}'s own, and PLUGIN's {plugin} brings {brings}"
        )
        remedy = f"write one of {', '.join(devices)}, or take {plugin} out of PLUGIN, and its backend with it"
        yield failed(detail, where, remedy)
