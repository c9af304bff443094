"""The command line of a training script: FlagPerf's launch contract.

Every rank is started with the same arguments. What is not part of the contract and has the form
`--name value` overrides the configuration's `name`.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.errors import FlagPerfError


@dataclass(frozen=True)
class LaunchArguments:
    """What the launcher tells a training script. `overrides` are the configuration's names set by hand."""

    case_dir: Path
    data_dir: Path
    vendor: str = ""
    extern_config_dir: Path | None = None
    extern_config_file: str = ""
    enable_extern_config: bool = False
    extern_module_dir: Path | None = None
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def framework(self) -> str:
        """`pytorch` for a case folder `pytorch` or `pytorch_1.8`."""
        return self.case_dir.name.partition("_")[0]


def parse_arguments(argv: Sequence[str]) -> LaunchArguments:
    """Read the launch contract's arguments.

    Raises:
        FlagPerfError: an argument is missing or is neither an option nor its value.
    """
    parser = _ContractParser(prog="run_pretraining.py", allow_abbrev=False)
    parser.add_argument("--case_dir", type=Path, required=True)
    parser.add_argument("--data_dir", type=Path, required=True)
    parser.add_argument("--vendor", default="")
    parser.add_argument("--extern_config_dir", type=Path)
    parser.add_argument("--extern_config_file", default="")
    parser.add_argument("--enable_extern_config", action="store_true")
    parser.add_argument("--extern_module_dir", type=Path)
    contract, rest = parser.parse_known_args(argv)
    contract.case_dir = contract.case_dir.resolve()
    return LaunchArguments(**vars(contract), overrides=_overrides(rest))


class _ContractParser(argparse.ArgumentParser):
    """argparse ends the process at an error; a rank reports it as it does every other one."""

    def error(self, message: str) -> Any:
        raise FlagPerfError(message, where="command line", remedy=self.format_usage().strip())


def _overrides(rest: Sequence[str]) -> dict[str, Any]:
    """`--name value`, `--name=value`, or `--name` alone, which means True."""
    overrides: dict[str, Any] = {}
    waiting = list(rest)
    while waiting:
        option = waiting.pop(0)
        if not option.startswith("--") or option == "--":
            raise FlagPerfError(
                f"unexpected argument {option!r}",
                where="command line",
                remedy="write --name value for a name of the configuration",
            )
        name, has_value, text = option[2:].partition("=")
        if not has_value:
            text = waiting.pop(0) if waiting and not waiting[0].startswith("--") else "True"
        overrides[name.replace("-", "_")] = _literal(text)
    return overrides


def _literal(text: str) -> Any:
    """The Python value that `text` spells, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
