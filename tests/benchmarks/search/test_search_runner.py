"""Trials one after the other: what the controller is told, what a failure is, and how weights come to children."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from benchmarks.search.pytorch import stored_weights
from benchmarks.search.pytorch.stored_weights import StoredWeights, WeightsError
from benchmarks.search.pytorch.trial import TrialEngine
from benchmarks.search.weight_exchange import LARGEST_HEADER
from tests.benchmarks.search.runners import Told, child_of, runner_of, trial
from tests.benchmarks.search.trials import PLAIN, SMALL, alone, digits, plan, training_of
from utils.events import parse_line


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits(tmp_path_factory.mktemp("search"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_trial_is_told_epoch_by_epoch_and_its_weights_are_there_before_it_is_done(data: Path) -> None:
    told = Told()
    runner, log = runner_of(data, told)
    runner.run(trial(7, epochs=2))
    assert [each[0] for each in told.events] == ["epoch", "epoch", "weights", "done"]
    assert [epoch for _, epoch, _ in told.named("epoch")] == [1, 2]
    values = told.named("epoch")[1][2]
    assert (values["training_samples"], values["validation_samples"]) == (1437, 360)
    assert 0.2 < values["accuracy"] <= 1 and math.isfinite(values["loss"])
    assert told.named("done") == [(7, False)]
    assert StoredWeights.read(told.get(7) or b"").architecture == SMALL
    assert runner.counts() == {"trials": 1, "failed_trials": 0}
    runner.run(trial(8))
    hooks = [event for line in log.getvalue().splitlines() if (event := parse_line(line))]
    assert [(event.name, event.value["in_force"]) for event in hooks] == [("HOOKS", {})]


def test_a_trial_that_is_not_wanted_any_more_ends_at_once(data: Path) -> None:
    told = Told(last_epoch=1)
    runner, _ = runner_of(data, told)
    runner.run(trial(epochs=4))
    assert [each[0] for each in told.events] == ["epoch"]
    assert runner.counts() == {"trials": 0, "failed_trials": 0}


def test_an_early_stop_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAKE of the accuracy alone."""
    told = Told()
    runner, _ = runner_of(data, told, patience_epochs=1)
    monkeypatch.setattr(TrialEngine, "evaluate", lambda _: {"accuracy": 0.5})
    runner.run(trial(epochs=4))
    assert [epoch for _, epoch, _ in told.named("epoch")] == [1, 2]
    assert told.named("done") == [(1, True)]


