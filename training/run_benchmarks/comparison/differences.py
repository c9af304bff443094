"""What differs between sides before any figure is looked at: configuration, software, hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from run_benchmarks.comparison.selecting import ComparedRound, section
from run_benchmarks.plan.as_dict import plain
from utils.text_files import shortened

MOST_VALUES = 20_000  # of a round: a node has a thousand packages
LONGEST = 120  # characters of a value that are shown
ABSENT, NOT_KNOWN = "-", "not known"
CONFIGURATION, SOFTWARE, HARDWARE, HOST = "configuration", "software", "hardware", "host"
_SETTINGS = ("vendor", "framework", "config", "nnodes", "nproc")
_OF_CASE = ("container_options", "image_build_args", "visible_devices_env", "extern", "environment")
_OF_RUN = ("runtime", "container_engine", "clear_caches", "shm_size", "monitor_interval_s", "machine")
# Of where a round comes from: what tells of software, and of a node; the rest differs from round to round by itself.
_SOFTWARE = ("harness", "software", "versions")
_PASSED_OVER = frozenset({"nodes", "unmeasured", "missing", "started"})


@dataclass(frozen=True)
class Difference:
    """A thing that is not the same everywhere. values: by side, what its rounds have."""

    part: str
    name: str
    values: Mapping[str, str]


def differences(sides: Mapping[str, Sequence[ComparedRound]]) -> list[Difference]:
    """All that is not the same in all rounds of all sides; letter -> rounds."""
    parts = {side: [_parts(each) for each in rounds] for side, rounds in sides.items()}
    return [each for part in (CONFIGURATION, SOFTWARE, HARDWARE, HOST) for each in _of_part(part, parts)]


def _of_part(part: str, sides: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Difference]:
    """The differences of a part; one line where a side does not say anything of it."""
    flat = {
        side: [dict(_flattened(each[part], "")) if each[part] else None for each in rounds]
        for side, rounds in sides.items()
    }
    names = dict.fromkeys(name for rounds in flat.values() for each in rounds if each for name in each)
    if any(each is None for rounds in flat.values() for each in rounds):
        states = {side: NOT_KNOWN if None in rounds else "known" for side, rounds in flat.items()}
        yield Difference(part, "everything", states)
    for name in names:
        values = {side: _joined(name, rounds) for side, rounds in flat.items()}
        if len({text for text in values.values() if text}) > 1:
            yield Difference(
                part, name, _contrasted({side: text or NOT_KNOWN for side, text in values.items()})
            )


def _contrasted(values: Mapping[str, str]) -> dict[str, str]:
    """The values; of long ones, like the flags of a processor, only the words that not every side has."""
    if max(map(len, values.values())) <= LONGEST:
        return dict(values)
    words = {side: text.split() for side, text in values.items()}
    common = set.intersection(*map(set, words.values()))
    own = {side: " ".join(word for word in of_side if word not in common) for side, of_side in words.items()}
    return {side: shortened(f"... {text}" if text else "...", LONGEST) for side, text in own.items()}


def _joined(name: str, rounds: Sequence[Mapping[str, str] | None]) -> str:
    """The values of a side's rounds, each once; empty where no round tells of the part."""
    return " | ".join(dict.fromkeys(each.get(name, ABSENT) for each in rounds if each is not None))


def _parts(each: ComparedRound) -> dict[str, Any]:
    """What a round says of each part; empty where it says nothing of it."""
    provenance: Mapping[str, Any] = plain(each.result.provenance) or {}
    return {
        CONFIGURATION: _configuration(each, provenance),
        SOFTWARE: _without_empty({name: provenance.get(name) for name in _SOFTWARE}),
        HARDWARE: _without_empty(
            {
                "chips": each.chips,
                "nodes": each.nodes,
                "chip": section(each.case, "chip").get("name"),
                "hosts": list(each.result.hosts),
            }
        ),
        HOST: provenance.get("hosts"),
    }


def _configuration(each: ComparedRound, provenance: Mapping[str, Any]) -> dict[str, Any]:
    settings, run = section(each.case, "settings"), section(each.plan, "run")
    parameters = {**section(each.case, "parameters"), **section(provenance, "configuration")}
    return _without_empty(
        {
            **{name: settings.get(name) for name in _SETTINGS},
            "parameters": parameters,
            **{name: each.case.get(name) for name in _OF_CASE},
            **{name: run.get(name) for name in _OF_RUN},
            "image": sorted(set(each.result.images.values())),
        }
    )


def _without_empty(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value not in (None, "", [], {})}


def _flattened(value: object, name: str, left: list[int] | None = None) -> Iterator[tuple[str, str]]:
    """Every single value with its dotted name; of a list of nodes' records each value that any of them has."""
    left = [MOST_VALUES] if left is None else left
    left[0] -= 1
    if left[0] < 0:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _PASSED_OVER:
                yield from _flattened(inner, f"{name}.{key}" if name else str(key), left)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        merged: dict[str, dict[str, None]] = {}
        for each in value:
            for key, text in _flattened(each, name, left):
                merged.setdefault(key, {})[text] = None
        yield from ((key, ", ".join(texts)) for key, texts in merged.items())
    elif value is not None:
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
