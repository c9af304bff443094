"""What two files of a run say otherwise of the same round: one of them was altered since the run wrote both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from run_benchmarks.names import JOURNAL
from run_benchmarks.results.folder import RoundKey, RunFolder
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.summary import LEFT_OUT, as_summed_up

REMEDY = "one was altered; `show --rescore` judges the logs"
PLAIN = {
    "schema": "form",
    "rules": "stamp and rules",
}  # what a reader calls a part, where that is not its name
SUMMARY = "summary.json"


def verdicts_of(folder: RunFolder) -> dict[RoundKey, str]:
    """What the journal says each round ended with: of one that was gone on with after its end the last word."""
    ends = (entry for entry in folder.journal if entry.get("event") == "round_ended")
    rounds = ((entry.get("case"), entry.get("round"), entry.get("verdict")) for entry in ends)
    return {
        RoundKey(case, number): verdict
        for case, number, verdict in rounds
        if isinstance(case, str) and type(number) is int and isinstance(verdict, str)
    }


def alterations(
    folder: RunFolder,
    key: RoundKey,
    own: RoundResult | None,
    summed: RoundResult | None,
    verdicts: Mapping[RoundKey, str],
) -> Iterator[str]:
    """What is to be said of a round as its result.json has it (`own`), and as summary.json has it."""
    if own and summed and (parts := _differing(own, summed, is_brief=LEFT_OUT in _notes(folder))):
        yield f"{key}: the {', '.join(parts)} in its result.json and in {SUMMARY} differ: {REMEDY}"
    ended = verdicts.get(key)
    for name, result in (("result.json", own), (SUMMARY, summed)):
        if result and ended and result.verdict.value != ended:
            yield f"{key}: {result.verdict.value} in {name}, and {ended} in {JOURNAL}: {REMEDY}"


def _differing(own: RoundResult, summed: RoundResult, *, is_brief: bool) -> list[str]:
    # both as a summary has them: what an earlier version left in one is left out of both
    left, right = (as_summed_up(each, is_brief=is_brief) for each in (own, summed))
    names = (each.name for each in fields(RoundResult))
    return [PLAIN.get(name, name) for name in names if getattr(left, name) != getattr(right, name)]


def _notes(folder: RunFolder) -> list[object]:
    notes = folder.summary.get("notes")
    return notes if isinstance(notes, list) else []
