"""The stamp: closed, open with what differs, or not known."""

from __future__ import annotations

from run_benchmarks.results.rules import Rules, rules_of
from utils.events import Event


def _started(**value: object) -> list[Event]:
    return [Event("INIT_START", value), Event("TRAIN_START")]


def test_nothing_changed_is_closed() -> None:
    rules = rules_of(_started(changed=[], config={"lr": 1.0}))
    assert rules == Rules("closed", {})


def test_a_changed_name_is_open_with_the_value_that_it_ran_with() -> None:
    rules = rules_of(_started(changed=["hidden_size"], config={"hidden_size": 128, "lr": 1.0}))
    assert rules == Rules("open", {"hidden_size": 128})
    assert "hidden_size = 128" in rules.explanation()


def test_a_case_that_does_not_tell_has_no_stamp() -> None:
    assert rules_of(_started()).stamp is None
    assert rules_of([]).stamp is None
