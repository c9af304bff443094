"""Checkpoints in the plan: where they go, and what stands in the way of going on from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.plan.earlier_run import EarlierRun
from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.problems import ConfigError
from run_benchmarks.plan.records import Plan
from tests.run_benchmarks.plan.tree import BASE, TEST_CONF, Tree

PATH = 'CHECKPOINT_PATH = "/data/checkpoints/"\n'


@pytest.fixture
def saving(tree: Tree) -> Tree:
    """A tree whose case saves checkpoints."""
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "save_steps = 100\n")
    return tree


def continued(tree: Tree, run: str, conf: str = TEST_CONF + PATH) -> Plan:
    tree.configure(test_conf=conf)
    return load_plan(tree.config, tree.training, continue_from=run)


def test_checkpoints_need_a_place(saving: Tree) -> None:
    code, (problem,) = saving.problems()
    assert code == 2
    assert (problem.name, problem.value) == ("toy:pytorch:X1:1:2:1: save_steps", "100")
    assert "CHECKPOINT_PATH is not" in problem.message
    assert "save_steps = None in acme/toy-pytorch/config/config_X1x1x2.py" in problem.remedy
    saving.configure(test_conf=TEST_CONF + PATH)
    assert saving.load().run.checkpoint_path == "/data/checkpoints"


def test_a_case_that_saves_none_needs_none(tree: Tree) -> None:
    assert tree.load().run.checkpoint_path == ""


@pytest.mark.parametrize(
    "given", ["run20260102030405", "/home/me/result/run20260102030405", "result/run20260102030405/"]
)
def test_the_earlier_run_is_given_by_name_or_folder(saving: Tree, given: str) -> None:
    assert continued(saving, given).continue_from == "run20260102030405"


@pytest.mark.parametrize("given", ["..", "*", "run2026", "/", "/home/me/result/.."])
def test_what_is_not_the_id_of_a_run_is_refused(saving: Tree, given: str) -> None:
    """It would be a part of the path from which checkpoints are loaded."""
    with pytest.raises(ConfigError) as caught:
        continued(saving, given)
    (problem,) = caught.value.problems
    assert (problem.where, problem.name) == ("command line", "--continue-from")
    assert "is not the ID of a run" in problem.message


def test_what_an_earlier_journal_has_as_the_id_is_no_path(saving: Tree, tmp_path: Path) -> None:
    folder = tmp_path / "run20260102030405"
    folder.mkdir()
    (folder / "journal.jsonl").write_text('{"uid": "run20260102030405-/../../planted"}\n')
    with pytest.raises(ConfigError, match="is not the ID of a run"):
        continued(saving, str(folder))


def test_a_run_that_is_not_believed_is_not_gone_on_from(saving: Tree, tmp_path: Path) -> None:
    folder = tmp_path / "others" / "run20260102030405"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text('{"uid": "run20260102030405-abcdef"}\n')
    folder.chmod(0o777)
    with pytest.raises(ConfigError) as caught:
        continued(saving, str(folder))
    (problem,) = caught.value.problems
    assert (problem.where, problem.name) == ("command line", "--continue-from")
    assert problem.message.startswith(f"{folder}: everybody may") and "name your copy" in problem.remedy


def test_to_go_on_needs_the_place_too(tree: Tree) -> None:
    with pytest.raises(ConfigError) as caught:
        continued(tree, "run20260102030405", TEST_CONF)
    (problem,) = caught.value.problems
    assert (problem.where, problem.name) == ("command line", "--continue-from")
    assert "CHECKPOINT_PATH, which" in problem.message


def test_a_case_with_a_script_of_its_own_is_not_the_drivers_to_continue(saving: Tree) -> None:
    saving.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    saving.write("benchmarks/toy/pytorch/config/_base.py", BASE + "save_steps = 7\n")
    saving.configure(test_conf=TEST_CONF)
    saving.load()  # its own settings are its own business
    with pytest.raises(ConfigError, match="brings its own training script"):
        continued(saving, "run20260102030405")


def test_a_place_on_the_hosts_is_absolute(tree: Tree) -> None:
    tree.configure(test_conf=TEST_CONF + 'CHECKPOINT_PATH = "checkpoints"\n')
    _, (problem,) = tree.problems()
    assert problem.name == "CHECKPOINT_PATH" and "relative" in problem.message


def test_shipped_settings_name_no_place() -> None:
    training = Path(__file__).resolve().parents[3] / "training"
    assert load_plan(training / "run_benchmarks" / "config", training).run.checkpoint_path == ""


def test_measurements_have_nothing_to_go_on_from(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("run_benchmarks.plan.continuation.can_save", lambda case: False)
    with pytest.raises(ConfigError) as caught:
        continued(tree, "run20200101000000-abcdef", TEST_CONF)
    (problem,) = caught.value.problems
    assert "no case of this run saves checkpoints" in problem.message


def test_rounds_that_were_measured_are_gone_on_from(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("run_benchmarks.plan.continuation.can_save", lambda case: False)
    name, two = "toy:pytorch:X1:1:2:2", TEST_CONF.replace("X1:1:2:1", "X1:1:2:2")
    earlier = EarlierRun("run20260102030405", "run20260102030405-abcdef", {name: (1,)})
    monkeypatch.setattr("run_benchmarks.plan.load.find_earlier", lambda *_: earlier)
    assert continued(tree, earlier.given, two).done == {name: (1,)}


def test_what_disturbed_an_earlier_part_is_not_seen_here(saving: Tree) -> None:
    conf = TEST_CONF + PATH + "REQUIRE_UNDISTURBED = True\n"
    with pytest.raises(ConfigError) as caught:
        continued(saving, "run20260102030405", conf)
    (problem,) = caught.value.problems
    assert problem.name == "--continue-from" and "cannot be held for a continued round" in problem.message
    assert "without REQUIRE_UNDISTURBED" in problem.remedy
    assert continued(saving, "", conf).run.require_undisturbed
