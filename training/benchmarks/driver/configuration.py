"""A rank's configuration: the files that the launch contract names, and what its command line sets by hand."""

from __future__ import annotations

from pathlib import Path

from benchmarks.driver.arguments import LaunchArguments
from utils.case_form import MUTABLE_FILE, MUTABLE_NAME, mutable_problem
from utils.config_files import load_constants
from utils.errors import ProblemsError
from utils.parameters import Configuration, Layer, resolve

__all__ = ["Configuration", "read_configuration"]


def read_configuration(arguments: LaunchArguments, metric: str, device_type: str = "") -> Configuration:
    """The configuration of a rank, from its files and command line.

    Args:
        arguments: the launch contract's.
        metric: name of the case's metric: the case's target is its setting `target_<metric>`; empty for none.
        device_type: the vendor's; what the framework does not do on it is refused.

    Raises:
        FlagPerfError: a file is missing or fails.
        ProblemsError: an unknown name, a wrong type or an impossible value, all of them at once.
    """
    folder = arguments.case_dir / "config"
    base = Layer(str(folder / "_base.py"), load_constants(folder / "_base.py"))
    above = [Layer("command line", arguments.overrides)] if arguments.overrides else []
    if arguments.enable_extern_config and arguments.extern_config_file:
        vendor_file = (arguments.extern_config_dir or Path()) / arguments.extern_config_file
        above.insert(0, Layer(str(vendor_file), load_constants(vendor_file)))
    mutable, framework = _mutable_names(folder), arguments.framework
    config = resolve(base, above, mutable=mutable, framework=framework, device_type=device_type)
    if config.metric not in ("", metric):
        message = f"is the target of another metric than the case's, which is {metric or 'none'}"
        raise ProblemsError([base.problem(f"target_{config.metric}", message, f"name it target_{metric}")])
    return config


def _mutable_names(folder: Path) -> tuple[str, ...]:
    """What the case lets a vendor change."""
    path = folder / MUTABLE_FILE
    values = load_constants(path) if path.is_file() else None
    if problem := mutable_problem(path, values):
        raise ProblemsError([problem])
    return tuple((values or {})[MUTABLE_NAME])
