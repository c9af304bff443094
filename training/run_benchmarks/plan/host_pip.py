"""This machine's own pip configuration, read as pip reads it: its files, and its variables over them."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from utils.errors import FlagPerfError

_PREFIX = "PIP_"


def host_pip_options(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's option names -> values, from its files and its variables (PIP_INDEX_URL and so on).

    Raises:
        FlagPerfError: one of the files is not in pip's format; pip itself refuses it too.
    """
    options = read_pip_conf(*filter(Path.is_file, _config_files(environ)))
    variables = {name: value for name, value in environ.items() if name.startswith(_PREFIX) and value}
    return options | {_normalised(name.removeprefix(_PREFIX)): value for name, value in variables.items()}


def read_pip_conf(*paths: Path) -> dict[str, str]:
    """The options of pip.conf files, weakest first; `pip install` reads its own section over [global].

    Raises:
        FlagPerfError: a file cannot be read or is not in that format.
    """
    parser = configparser.RawConfigParser()
    for path in paths:
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            reason = str(error).partition("\n")[0]
            remedy = (
                "write it as pip documents pip.conf: [global], then lines such as index-url = https://..."
            )
            raise FlagPerfError(f"is not a pip.conf: {reason}", where=str(path), remedy=remedy) from error
    sections = filter(parser.has_section, ("global", "install"))
    return {_normalised(name): value for section in sections for name, value in parser.items(section)}


def _normalised(name: str) -> str:
    """pip's one spelling of an option: `default-timeout` and `Default_Timeout` are `timeout`."""
    return name.lower().replace("_", "-").removeprefix("default-")


def _config_files(environ: Mapping[str, str]) -> list[Path]:
    """pip's configuration files on Linux, weakest first (pip's documentation, "Configuration Files")."""
    own = environ.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return []
    # as pip has it: a container's user may have neither a home nor a name
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    systems = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [
        *(Path(folder, "pip", "pip.conf") for folder in systems.split(":") if folder),
        Path("/etc/pip.conf"),
        # PIP_CONFIG_FILE stands in the place of the user's own files
        *([] if Path(own).is_file() else [home / ".pip" / "pip.conf", user / "pip" / "pip.conf"]),
        Path(sys.prefix, "pip.conf"),
        Path(own),
    ]
