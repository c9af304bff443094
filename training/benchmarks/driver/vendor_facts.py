"""What the driver needs from `<vendor>/vendor.py`: the kind of device and how its ranks talk."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.config_files import load_constants
from utils.errors import FlagPerfError, raised

TRAINING_FOLDER = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class VendorFacts:
    """What a rank needs to know of its vendor.

    device_type: as the framework calls it. backend: of the collectives. plugin: the module that brings both, or empty.
    ragged_attention: whether the framework has attention for rows as they lie, without padding, on these devices.
    """

    device_type: str
    backend: str
    plugin: str = ""
    ragged_attention: bool = False


# Without a vendor: a script started by hand on any machine.
PLAIN_CPU = VendorFacts(device_type="cpu", backend="gloo")


def read_vendor_facts(vendor: str, framework: str, folder: Path = TRAINING_FOLDER) -> VendorFacts:
    """The facts of `vendor` for `framework`; `PLAIN_CPU` where no vendor is given.

    Raises:
        FlagPerfError: the vendor's file is missing or lacks one of the two.
    """
    if not vendor:
        return PLAIN_CPU
    path = folder / vendor / "vendor.py"
    constants = load_constants(path)
    backends: dict[str, Any] = constants.get("COLLECTIVE_BACKEND", {})
    if "DEVICE_TYPE" not in constants or framework not in backends:
        raise FlagPerfError(
            f"DEVICE_TYPE or COLLECTIVE_BACKEND[{framework!r}] is missing",
            where=str(path),
            remedy='for example DEVICE_TYPE = "cuda" and COLLECTIVE_BACKEND = {"pytorch": "nccl"}',
        )
    plugins: dict[str, str] = constants.get("PLUGIN", {})
    return VendorFacts(
        constants["DEVICE_TYPE"],
        backends[framework],
        plugin=plugins.get(framework, ""),
        ragged_attention=framework in constants.get("RAGGED_ATTENTION", ()),
    )


def import_plugin(facts: VendorFacts) -> dict[str, str | None]:
    """Make the vendor's devices known to the framework, where a module does that.

    Returns:
        the module's name and version, None where it does not say; nothing where there is no such module.

    Raises:
        FlagPerfError: it cannot be imported.
    """
    if not facts.plugin:
        return {}
    try:
        module = importlib.import_module(facts.plugin)
    except Exception as error:  # a library that does not load, another version than the framework's
        raise FlagPerfError(
            f"{facts.plugin}, which makes {facts.device_type} devices known, cannot be imported: {raised(error)}",
            where="this rank's process",
            remedy="see that the image holds it in the framework's own version, and that the host's driver is there",
        ) from error
    version = getattr(module, "__version__", None)
    return {facts.plugin: None if version is None else str(version)}
