"""What a vendor's tools printed somewhere, and what the vendor's own code must make of it.

`<vendor>/recordings/NAME.txt` is what was printed, `NAME.json` beside it an `Expected`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

from run_benchmarks.plan.apart import apart
from run_benchmarks.plan.vendors import PARSER, VENDOR_FILE
from run_benchmarks.reading import parsed, read_object
from utils.config_files import is_plain, load_config
from utils.errors import FlagPerfError, nearest, raised
from utils.loading import load_module
from utils.monitors.accelerators import monitor_file
from utils.plain_data import exact
from utils.telemetry import Sample

FOLDER = "recordings"
LARGEST_EXPECTED = 2**20  # bytes
_OF_TOOL = {"time_ms", "source", "device", "kind"}  # what the monitor fills in, and a parser does not
SAMPLED = tuple(each.name for each in fields(Sample) if each.name not in _OF_TOOL)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What must come of a recording; what is not said is not looked at.

    source: who published it, and what is to know of it. command: what printed it.
    devices: what `parse_device_list` returns; devices_error: words of the error that it raises in place of that.
    chips: the names in CHIPS that the devices are taken for.
    samples: what the monitor's `parse` returns: device -> the fields of its `Sample` that are not None.
    samples_error: words of the error that it raises. inventory: what the monitor's `describe` returns.
    """

    source: str
    command: str
    devices: tuple[str, ...] | None = None
    devices_error: str = ""
    chips: tuple[str, ...] | None = None
    samples: Mapping[str, Mapping[str, float | str]] | None = None
    samples_error: str = ""
    inventory: tuple[Mapping[str, bool | int | float | str | None], ...] | None = None


@dataclass(frozen=True)
class Recording:
    """`text` is what was printed; `path` is that of the JSON file beside it."""

    path: Path
    text: str
    expected: Expected


@dataclass(frozen=True)
class OutputParser:
    """A function of the vendor's that reads what a tool printed.

    file: where it stands. field: of `Expected`, what it returns; the words of an error are in `<field>_error`.
    """

    function: str
    field: str
    words: str

    def file(self, vendor: Path) -> Path:
        """Where it stands."""
        return vendor / VENDOR_FILE if self.function == PARSER else monitor_file(vendor)

    def expects(self, expected: Expected) -> Any:
        """What it must return; None where nothing is said of that."""
        value = getattr(expected, self.field)
        return list(value) if isinstance(value, tuple) else value

    def error(self, expected: Expected) -> str:
        """Words of the error that it must raise, or none."""
        return str(getattr(expected, f"{self.field}_error", ""))


PARSERS = (
    OutputParser(PARSER, "devices", "the device list"),
    OutputParser("parse", "samples", "samples"),
    OutputParser("describe", "inventory", "the inventory"),
)
# What a parser made of each recording, by its path: whether it returned something, and that or the error's text.
Outcomes = dict[str, tuple[bool, Any]]


def recordings_of(vendor: Path) -> tuple[list[Recording], list[FlagPerfError]]:
    """All recordings that can be read, by name, and what is wrong with the others."""
    recordings, errors = [], []
    for path in sorted((vendor / FOLDER).glob("*.*")):
        try:
            if path.suffix == ".json":
                recordings.append(_recording(path))
            elif path.suffix != ".txt" or not path.with_name(f"{path.stem}.json").exists():
                remedy = (
                    f"write {path.stem}.json: where it is from, which command it is of, what must come of it"
                )
                raise FlagPerfError("nothing says what must come of it", where=str(path), remedy=remedy)
        except FlagPerfError as error:
            error.remedy = error.remedy or 'correct it: CONTRIBUTING.md, "Recordings", says what it holds'
            errors.append(error)
    return recordings, errors


def _recording(path: Path) -> Recording:
    content, printed = read_object(path, LARGEST_EXPECTED) or {}, path.with_name(f"{path.stem}.txt")
    names = [each.name for each in fields(Expected)]
    for name in content.keys() - set(names):
        raise FlagPerfError(
            f"{name} says nothing", where=str(path), remedy=nearest(name, names) or f"use {names}"
        )
    expected = parsed(Expected, content, str(path))
    for sample in (expected.samples or {}).values():
        for name in sample.keys() - set(SAMPLED):
            remedy = nearest(name, SAMPLED) or f"use {', '.join(SAMPLED)}"
            raise FlagPerfError(f"`{name}` is no field of a sample", where=str(path), remedy=remedy)
    try:
        shlex.split(expected.command)
    except ValueError as error:
        raise FlagPerfError(f"`command` is no command: {error}", where=str(path)) from error
    if "\0" in expected.command:
        raise FlagPerfError("`command` is no command: it has a NUL", where=str(path))
    if not any(parser.expects(expected) is not None or parser.error(expected) for parser in PARSERS):
        raise FlagPerfError(
            "says nothing of what must come of it", where=str(path), remedy="add devices or samples"
        )
    try:
        return Recording(path, printed.read_text("utf-8"), expected)
    except (OSError, ValueError) as error:
        raise FlagPerfError(raised(error), where=str(printed), remedy="put there what was printed") from error


def replay(vendor: Path, parser: OutputParser, recordings: Iterable[Recording]) -> Outcomes:
    """What the vendor's function makes of them, executed apart from the controller.

    Raises:
        FlagPerfError: the file cannot be executed.
    """
    file = parser.file(vendor)
    outcomes: Outcomes = apart(
        partial(_replayed, file, parser.function, {str(r.path): r.text for r in recordings}), file
    )
    return outcomes


def _replayed(file: Path, function: str, texts: Mapping[str, str]) -> Outcomes:
    module = load_config(file) if function == PARSER else load_module(file, f"flagperf_{file.stem}")
    return {name: _asked(vars(module)[function], text, file) for name, text in texts.items()}


def _asked(function: Callable[[str], Any], text: str, file: Path) -> tuple[bool, Any]:
    try:
        value = exact(_plain(function(text)))
        return (True, value) if is_plain(value) else (False, f"no error, and returns {value!r:.200}")
    except FlagPerfError as error:
        return False, error.message
    except Exception as error:  # code of the vendor's may raise anything
        return False, f"{raised(error)}{_line_of(error, file)}"


def _line_of(error: Exception, file: Path) -> str:
    """Where in the file it came about, as ` (vendor.py:12)`."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f" ({file.name}:{lines[-1]})" if lines else ""


def _plain(value: Any) -> Any:
    """Samples as their fields that say something."""
    if not isinstance(value, Mapping):
        return [dict(each) if isinstance(each, Mapping) else each for each in value]
    return {device: sample_fields(sample) for device, sample in value.items()}


def sample_fields(sample: Sample) -> dict[str, float | str]:
    """What a parser has said of a device."""
    values = {name: value for name, value in asdict(sample).items() if name not in _OF_TOOL}
    return {name: value for name, value in values.items() if value not in (None, "")}


def differences(expected: Any, got: Any, place: str = "") -> Iterator[str]:
    """Where what was got is not what was expected, of lists and dicts entry by entry."""
    if isinstance(expected, list) and isinstance(got, list):
        expected, got = dict(enumerate(expected)), dict(enumerate(got))
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in {**expected, **got}:
            yield from differences(expected.get(key), got.get(key), f"{place}{key}: ")
    elif expected != got:
        yield f"{place}{json.dumps(got)} in place of {json.dumps(expected)}"
