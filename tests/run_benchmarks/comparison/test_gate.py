"""The gate's language: what it reads, what it refuses, and when it fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks.comparison.gate import MOST_CHARACTERS, parse_gate
from run_benchmarks.comparison.ratios import Ratio
from run_benchmarks.comparison.records import Row
from utils.errors import FlagPerfError


def row(ratio: Ratio, direction: str = "", better: str | None = "higher") -> Row:
    """A figure of the side B, of which this is shown against the base."""
    return Row("a", "s", better, "made up", {}, {"B": replace(ratio, direction=direction)})


SLOW = row(Ratio(0.9, p_value=0.01), "worse")
SAME = row(Ratio(1.0, p_value=0.5))
MORE = row(Ratio(2.0, p_value=0.01), "higher", better=None)
FEW = row(Ratio(0.9, reason="too few rounds"))
NOTHING = row(Ratio(None, reason="no value of B: no meter"))


@pytest.mark.parametrize(
    ("text", "rows", "fails"),
    [
        ("a < 0.95", {"a": SLOW}, True),
        ("a < 0.95", {"a": SAME}, False),
        ("a<95%", {"a": SLOW}, True),
        ("a >= 1", {"a": SAME}, True),
        ("a > 1", {"a": SAME}, False),
        ("slower(a)", {"a": SLOW}, True),
        ("worse ( a )", {"a": SAME}, False),
        ("faster(a)", {"a": SLOW}, False),
        ("different(a)", {"a": MORE}, True),
        ("a < 0.95 and b < 0.95", {"a": SLOW, "b": SAME}, False),
        ("a < 0.95 or b < 0.95", {"a": SLOW, "b": SAME}, True),
        # `and` before `or`: true or (true and false)
        ("a < 0.95 or a < 0.95 and b < 0.95", {"a": SLOW, "b": SAME}, True),
        ("b < 0.95 and a < 0.95 or b < 0.5", {"a": SLOW, "b": SAME}, False),
        ("a < 0.95", {"a": FEW}, True),
        ("a < 0.5", {"a": FEW}, False),
    ],
)
def test_a_condition_holds_or_not(text: str, rows: dict[str, Row], fails: bool) -> None:
    assert bool(parse_gate(text).failures(rows, "B")) == fails


@pytest.mark.parametrize(
    ("text", "rows", "reason"),
    [
        ("a < 0.5", {"a": NOTHING}, "a < 0.5: no value of B: no meter"),
        ("b < 0.5 and a > 2", {"a": NOTHING, "b": SAME}, "no meter"),
        ("slower(a)", {"a": FEW}, "slower(a): too few rounds"),
        ("worse(a)", {"a": MORE}, "say different(a)"),
        ("a < 2 and b < 2", {"a": SAME}, "b < 2: no side has measured it"),
    ],
)
def test_where_nobody_can_tell_it_fails_with_the_reason(text: str, rows: dict[str, Row], reason: str) -> None:
    assert reason in "; ".join(parse_gate(text).failures(rows, "B"))


WRONG = """
a|a <|a < b|< 1|a < 1 and|or a < 1|a < 1 b < 2|slow(a)|slower()|a = 1|a < -1|(a < 1)|a < 1e400|a.b < 1|a < 1;
__import__('os')
"""


@pytest.mark.parametrize("text", [*WRONG.replace("\n", "|").split("|"), "a" * MOST_CHARACTERS + " < 1"])
def test_what_is_no_condition_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(FlagPerfError) as caught:
        parse_gate(text)
    assert "p_train < 0.95" in caught.value.remedy


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab <>=()%.0159andorslwe\n", max_size=60))
def test_any_text_is_a_condition_or_is_refused(text: str) -> None:
    try:
        gate = parse_gate(text)
    except FlagPerfError:
        return
    assert gate.figures and gate.failures(dict.fromkeys(gate.figures, SAME), "B") is not None


@pytest.mark.parametrize(
    ("text", "meant"),
    [("energy > 105", "energy > 105%"), ("p_train < 0.95%", "p_train < 0.95"), ("p_train < 95 %", "")],
)
def test_a_slip_with_the_per_cent_sign_would_be_a_gate_that_never_fails(text: str, meant: str) -> None:
    if not meant:
        assert parse_gate(text).text == text
        return
    with pytest.raises(FlagPerfError) as caught:
        parse_gate(f"slower(p_train) or {text}")
    assert f"did you mean '{meant}'?" in caught.value.remedy
