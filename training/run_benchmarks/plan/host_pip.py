"""This machine's own pip configuration: asked of pip or, where there is no pip, read from its files."""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from utils.errors import FlagPerfError

_TIMEOUT_S = 30
# `pip install` reads its own section over [global].
_SECTIONS = ("global", "install")


def host_pip_options(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's option names -> values, from its files and its variables (PIP_INDEX_URL and so on)."""
    listed = _ask_pip(environ)
    return _from_files(environ) if listed is None else parse_config_list(listed)


def parse_config_list(listing: str) -> dict[str, str]:
    """The options in the output of `pip config list`: lines such as `global.index-url='https://...'`.

    Variables (`:env:.cert='...'`) win over the section [install], and that over [global], as in pip.
    """
    levels: dict[str, dict[str, str]] = {name: {} for name in (*_SECTIONS, ":env:")}
    for line in listing.splitlines():
        key, equals, literal = line.partition("=")
        section, _, name = key.strip().rpartition(".")
        if equals and section in levels:
            levels[section][normalised(name)] = _value(literal)
    return {name: value for level in levels.values() for name, value in level.items()}


def read_pip_conf(path: Path) -> dict[str, str]:
    """The options in the sections [global] and [install] of a pip.conf.

    Raises:
        FlagPerfError: the file cannot be read or is not in that format.
    """
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        reason = str(error).partition("\n")[0]
        remedy = "write it as pip documents pip.conf: [global], then lines such as index-url = https://..."
        raise FlagPerfError(f"is not a pip.conf: {reason}", where=str(path), remedy=remedy) from error
    sections = [dict(parser.items(name)) for name in _SECTIONS if parser.has_section(name)]
    return {normalised(name): value for section in sections for name, value in section.items()}


def normalised(name: str) -> str:
    """pip's one spelling of an option: `default-timeout` and `Default_Timeout` are `timeout`."""
    return name.strip().lower().replace("_", "-").removeprefix("default-")


def _value(literal: str) -> str:
    try:
        return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        return literal


def _ask_pip(environ: Mapping[str, str]) -> str | None:
    """What `pip config list` prints; None where this Python has no pip or pip fails."""
    command = [sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check"]
    try:
        completed = subprocess.run(
            command, env=dict(environ), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout if completed.returncode == 0 else None


def _from_files(environ: Mapping[str, str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for path in _config_files(environ):
        if path.is_file():
            options |= read_pip_conf(path)
    prefix = "PIP_"
    variables = {name: value for name, value in environ.items() if name.startswith(prefix) and value}
    return options | {normalised(name[len(prefix) :]): value for name, value in variables.items()}


def _config_files(environ: Mapping[str, str]) -> Iterable[Path]:
    """pip's configuration files on Linux, weakest first (pip's documentation, "Configuration Files")."""
    own = environ.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return []
    home = Path(environ.get("HOME") or Path.home())
    systems = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        *(Path(folder, "pip", "pip.conf") for folder in systems.split(":") if folder),
        Path("/etc/pip.conf"), home / ".pip" / "pip.conf", user / "pip" / "pip.conf",
        Path(sys.prefix, "pip.conf"),
    ]  # fmt: skip
    return [*files, Path(own)] if own else files
