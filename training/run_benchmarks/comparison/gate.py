"""The gate of `compare`: a condition under which a comparison fails, in a small language that is read and never run.

    condition = all { "or" all };   all = part { "and" part };   part = test | shown
    test = FIGURE ("<" | "<=" | ">" | ">=") NUMBER ["%"];   shown = WORD "(" FIGURE ")"

A test looks at the ratio to the base, a `shown` at the verdict on it: WORD is one of WORDS.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from utils.errors import FlagPerfError
from utils.numbers import shown

WORSE, BETTER, LOWER, HIGHER = "worse", "better", "lower", "higher"
DIFFERENT = "different"
# The words of a condition, and the directions for which each holds.
WORDS: Mapping[str, tuple[str, ...]] = {
    "slower": (WORSE,),
    "worse": (WORSE,),
    "faster": (BETTER,),
    "better": (BETTER,),
    DIFFERENT: (WORSE, BETTER, LOWER, HIGHER),
}
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MOST_CHARACTERS = 1000
_NAME = r"([A-Za-z]\w{0,80})"
_TEST = re.compile(rf"{_NAME}\s*(<=|>=|<|>)\s*(\d{{1,9}}(?:\.\d{{1,9}})?)\s*(%?)", re.ASCII)
_SHOWN = re.compile(rf"({'|'.join(WORDS)})\s*\(\s*{_NAME}\s*\)", re.ASCII)
_EXAMPLE = 'write it like "p_train < 0.95", or "slower(p_train) and energy > 105% or worse(acc)"'


@dataclass(frozen=True)
class Judged:
    """A figure as a gate sees it: the ratio to the base, and the direction that is shown, or none.

    no_ratio, no_verdict: why there is none; empty where there is, were it that nothing is shown.
    is_directed: whether higher or lower is better.
    """

    ratio: float | None
    direction: str
    no_ratio: str = ""
    no_verdict: str = ""
    is_directed: bool = True


@dataclass(frozen=True)
class Part:
    """One condition. word: of WORDS, for one on the verdict; else `sign` and `limit` are for the ratio."""

    text: str
    figure: str
    word: str = ""
    sign: str = ""
    limit: float = 0.0

    def holds(self, judged: Judged) -> bool:
        """Whether what it says is so; where nobody can tell (see `unclear`), it is not."""
        if self.word:
            return judged.direction in WORDS[self.word]
        return judged.ratio is not None and COMPARISONS[self.sign](judged.ratio, self.limit)

    def unclear(self, judged: Judged) -> str:
        """Why nobody can tell; empty where one can."""
        if self.word in ("", DIFFERENT) or judged.is_directed:
            return judged.no_ratio or (judged.no_verdict if self.word else "")
        return f"neither higher nor lower is better: say {DIFFERENT}({self.figure})"


@dataclass(frozen=True)
class Gate:
    """A condition as it was given, and as it was read: it holds if all parts of any of its `alternatives` do."""

    text: str
    alternatives: Sequence[Sequence[Part]]

    @property
    def figures(self) -> list[str]:
        """The figures that it names."""
        return list(dict.fromkeys(part.figure for parts in self.alternatives for part in parts))

    def failures(self, judged: Mapping[str, Judged]) -> list[str]:
        """Why it fails, a line a reason: what holds, or what nobody can tell; empty where it does not fail."""
        parts = [part for alternative in self.alternatives for part in alternative]
        unclear = [f"{part.text}: {why}" for part in parts if (why := part.unclear(judged[part.figure]))]
        failed = [each for each in self.alternatives if all(part.holds(judged[part.figure]) for part in each)]
        return unclear or [_seen(part, judged[part.figure]) for each in failed for part in each]


def parse_gate(text: str) -> Gate:
    """Read a condition.

    Raises:
        FlagPerfError: it is none.
    """
    if len(text) > MOST_CHARACTERS:
        raise FlagPerfError(f"has more than {MOST_CHARACTERS} characters", where="--fail-if", remedy=_EXAMPLE)
    alternatives = [re.split(r"\band\b", each) for each in re.split(r"\bor\b", text)]
    return Gate(text, [[_part(part.strip(), text) for part in parts] for parts in alternatives])


def _part(text: str, whole: str) -> Part:
    if match := _SHOWN.fullmatch(text):
        return Part(text, match[2], word=match[1])
    if match := _TEST.fullmatch(text):
        return Part(text, match[1], sign=match[2], limit=float(match[3]) / (100 if match[4] else 1))
    message = f"{text!r} is no condition" if text else "a condition is missing beside `and` or `or`"
    raise FlagPerfError(message, where=f"--fail-if {whole!r}", remedy=_EXAMPLE)


def _seen(part: Part, judged: Judged) -> str:
    ratio = f"the ratio is {shown(judged.ratio, 4)}" if judged.ratio is not None else ""
    direction = f"shown to be {judged.direction}" if judged.direction else ""
    return f"{part.text}: {', '.join(filter(None, (ratio, direction)))}"
