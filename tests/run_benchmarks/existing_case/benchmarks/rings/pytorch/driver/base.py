import importlib
import os
import sys
from argparse import ArgumentParser
from typing import Any

from .event import Event
from .perf_logger import PerfLogger


class Driver:
    """Takes the launch contract's arguments as strictly as existing drivers do."""

    def __init__(self, config: Any, mutable_params: list[str]) -> None:
        self.config = config
        self.mutable_params = mutable_params
        self.logger: Any = None

    def setup_config(self, parser: ArgumentParser) -> None:
        for name in ("data_dir", "extern_module_dir", "extern_config_dir", "extern_config_file"):
            parser.add_argument(f"--{name}", type=str)
        parser.add_argument("--enable_extern_config", action="store_true")
        known, rest = parser.parse_known_args()
        own = ArgumentParser()
        for name in self.mutable_params:
            value = getattr(self.config, name)
            own.add_argument(f"--{name}", type=str if value is None else type(value))
        given = vars(own.parse_args(rest))  # ends the rank at an argument that it does not know
        settings = {"data_dir": known.data_dir, **self._vendors_settings(known)}
        settings.update({name: value for name, value in given.items() if value is not None})
        settings["local_rank"] = int(os.environ["LOCAL_RANK"])
        for name, value in settings.items():
            setattr(self.config, name, value)
        if not os.path.isdir(known.extern_module_dir):  # noqa: PTH112
            raise TypeError(f"{known.extern_module_dir} is not a folder")
        self.logger = PerfLogger(self.config.local_rank)

    def _vendors_settings(self, known: Any) -> dict[str, Any]:
        sys.path.append(known.extern_config_dir)
        module = importlib.import_module(known.extern_config_file.removesuffix(".py"))
        sys.path.pop()
        names = [name for name in vars(module) if not name.startswith("_")]
        return {
            name: getattr(module, name)
            for name in names
            if known.enable_extern_config or name in self.mutable_params
        }

    def event(self, event: Event, message: Any = None) -> None:
        self.logger.log(event, message)
