"""Take typed settings out of a configuration file and remember which ones the program knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from run_benchmarks.plan.kinds import Kind
from run_benchmarks.plan.problems import Problems, UnfitError
from run_benchmarks.plan.source import Source
from utils.errors import nearest

T = TypeVar("T")
D = TypeVar("D")


class Reader:
    """Settings of one file. What is absent or None gets its default; what is unfit is a problem as well."""

    def __init__(self, source: Source, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.known: set[str] = set()

    def get(self, name: str, kind: Kind[T], default: D) -> T | D:
        """The setting `name`, checked by `kind`."""
        self.known.add(name)
        value = self.source.values.get(name)
        if value is None:
            self._report_odd(name)
            return default
        try:
            return kind(value)
        except UnfitError as unfit:
            self.unfit(name, unfit.message, unfit.remedy)
            return default

    def require(self, name: str, kind: Kind[T], example: str) -> T | None:
        """Like `get`, but its absence is a problem. None stands for a value that could not be had."""
        if self.given(name) is None and not self._is_odd(name):
            self.known.add(name)
            self.unfit(name, "is not set", f"add a line such as: {name} = {example}")
            return None
        return self.get(name, kind, None)

    def given(self, name: str) -> Any:
        """The value as it stands in the file, or None."""
        return self.source.values.get(name)

    def unfit(self, name: str, message: str, remedy: str) -> None:
        """Note that the setting `name` is wrong."""
        self.problems.add(self.source.where(name), name, self.given(name), message, remedy)

    def report_unknown(self, is_other: Callable[[str, Any], bool]) -> None:
        """Note every name in the file that is neither a known setting nor `is_other`."""
        for name, value in self.source.values.items():
            if name not in self.known and not is_other(name, value) and self._looks_like_setting(name):
                hint = nearest(name.upper(), sorted(self.known))
                own = "a name of your own must start with _ or be written in small letters"
                self.unfit(name, "is not a known setting", hint or f"remove it; {own}")

    def _looks_like_setting(self, name: str) -> bool:
        return name.isupper() or name.upper() in self.known

    def _is_odd(self, name: str) -> bool:
        return name not in self.source.values and name in self.source.lines.names

    def _report_odd(self, name: str) -> None:
        """A name that is assigned but is no plain data, e.g. a set or a Path: it must not pass for absent."""
        if self._is_odd(name):
            message = "is neither text, a number, True, False, None, nor a list or dict of these"
            self.unfit(name, message, "write plain data, e.g. str(...) around a path")
