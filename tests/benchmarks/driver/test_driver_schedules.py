from __future__ import annotations

import pytest

from benchmarks.driver.schedules import make_schedule
from utils.parameters import TrainingSettings


def test_linear_warmup_and_decay_by_hand() -> None:
    rate = make_schedule("linear", peak=1.0, warmup_steps=4, decay_steps=12, end_factor=0.0)
    assert [rate(step) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert rate(4) == 1.0
    assert rate(8) == 0.5
    assert rate(11) == 0.125
    assert rate(12) == 0.0


def test_the_rate_never_turns_negative_past_the_end() -> None:
    for end_factor, end in ((0.0, 0.0), (0.1, 0.05)):
        rate = make_schedule("linear", peak=0.5, warmup_steps=2, decay_steps=10, end_factor=end_factor)
        assert min(rate(step) for step in range(1000)) == pytest.approx(end)
        assert rate(10) == rate(999) == pytest.approx(end)


def test_decay_to_a_tenth_is_linear() -> None:
    rate = make_schedule("linear", peak=1.0, warmup_steps=0, decay_steps=10, end_factor=0.1)
    assert rate(0) == 1.0
    assert rate(5) == pytest.approx(0.55)
    assert rate(10) == pytest.approx(0.1)


def test_constant_stays_at_its_peak_after_warmup() -> None:
    rate = make_schedule("constant", peak=2.0, warmup_steps=2, decay_steps=0, end_factor=0.0)
    assert [rate(step) for step in (0, 1, 2, 10_000)] == [1.0, 2.0, 2.0, 2.0]


def test_a_warmup_as_long_as_the_run_does_not_divide_by_zero() -> None:
    rate = make_schedule("linear", peak=1.0, warmup_steps=5, decay_steps=5, end_factor=0.0)
    assert [rate(step) for step in (4, 5, 6)] == [1.0, 0.0, 0.0]


def test_the_decay_ends_with_the_training_unless_it_is_said_where() -> None:
    assert TrainingSettings(max_steps=12).decay_end == 12
    assert TrainingSettings(max_steps=12, decay_steps=8).decay_end == 8
    assert TrainingSettings(max_steps=12, decay_steps=8, lr_schedule="constant").decay_end is None