def test_a_trials_memory_is_let_go_before_the_next_ones_is_taken(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it refers to itself, as DDP's wrapper does."""
    told, alive = Told(), []
    runner, _ = runner_of(data, told)
    end, build = runner._end, runner._training

    def ended(trial: Any, training: Any, **words: Any) -> None:
        end(trial, training, **words)
        training.itself = training
        alive.append(weakref.ref(training))

    def built(*arguments: Any) -> Any:
        assert [each() for each in alive] == [None] * len(alive)
        return build(*arguments)

    monkeypatch.setattr(runner, "_end", ended)
    monkeypatch.setattr(runner, "_training", built)
    for number in (1, 2):
        runner.run(trial(number))
    assert told.named("done") == [(1, False), (2, False)]


# ---- failures


def test_out_of_memory_is_a_trials_failure_and_the_next_one_is_trained(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE of the batch alone, which is too large; that PyTorch cannot get the memory is real."""
    told = Told()
    runner, _ = runner_of(data, told)
    with monkeypatch.context() as patch:
        patch.setattr(TrialEngine, "train_step", lambda *_: torch.empty(2**60))
        runner.run(trial(1))
    runner.run(trial(2))
    [(number, reason)] = told.named("failed")
    assert number == 1 and reason.startswith("rank 0: RuntimeError: [enforce fail") and "\n" not in reason
    assert told.named("done") == [(2, False)]
    assert runner.counts() == {"trials": 1, "failed_trials": 1}


def test_a_loss_that_is_no_number_is_a_trials_failure(data: Path) -> None:
    told = Told()
    runner, _ = runner_of(data, told, learning_rate=1e30)
    runner.run(trial(1, epochs=3))
    [(_, reason)] = told.named("failed")
    assert reason == "rank 0: NotFiniteError: the loss is nan in epoch 1"
    assert told.named("epoch") == told.named("weights") == told.named("done") == []


def test_what_cannot_be_built_is_a_trials_failure(data: Path) -> None:
    told = Told()
    runner, _ = runner_of(data, told)
    for number, text in enumerate((b'{"layers": []}', b"[]"), 1):
        proposed = msgspec.structs.replace(trial().proposed, architecture=msgspec.Raw(text))
        runner.run(msgspec.structs.replace(trial(number), proposed=proposed))
    runner.run(trial(3))
    assert [reason.split(":")[1] for _, reason in told.named("failed")] == [" ArchitectureError"] * 2
    assert told.named("done") == [(3, False)]


def test_a_device_that_has_failed_ends_the_rank_once_the_failure_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE of such a device: nothing can be made on it any more."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered")

    told = Told()
    runner, _ = runner_of(data, told)
    monkeypatch.setattr(TrialEngine, "train_step", fail)
    monkeypatch.setattr(torch, "zeros", fail)
    with pytest.raises(RuntimeError, match="uncorrectable ECC"):
        runner.run(trial(1))
    assert [each[0] for each in told.events] == ["failed"]


def test_an_error_of_the_data_or_the_controller_is_no_trials_failure(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    runner, _ = runner_of(data, told)
    monkeypatch.setattr(told, "epoch_done", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("is lost")))
    with pytest.raises(RuntimeError, match="is lost"):
        runner.run(trial(1))
    assert told.named("failed") == []


# ---- weights


def test_a_child_begins_with_its_parents_accuracy_whoever_trained_it(data: Path) -> None:
    """With a learning rate of 0 an epoch leaves the weights alone, and statistics of the new layer come close."""
    told = Told()
    runner_of(data, told)[0].run(trial(3, epochs=3))
    parent = told.named("epoch")[-1][2]["accuracy"]
    other, _ = runner_of(data, told, learning_rate=0.0)
    other.run(child_of(3))
    child = told.named("epoch")[-1][2]["accuracy"]
    assert abs(child - parent) < 0.15 and parent > 0.5
    told.events = [each for each in told.events if each[0] != "weights"]
    other.run(child_of(3))
    assert told.named("epoch")[-1][2]["accuracy"] < 0.35, "fresh weights"


def test_weights_that_are_lost_or_do_not_fit_are_told_and_fresh_ones_taken(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told()
    runner, _ = runner_of(data, told)
    runner.run(child_of(3))
    assert "trial 9: the weights of trial 3: they are not to be had" in capsys.readouterr().out
    told.events.append(("weights", 3, b"none at all"))
    runner.run(child_of(3))
    assert "trial 9: the weights of trial 3: " in capsys.readouterr().out
    told.events = [
        ("weights", 3, StoredWeights(PLAIN, training_of(data, alone(), plan(PLAIN)).state()).as_bytes())
    ]
    runner.run(child_of(3))
    assert "trial 9: its parent's weights do not fit: EditError" in capsys.readouterr().out
    assert told.named("done") == [(9, False)] and told.named("failed") == []


def test_headers_that_are_too_long_or_of_other_tensors_are_refused_before_there_are_any(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = StoredWeights(SMALL, training_of(data, alone(), plan()).state()).as_bytes()
    monkeypatch.setattr(stored_weights, "load", None)
    with pytest.raises(WeightsError, match="tensors are not the architecture's: layers"):
        StoredWeights.read(whole.replace(b'"F32"', b'"I32"', 1))
    monkeypatch.setattr(stored_weights, "json", None)
    long = (LARGEST_HEADER + 1).to_bytes(8, "little") + b"{" + b" " * LARGEST_HEADER
    with pytest.raises(WeightsError, match="a header of 4194305 bytes"):
        StoredWeights.read(long)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:100],
        lambda data: data[:-4],
        lambda data: data[:-4] + b"\x00\x00\xc0\x7f",  # no number
        lambda data: b"\x80\x04\x95" + data,
        lambda data: data.replace(b'"kind', b'"kinf', 1),
        lambda data: data.replace(b"layers.1.weight", b"layers.9.weight", 1),
        lambda data: data.replace(b'"channels\\":4', b'"channels\\":8', 1),
        lambda data: (2**60).to_bytes(8, "little") + data[8:],
        lambda data: b"\x08" + bytes(7) + b"[[[[[[[[" + data,
    ],
)
def test_bytes_that_are_no_weights_are_refused(data: Path, damage: Callable[[bytes], bytes]) -> None:
    whole = StoredWeights(SMALL, training_of(data, alone(), plan()).state()).as_bytes()
    assert StoredWeights.read(whole).architecture == SMALL
    damaged = damage(whole)
    assert damaged != whole
    with pytest.raises(WeightsError):
        StoredWeights.read(damaged)
