"""The stamp: closed, open with what differs, or not known."""

from __future__ import annotations

from typing import Any

import pytest

from run_benchmarks.results.hooks import NOT_REPORTED, OWN_SCRIPT
from run_benchmarks.results.rules import Rules, rules_of
from utils.checkpoints import LONGEST_NAME, MOST_CHANGED
from utils.code_files import digest_of
from utils.events import Event

FILES = {"optimizer.py": "ab" * 32}
HOOKS: dict[str, Any] = {
    "in_force": {"create_optimizer": "optimizer.py"},
    "files": FILES,
    "differs": [],
    "unchecked": ["create_optimizer: that the optimizer's step is the one of its name"],
    "flops": {},
}
NO_HOOKS: dict[str, Any] = {"in_force": {}, "files": {}, "differs": [], "unchecked": [], "flops": {}}
SGD = {"hook": "create_optimizer", "what": "optimizer", "case": "adamw", "vendor": "sgd"}


def _started(hooks: dict[str, Any] | None = None, **value: object) -> list[Event]:
    return [
        Event("INIT_START", value),
        *([Event("HOOKS", hooks)] if hooks is not None else []),
        Event("TRAIN_START"),
    ]


def test_nothing_changed_is_closed() -> None:
    rules = rules_of(_started(changed=[], config={"lr": 1.0}))
    assert rules == Rules("closed", {})


def test_a_changed_name_is_open_with_the_value_that_it_ran_with() -> None:
    rules = rules_of(_started(changed=["hidden_size"], config={"hidden_size": 128, "lr": 1.0}))
    assert rules == Rules("open", {"hidden_size": 128})
    assert "hidden_size = 128" in rules.explanation()


def test_what_an_earlier_part_changed_makes_the_whole_open_and_is_bounded() -> None:
    def begun(changed: object) -> Event:
        return Event("INIT_END", {"continued": {"step": 5, "changed": changed}})

    rules = rules_of([*_started(changed=[]), begun(["max_steps", "init_evaluation"])])
    assert (rules.stamp, rules.earlier) == ("open", ("max_steps", "init_evaluation"))
    assert rules.explanation().endswith("change: in an earlier part: max_steps, init_evaluation")
    assert rules_of([*_started(changed=[]), begun([])]).stamp == "closed"
    many = rules_of([*_started(changed=[]), begun([f"{number}{'x' * 500}" for number in range(500)])])
    assert len(many.earlier) == MOST_CHANGED and max(map(len, many.earlier)) == LONGEST_NAME


def test_what_a_stand_in_computed_is_neither_closed_nor_open() -> None:
    ended = Event("INIT_END", {"stand_in": {"device": "npu", "backend": "hccl"}})
    rules = rules_of([*_started(changed=[]), ended])
    assert rules.stamp == "stand-in"
    assert rules.explanation() == (
        "stand-in: a stand-in computed on the CPU under the name npu: nothing here is a figure of the chip"
    )


def test_a_case_that_does_not_tell_has_no_stamp() -> None:
    assert rules_of(_started()).stamp is None
    assert rules_of([]).stamp is None


def test_a_case_of_the_vendors_own_is_open_whatever_it_says() -> None:
    rules = rules_of(_started(changed=[]), vendors_case="acme/benchmarks/toy/pytorch")
    assert rules.stamp == "open"
    assert "acme/benchmarks/toy/pytorch is the vendor's own" in rules.explanation()


def test_hooks_that_change_nothing_are_closed_and_named() -> None:
    rules = rules_of(_started(HOOKS, changed=[]), extern=FILES)
    assert rules.stamp == "closed"
    assert rules.hooks is not None and rules.hooks.digest == digest_of(FILES)
    line = rules.hooks_line()
    assert "create_optimizer (optimizer.py)" in line and digest_of(FILES)[:12] in line
    assert "not checked: create_optimizer: that the optimizer's step" in line


def test_without_a_vendors_code_nothing_is_said_of_hooks() -> None:
    rules = rules_of(_started(NO_HOOKS, changed=[]), extern={})
    assert (rules.stamp, rules.hooks_line()) == ("closed", "")


def test_a_hook_that_changes_the_task_is_open_and_named() -> None:
    rules = rules_of(_started({**HOOKS, "differs": [SGD]}, changed=[]), extern=FILES)
    assert rules.stamp == "open"
    assert "create_optimizer: optimizer: sgd, in place of adamw" in rules.explanation()


@pytest.mark.parametrize("planned", [{"optimizer.py": "cd" * 32}, {}])
def test_code_that_is_not_the_checkouts_is_open(planned: dict[str, str]) -> None:
    rules = rules_of(_started(HOOKS, changed=[]), extern=planned)
    assert rules.stamp == "open"
    assert "extern/: SHA-256 of its files" in rules.explanation()


def test_what_hooks_change_is_not_known_where_the_run_did_not_say_it() -> None:
    rules = rules_of(_started(changed=[]), extern=FILES)
    assert (rules.stamp, rules.doubt) == (None, NOT_REPORTED)
    rules = rules_of(_started({"files": 3}, changed=[]), extern=FILES)
    assert rules.stamp is None and "HOOKS cannot be read" in rules.doubt


