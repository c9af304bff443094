"""The part `monitor`: the vendor's parsers, and what they make of what its tools have printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from run_benchmarks.conformance.folder import chip_of, vendor_in
from run_benchmarks.conformance.recordings import (
    FOLDER,
    PARSERS,
    OutputParser,
    Recording,
    differences,
    recordings_of,
    replay,
)
from run_benchmarks.conformance.records import CheckResult, Options, failed, named, not_proven
from run_benchmarks.plan.vendors import PARSER
from utils.errors import FlagPerfError
from utils.monitors.accelerators import defines, monitor_file
from utils.numbers import counted

MOST_SHOWN = 3  # differences of a recording
OPENER = "open_devices"


def checks(vendor: Path, options: Options) -> Iterator[CheckResult]:
    """Each function that reads a tool's output, on every recording that speaks of it."""
    recordings, errors = recordings_of(vendor)
    lists = [each for each in recordings if each.expected.chips is not None]
    if recordings or errors:
        trouble = [failed(error.message, error.where, error.remedy) for error in errors]
        yield from named("recordings can be read", trouble, counted(len(recordings), "recording"))
    if lists:
        detail = counted(len(lists), "recording")
        yield from named("chips of recordings", _taken_for(vendor, lists), detail)
    if (file := monitor_file(vendor)).exists():
        yield from named(OPENER, _unopened(file))
    for parser in PARSERS:
        own = [each for each in recordings if _speaks_of(parser, each)]
        if own or parser.function != "describe":
            detail = f"{parser.function} is right on {counted(len(own), 'recording')}"
            yield from named(f"{parser.words} of recordings", _of_parser(vendor, parser, own), detail)


def _unopened(file: Path) -> Iterator[CheckResult]:
    """By nothing else are devices sampled."""
    if not defines(file, OPENER):
        remedy = (
            f"write {OPENER}(), as training/run_benchmarks/conformance/template/acme_monitor.py.in has it"
        )
        yield failed(f"it has no {OPENER}(): no run would sample a device", file, remedy)


def _speaks_of(parser: OutputParser, recording: Recording) -> bool:
    return parser.expects(recording.expected) is not None or bool(parser.error(recording.expected))


def _taken_for(folder: Path, recordings: Sequence[Recording]) -> Iterator[CheckResult]:
    vendor, _ = vendor_in(folder)  # what is wrong with it is named by the static part
    if vendor is None:
        return
    for recording in recordings:
        wanted = set(recording.expected.chips or ())
        taken = {chip_of(vendor, device) for device in recording.expected.devices or ()} - {""}
        if taken != wanted:
            remedy = "correct device_names in CHIPS, or the expectation if that is wrong"
            yield failed(
                f"its devices are taken for {sorted(taken)}, not {sorted(wanted)}", recording.path, remedy
            )


def _of_parser(vendor: Path, parser: OutputParser, recordings: Sequence[Recording]) -> Iterator[CheckResult]:
    file = parser.file(vendor)
    if recordings and not defines(file, parser.function):
        yield failed(f"it has no {parser.function}(text), of which recordings speak", file, "write it")
    elif parser.function != PARSER and not file.exists():
        yield not_proven("there is no such file: power, energy and use of the devices are not sampled", file)
    elif not defines(file, parser.function):
        yield not_proven(
            f"it has no {parser.function}(text): it samples by a library, which is seen on a chip", file
        )
    elif not recordings:
        remedy = f"put what the tool prints into {FOLDER}/NAME.txt, and what must come of it into NAME.json"
        yield not_proven(f"no recording says what {parser.function} must return", file, remedy)
    else:
        yield from _replayed(vendor, parser, recordings)


def _replayed(vendor: Path, parser: OutputParser, recordings: Sequence[Recording]) -> Iterator[CheckResult]:
    try:
        outcomes = replay(vendor, parser, recordings)
    except FlagPerfError as error:
        yield failed(error.message, error.where or parser.file(vendor), error.remedy)
        return
    for recording in recordings:
        is_value, got = outcomes[str(recording.path)]
        trouble = _trouble(parser, recording, is_value, got)
        if trouble:
            remedy = (
                f"mend {parser.function} in {parser.file(vendor).name}, or the expectation if that is wrong"
            )
            yield failed(f"{parser.function} misreads it: {trouble}", recording.path, remedy)


def _trouble(parser: OutputParser, recording: Recording, is_value: bool, got: Any) -> str:
    """What is wrong with what came of a recording; empty where nothing is."""
    words, wanted = parser.error(recording.expected), parser.expects(recording.expected)
    if words:
        if is_value:
            return f"it returns {got!r:.200}, and an error with {words!r} is right"
        return "" if words in got else f"its error is {got!r}, without {words!r}"
    if not is_value:
        return f"it raises {got}"
    return "; ".join(islice(differences(wanted, got), MOST_SHOWN))
