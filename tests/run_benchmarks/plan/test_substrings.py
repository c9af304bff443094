"""Many texts replaced at once: as a search for each would, in time that does not grow with their number."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from run_benchmarks.plan.substrings import Substrings

TEXT = some.text("ab\n \ré\ud800", max_size=12)


@settings(max_examples=200, deadline=None)
@given(some.sets(some.text("abé\ud800", min_size=2, max_size=5), max_size=4), TEXT)
@example({"ab", "abab"}, "aababb")
def test_the_leftmost_and_longest_is_replaced(texts: set[str], text: str) -> None:
    longest_first = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    expected = re.sub(longest_first, "*", text) if texts else text
    assert Substrings(texts).replaced(text, "*") == expected


@settings(max_examples=200, deadline=None)
@given(some.lists(some.sampled_from(["\n", "\r\n", "\n\t ", ""]), min_size=3, max_size=3), TEXT, TEXT)
def test_one_that_is_broken_by_ends_of_lines_is_replaced(breaks: list[str], before: str, after: str) -> None:
    wrapped = "".join(end + letter for end, letter in zip(["", *breaks], "xyzv", strict=True))
    replaced = Substrings(["xyzv"]).replaced_wrapped(f"{before}-{wrapped}-{after}", "*")
    assert replaced == (f"{before}-*-{after}" if any(breaks) else f"{before}-{wrapped}-{after}")


@pytest.mark.timeout(100)  # it takes a second; quadratic, an hour
def test_one_that_is_long_and_repeats_itself_is_looked_for_as_others_are() -> None:
    long = "x" * 10**6
    assert Substrings([long, "xyz"]).replaced(f"a{long}b xyz", "*") == "a*b *"


def test_thousands_are_looked_for_as_one_is() -> None:
    texts = [f"{number:06}<&" for number in range(20_000)]
    text = "".join(f" {each}" for each in texts)
    assert Substrings(texts).replaced(text, "*") == " *" * len(texts)
