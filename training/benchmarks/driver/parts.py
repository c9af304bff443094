"""What the parts of a run were trained with, as far as its stamp depends on it: each checkpoint hands it on.

A run that goes on has its weights and its optimizer from the parts before it, which no check of this part sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.driver.arguments import LaunchArguments
from utils.code_files import code_files, digest_of, digest_of_file

# The vendor's shell code that is sourced before the ranks start, beside its configuration.
ENVIRONMENT_FILE = "environment_variables.sh"
BENCHMARKS = Path(__file__).resolve().parents[1]
# Code of all cases, from `benchmarks/`; in `utils/` is what resolves their parameters.
_SHARED = ("common", "driver", "../utils")
# What no digest is: checkpoints of earlier versions, which are other code, do not tell theirs.
_UNTOLD = ("",)


@dataclass(frozen=True)
class Parts:
    """Of all parts of a run, or of one.

    hooks, code: SHA-256 of the code of the vendor's hooks, and of that of the case and the driver, part by part.
    changed: the parameters that the vendor changed beyond what the case allows.
    """

    hooks: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()

    def as_state(self) -> dict[str, list[str]]:
        """As a checkpoint has it."""
        return {"hooks": sorted(self.hooks), "code": sorted(self.code), "changed": sorted(self.changed)}

    def after(self, state: Mapping[str, Any]) -> Parts:
        """With the parts that a checkpoint tells of."""
        return Parts(
            self.hooks.union(map(str, state.get("hooks", ()))),
            self.code.union(map(str, state.get("code", _UNTOLD))),
            self.changed.union(map(str, state.get("changed", ()))),
        )


def part_of(arguments: LaunchArguments, changed: Iterable[str]) -> Parts:
    """This part alone."""
    hooks = arguments.extern_module_dir if arguments.enable_extern_config else None
    digest = digest_of(code_files(hooks)) if hooks else ""
    return Parts(frozenset([digest]), frozenset([_code_of_case(arguments)]), frozenset(changed))


def _code_of_case(arguments: LaunchArguments) -> str:
    """SHA-256 of the code of the case, of what all cases share, of the driver, and of the vendor's environment."""
    case = arguments.case_dir.parent if arguments.case_dir.is_relative_to(BENCHMARKS) else arguments.case_dir
    folders = {"case": case, **{name: BENCHMARKS / name for name in _SHARED}}
    files = {
        f"{name}/{path}": digest
        for name, folder in folders.items()
        for path, digest in code_files(folder).items()
    }
    config = arguments.extern_config_dir if arguments.enable_extern_config else None
    if config and (config / ENVIRONMENT_FILE).is_file():
        files[ENVIRONMENT_FILE] = digest_of_file(config / ENVIRONMENT_FILE)
    return digest_of(files)
