"""What of a case's own values has room in a result: all of them stand in rank 0's log.

A line of a log may hold a megabyte. A few of those in each result.json, and again in summary.json, and nobody could
read the other rounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from run_benchmarks.results.round_result import RoundResult
from utils.numbers import counted
from utils.plain_data import is_small
from utils.text_files import shortened

MOST_BYTES = 2**16  # as they stand in the file: of FINISHED, of the configuration, of what differs in it, ...
MOST_VALUES, DEEPEST = 5_000, 12
LONGEST_NAMES = 200


def within_bounds(result: RoundResult) -> RoundResult:
    """The result without those of its case's values that have no room, which a note says."""
    notes: list[str] = []

    def kept(what: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        taken = dict(_taken(values))
        missing = [name for name in values if name not in taken]
        if missing:
            names = shortened(", ".join(missing), LONGEST_NAMES)
            notes.append(
                f"{what}: {counted(len(missing), 'value')} too large for a result: rank 0's log has {names}"
            )
        return taken

    facts = kept("FINISHED", result.facts)
    continued = result.continued and kept("continued", result.continued)
    rules = replace(result.rules, differs=kept("what differs", result.rules.differs))
    origin = result.provenance
    if origin:
        origin = replace(origin, configuration=kept("configuration", origin.configuration))
    notes = [*result.notes, *notes]
    return replace(
        result, facts=facts, continued=continued, rules=rules, provenance=origin, notes=tuple(notes)
    )


def _taken(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    left = MOST_BYTES
    for name, value in values.items():
        size = len(json.dumps({name: value}, indent=2)) if is_small(value, MOST_VALUES, DEEPEST) else left + 1
        if size <= left:
            left -= size
            yield name, value
