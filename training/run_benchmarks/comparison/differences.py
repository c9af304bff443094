"""What differs between sides before any figure is looked at: configuration, software, hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from run_benchmarks.comparison.selecting import ComparedRound
from run_benchmarks.plan.as_dict import plain
from run_benchmarks.reading import flattened
from run_benchmarks.results.folder import section
from utils.text_files import shortened

MOST_VALUES = 20_000  # of a round: a node has a thousand packages
LONGEST = 120  # characters of a value that are shown
ABSENT, NOT_KNOWN = "none", "not known"
CONFIGURATION, SOFTWARE, HARDWARE, HOST = "configuration", "software", "hardware", "host"
_SETTINGS = ("vendor", "framework", "config", "nnodes", "nproc")
_OF_CASE = ("container_options", "image_build_args", "visible_devices_env", "extern", "environment")
_OF_RUN = (
    "runtime",
    "container_engine",
    "process_setup",
    "clear_caches",
    "shm_size",
    "monitor_interval_s",
    "monitors",
    "machine",
)
# Of where a round comes from: what tells of software, and of a node; the rest differs from round to round by itself.
_SOFTWARE = ("harness", "software", "versions")
_PASSED_OVER = frozenset({"nodes", "unmeasured", "missing", "started"})
Values = Mapping[str, str]  # dotted name -> value


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


def _of_part(part: str, sides: Mapping[str, Sequence[Mapping[str, Values]]]) -> Iterator[Difference]:
    """The differences of a part; one line where a side does not say anything of it."""
    own = {side: [each[part] for each in rounds] for side, rounds in sides.items()}
    if not all(values for rounds in own.values() for values in rounds):
        states = {side: "known" if all(rounds) else NOT_KNOWN for side, rounds in own.items()}
        yield Difference(part, "everything", states)
    by_side = {side: _by_name(rounds) for side, rounds in own.items()}
    telling = {side: sum(map(bool, rounds)) for side, rounds in own.items()}
    for name in dict.fromkeys(name for of_side in by_side.values() for name in of_side):
        texts = {side: _joined(of_side.get(name, []), telling[side]) for side, of_side in by_side.items()}
        if len({text for text in texts.values() if text}) > 1:
            yield Difference(
                part, name, _contrasted({side: text or NOT_KNOWN for side, text in texts.items()})
            )


def _by_name(rounds: Sequence[Values]) -> Mapping[str, Sequence[str]]:
    """What the rounds that have a name say of it: each of thousands may have names of its own."""
    texts: dict[str, list[str]] = {}
    for values in rounds:
        for name, text in values.items():
            texts.setdefault(name, []).append(text)
    return texts


def _joined(texts: Sequence[str], telling: int) -> str:
    """The values of a side's rounds, each once; empty where no round tells of the part.

    telling: how many do; those of them that have no such value come last.
    """
    return " | ".join(dict.fromkeys([*texts, *[ABSENT] * (len(texts) < telling)]))


def _contrasted(values: Mapping[str, str]) -> dict[str, str]:
    """The values; of long ones, like the flags of a processor, only the words that not every side has."""
    if max(map(len, values.values())) <= LONGEST:
        return dict(values)
    words = {side: text.split() for side, text in values.items()}
    common = set.intersection(*map(set, words.values()))
    own = {side: " ".join(word for word in of_side if word not in common) for side, of_side in words.items()}
    return {side: shortened(f"... {text}" if text else "...", LONGEST) for side, text in own.items()}


def _parts(each: ComparedRound) -> dict[str, Values]:
    """What a round says of each part; empty where it says nothing of it."""
    provenance: Mapping[str, Any] = plain(each.result.provenance) or {}
    chip = section(each.case, "chip").get("name")
    hardware = {"chips": each.chips, "nodes": each.nodes, "chip": chip, "hosts": list(each.result.hosts)}
    return {
        CONFIGURATION: _values(_configuration(each, provenance)),
        SOFTWARE: _values({name: provenance.get(name) for name in _SOFTWARE}),
        HARDWARE: _values(hardware),
        HOST: _values(provenance.get("hosts")),
    }


def _configuration(each: ComparedRound, provenance: Mapping[str, Any]) -> dict[str, Any]:
    settings, run = section(each.case, "settings"), section(each.plan, "run")
    return {
        **{name: settings.get(name) for name in _SETTINGS},
        "parameters": dict([*_some(each.case, "parameters"), *_some(provenance, "configuration")]),
        **{name: each.case.get(name) for name in _OF_CASE},
        **{name: run.get(name) for name in _OF_RUN},
        "image": sorted(set(each.result.images.values())),
    }


def _some(content: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """A section's first values: with more than are looked at each round would cost what a whole plan may hold."""
    return islice(section(content, name).items(), MOST_VALUES)


def _values(content: object) -> Values:
    """All that plain data says; of a list of nodes' records what any of them has."""
    merged: dict[str, dict[str, None]] = {}
    for name, text in islice(flattened(content, is_numbered=False), MOST_VALUES):
        if _PASSED_OVER.isdisjoint(name.split(".")):
            merged.setdefault(name, {})[text] = None
    return {name: ", ".join(texts) for name, texts in merged.items()}
