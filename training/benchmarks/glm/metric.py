"""ReCoRD's two metrics, by the rules of its official evaluation (and SQuAD's, from which they are).

A chosen candidate is compared with every right answer, and the best comparison counts: a question may be
answered by several spellings of one entity ("Obama", "Barack Obama"), and each is right. FlagPerf's evaluation compares
places in the list of candidates instead, letter for letter: of the same choices it never reads higher.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalised(text: str) -> str:
    """Lower case, without ASCII punctuation, articles and surplus white space."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(chosen: str, answers: Iterable[str]) -> int:
    """1 if `chosen` is one of the right answers after normalisation, else 0."""
    return int(normalised(chosen) in {normalised(answer) for answer in answers})


def f1(chosen: str, answers: Iterable[str]) -> float:
    """The harmonic mean of precision and recall of the words of `chosen`, for the answer it fits best."""
    return max(
        (_f1(normalised(chosen).split(), normalised(answer).split()) for answer in answers), default=0.0
    )


def _f1(chosen: list[str], answer: list[str]) -> float:
    common = sum((Counter(chosen) & Counter(answer)).values())
    return 2 * common / (len(chosen) + len(answer)) if common else 0.0
