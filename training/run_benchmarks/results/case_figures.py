"""The figures that a case defines itself: what rank 0's FINISHED event says under `figures`, as a stranger's data.

An entry that is not what it should be is left out, and a note says why; the others stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat, StringConstraints, ValidationError

from run_benchmarks.reading import first_problem
from run_benchmarks.results.planned import PlannedChip
from utils.figure_names import OF_PEAK, name_problem
from utils.figures import FINISHED, HIGHER, Figure
from utils.text_files import shortened_to_words

# The units of a rate that a chip's peak can be set against, in operations per second.
RATES = {f"{prefix}{what}/s": scale for what in ("FLOP", "OP") for prefix, scale in
         (("", 1.0), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))}  # fmt: skip
# Units of what is counted by the second: such a rate is above 0, or there is none.
COUNTED = re.compile(r"([kKMGTP]i?)?(B|b|(byte|bit|FLOP|OP|sample|token|image|sequence|step|iteration)s?)/s")
MOST_FIGURES = 200
MOST_NOTES = 10
LONGEST_NOTE = 400  # characters


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds line breaks or control characters")
    return text


_Word = Annotated[str, StringConstraints(min_length=1, max_length=40), AfterValidator(_one_line)]
_Line = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_line)]
_Prose = Annotated[str, StringConstraints(min_length=1, max_length=600), AfterValidator(_one_line)]


class _Entry(BaseModel):
    """One figure as a case writes it."""

    model_config = ConfigDict(strict=True)

    value: FiniteFloat
    unit: _Word
    window: _Line
    better: Literal["higher", "lower"] | None
    definition: _Prose
    peak: _Word | None = None
    caveat: _Line | None = None


def case_figures(facts: Mapping[str, Any], chip: PlannedChip | None) -> tuple[dict[str, Figure], list[str]]:
    """The valid figures in FINISHED's values `facts`, with `<name>_of_peak` where a rate names its dtype.

    Returns:
        The figures by name, and a note for each entry that was left out or cannot be right.
    """
    reported = facts.get("figures")
    if reported is None:
        return {}, []
    if not isinstance(reported, Mapping):
        return {}, [f"the figures of the {FINISHED} are left out: they are no mapping of names"]
    figures: dict[str, Figure] = {}
    notes = []
    for name, entry in list(reported.items())[:MOST_FIGURES]:
        problem = _add(figures, str(name), entry, chip)
        notes += [f"figure {shortened_to_words(str(name), 70)!r} of the case {problem}"] if problem else []
    if len(reported) > MOST_FIGURES:
        notes.append(f"of the case's {len(reported)} figures the first {MOST_FIGURES} were taken")
    left_out = len(notes) - MOST_NOTES
    more = [f"{left_out} more of this kind"] if left_out > 0 else []
    return figures, [*_own_notes(facts), *notes[:MOST_NOTES], *more]


def _own_notes(facts: Mapping[str, Any]) -> list[str]:
    """What the case itself says of its figures under `notes`, as far as it is lines of text."""
    notes = facts.get("notes")
    lines = [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    printed = ("".join(c for c in line if c.isprintable()) for line in lines[:MOST_NOTES])
    return [shortened_to_words(line, LONGEST_NOTE) for line in printed]


def _add(figures: dict[str, Figure], name: str, entry: object, chip: PlannedChip | None) -> str:
    """Add a figure, and its part of the peak; what is wrong with it, or nothing."""
    try:
        valid = _valid(name, entry)
    except ValueError as error:
        return f"is left out: {error}"
    figures[name] = Figure(
        valid.value,
        valid.unit,
        valid.window,
        FINISHED,
        valid.better,
        valid.definition,
        caveat=valid.caveat or "",
    )
    if not valid.peak:
        return ""
    part = _of_peak(name, figures[name], valid.peak, chip)
    figures[f"{name}{OF_PEAK}"] = part
    if part.value is None or part.value <= 1:
        return ""
    doubt = f"not to be trusted: it is {part.value:.4g} of the chip's peak"
    caveat = "; ".join(filter(None, (valid.caveat, doubt)))
    figures |= {name: replace(figures[name], caveat=caveat), f"{name}{OF_PEAK}": replace(part, caveat=caveat)}
    return f"is {doubt}"


def _valid(name: str, entry: object) -> _Entry:
    """The entry; ValueError where it is not what it should be."""
    if problem := name_problem(name):
        raise ValueError(problem)
    try:
        valid = _Entry.model_validate(entry)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from error
    if valid.peak and valid.unit not in RATES:
        raise ValueError(f"it names a peak, but its unit is none of {', '.join(RATES)}")
    if valid.value <= 0 and COUNTED.fullmatch(valid.unit):
        raise ValueError(f"it is {valid.value:.6g} {valid.unit}, and such a rate is above 0")
    return valid


def _of_peak(name: str, figure: Figure, dtype: str, chip: PlannedChip | None) -> Figure:
    """The part of the chip's dense peak that a rate per chip comes to."""
    definition = f"{name} / the chip's dense peak in {dtype}"
    peak = chip.peak_flops.get(dtype) if chip else None
    if figure.value is None:
        return Figure(None, "1", figure.window, figure.source, HIGHER, definition)
    if chip is None or not peak:
        reason = (
            f"the chip's peak in this dtype is not known ({chip.name}: {chip.source_of_peaks()})"
            if chip
            else "no such chip"
        )
        return Figure(None, "1", figure.window, reason, HIGHER, definition)
    source = f"{name} / ({peak:.4g} FLOP/s; {chip.name}, dense {dtype}: {chip.source_of_peaks()})"
    value = figure.value * RATES[figure.unit] / peak
    return Figure(value, "1", figure.window, source, HIGHER, definition, caveat=figure.caveat)