def test_a_changed_parameter_is_open_whatever_the_hooks_do() -> None:
    rules = rules_of(_started(changed=["width"], config={"width": 2}), extern=FILES)
    assert rules.stamp == "open"


def test_hooks_of_a_cases_own_script_leave_no_stamp() -> None:
    rules = rules_of([], {}, FILES, own_script=True)
    assert (rules.stamp, rules.doubt) == (None, OWN_SCRIPT)
    assert "hooks in force: none; extern/ has 1 file," in rules.hooks_line()
    assert rules_of([], {}, {}, own_script=True).stamp == "closed"
    assert rules_of([], {"seed": 1}, FILES, own_script=True).stamp == "open"


def test_events_that_stand_more_than_once_leave_no_stamp() -> None:
    for name, value in (("INIT_START", {"changed": []}), ("HOOKS", NO_HOOKS)):
        events = [*_started(NO_HOOKS, changed=[]), Event(name, value)]
        rules = rules_of(events, extern={})
        assert (rules.stamp, rules.hooks) == (None, rules_of(events[:-1], extern={}).hooks)
        assert f"{name} more than once" in rules.explanation()
        assert rules_of([*_started(NO_HOOKS, changed=["seed"]), Event(name, value)]).stamp == "open"
    assert rules_of(_started() + _started(), {}, {}, own_script=True).stamp == "closed"


def test_what_ran_with_another_value_than_the_plans_is_open() -> None:
    started = _started(changed=[], config={"lr": 1.0, "width": 4})
    assert rules_of(started, parameters={"lr": 1.0, "width": 8}) == Rules("open", {"width": 4})
    assert rules_of(started, parameters={"lr": 1.0, "width": 4, "case_kind": "converge"}).stamp == "closed"


@pytest.mark.parametrize("planned", ["***", ["[CLS]", "a ***"], {"name": "***"}])
def test_what_was_hidden_in_the_plan_is_not_compared(planned: object) -> None:
    """A tokenizer's `mask_token` is hidden in `plan.json`, for it is named like a secret."""
    config = {"mask_token": "[MASK]", "width": 4}
    plan = {"mask_token": planned, "width": 4}
    assert rules_of(_started(changed=[], config=config), parameters=plan).stamp == "closed"
    assert rules_of(_started(changed=[], config=config), parameters=plan | {"width": 8}).stamp == "open"
    assert rules_of(_started(changed=["mask_token"], config=config), parameters=plan).stamp == "open"


@pytest.mark.parametrize("own_script", [False, True])
def test_what_the_plan_says_differs_counts_whatever_init_start_says(own_script: bool) -> None:
    """The vendor's code runs before the script, and can write a line that says that nothing was changed."""
    planned = {"hidden_size": 8, "target": 0.1}
    rules = rules_of(_started(changed=[], config={}), planned, own_script=own_script)
    assert rules == Rules("open", planned)
    started = _started(changed=["target", "lr", "other"], config={"target": 0.2, "lr": 1.0})
    rules = rules_of(started, planned, own_script=own_script)
    assert rules.differs == {"hidden_size": 8, "target": 0.2, "lr": 1.0, "other": None}
    assert rules_of([], planned, own_script=own_script) == Rules("open", planned)
    assert rules_of(_started(changed=["target"]), planned).differs == planned


def test_a_doubt_of_the_result_leaves_no_stamp() -> None:
    rules = rules_of(_started(changed=[]), {}, doubt="no metric")
    assert (rules.stamp, rules.explanation()) == (None, "no metric")
    assert rules_of(_started(changed=["lr"]), {}, doubt="no metric").stamp == "open"


def test_what_is_sourced_before_the_ranks_is_named() -> None:
    rules = Rules("closed", environment={"acme/toy-pytorch/config/environment_variables.sh": "ab" * 32})
    assert "toy-pytorch/config/environment_variables.sh, SHA-256 abababababab" in rules.environment_line()
    assert Rules("closed").environment_line() == ""


def test_a_hook_that_changed_the_model_makes_it_another_one() -> None:
    changed = {"hook": "convert_model", "what": "parameters", "case": "2 tensors", "vendor": "4 tensors"}
    assert rules_of(_started({**HOOKS, "differs": [changed]}, changed=[])).has_another_model
    assert not rules_of(_started({**HOOKS, "differs": [SGD]}, changed=[])).has_another_model


@pytest.mark.parametrize(
    "many", [{"files": dict.fromkeys(map(str, range(301)), "0")}, {"unchecked": ["x" * 501]}]
)
def test_what_hooks_tell_is_bounded(many: dict[str, Any]) -> None:
    """All of it stands in each result: a megabyte a round was more than readers of a run take."""
    rules = rules_of(_started({**NO_HOOKS, **many}, changed=[]), extern={})
    assert rules.stamp is None and "HOOKS cannot be read" in rules.doubt
