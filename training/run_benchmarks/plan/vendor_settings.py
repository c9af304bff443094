"""What `test_conf.py` says of each vendor: of VENDOR by top-level settings, of the others by VENDORS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from run_benchmarks.plan import kinds
from run_benchmarks.plan.problems import UnfitError, listing
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import Vendor
from run_benchmarks.plan.source import Lines, Source

OPTIONS, VISIBLE, BUILD_ARGS = "ACCE_CONTAINER_OPT", "ACCE_VISIBLE_DEVICE_ENV_NAME", "IMAGE_BUILD_ARGS"
_EXAMPLES = {OPTIONS: '" --gpus all"', VISIBLE: '"CUDA_VISIBLE_DEVICES"'}
_EXAMPLE = '{"acme": {"ACCE_CONTAINER_OPT": " --device=/dev/acme"}}'


@dataclass(frozen=True)
class VendorSettings:
    """What the user wants of a vendor's containers and images; None leaves it to `vendor.py`."""

    container_options: tuple[str, ...] | None = None
    visible_devices_env: str | None = None
    image_build_args: Mapping[str, str] = field(default_factory=dict)


def read_vendor_settings(reader: Reader, default: str) -> dict[str, VendorSettings]:
    """Vendor -> its settings; for the vendor `default` the top-level ones, under those of VENDORS."""
    sections = reader.get("VENDORS", _sections, {})
    top = _read(reader)
    settings = {default: top}
    for name, values in sections.items():
        own = _read(_section(reader, name, values))
        settings[name] = _over(own, top) if name == default else own
    return settings


def require_devices(vendor: Vendor, settings: VendorSettings, is_default: bool, reader: Reader) -> None:
    """Without a `vendor.py` nothing else says how a container and a rank get their devices."""
    values = {OPTIONS: settings.container_options, VISIBLE: settings.visible_devices_env}
    for name in (name for name, value in values.items() if value is None):
        message = f"is not set, and there is no {vendor.folder / 'vendor.py'} that says it"
        subject, example = name, f"{name} = {_EXAMPLES[name]}"
        if not is_default:
            subject = f"VENDORS[{vendor.name!r}][{name!r}]"
            example = f'VENDORS = {{"{vendor.name}": {{"{name}": {_EXAMPLES[name]}}}}}'
        remedy = f'add e.g. {example}; "" if there is none to give'
        reader.problems.add(reader.source.where(subject), subject, None, message, remedy)


def _read(reader: Reader) -> VendorSettings:
    return VendorSettings(
        reader.get(OPTIONS, kinds.shell_words, None),
        reader.get(VISIBLE, kinds.environment_name, None),
        reader.get(BUILD_ARGS, kinds.text_dict, {}),
    )


def _section(reader: Reader, name: str, values: Mapping[str, Any]) -> Reader:
    """The settings in VENDORS[name], as if they stood at the top level on its line."""
    lines = reader.source.lines
    line = lines.entries.get(("VENDORS", name)) or lines.names["VENDORS"]
    section = Reader(
        Source(reader.source.path, values, Lines(dict.fromkeys(values, line), {}, ())), reader.problems
    )
    section.known.update((OPTIONS, VISIBLE, BUILD_ARGS))
    for setting in values.keys() - section.known:
        section.unfit(setting, "is no setting of a vendor", f"write {listing(sorted(section.known))}")
    return section


def _over(strong: VendorSettings, weak: VendorSettings) -> VendorSettings:
    return VendorSettings(
        weak.container_options if strong.container_options is None else strong.container_options,
        weak.visible_devices_env if strong.visible_devices_env is None else strong.visible_devices_env,
        strong.image_build_args or weak.image_build_args,
    )


def _sections(value: Any) -> dict[str, dict[str, Any]]:
    right = isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(item, dict) for name, item in value.items()
    )
    if not right:
        raise UnfitError("is no dict with a dict for each vendor", f"write VENDORS = {_EXAMPLE}")
    return dict(value)
