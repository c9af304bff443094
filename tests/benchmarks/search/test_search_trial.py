"""A trial's training: learning rate, label smoothing, early stop, samples, ranks, and what a child begins with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.sampling import Samples, all_samples
from benchmarks.search.images import ImageFacts
from benchmarks.search.layers import Conv, Relu
from benchmarks.search.morphism import Deepen, Edit, Widen, apply
from benchmarks.search.pytorch.data import ImageData
from benchmarks.search.pytorch.stored_weights import StoredWeights
from benchmarks.search.pytorch.trial import EpochResult, TrialTask, TrialTraining
from benchmarks.search.pytorch.weights import inherited
from tests.benchmarks.driver.ranks import launch_ranks, values_of
from tests.benchmarks.search.trials import SMALL, alone, digits, image_data, plan, training_of


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits(tmp_path_factory.mktemp("search"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two threads for so little only wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_learning_rate_falls_linearly_to_0_and_every_sample_is_trained_once_an_epoch(data: Path) -> None:
    training = training_of(data, alone(), plan(batch_size=100))
    train_step, rates, sizes = training.trainer.train_step, [], []

    def noted(step: Any, rate: float) -> None:
        train_step(step, rate)
        rates.append(training.trainer.optimizer.param_groups[0]["lr"])
        sizes.append(sum(batch.samples for batch in step))

    training.trainer.train_step = noted  # type: ignore[method-assign]
    results = list(training.epochs())
    assert rates == pytest.approx([0.1 * (1 - step / 30) for step in range(30)])
    assert training.learning_rate(30) == 0.0
    assert set(sizes) == {95, 96} and [sum(sizes[:15]), sum(sizes[15:])] == [1437, 1437]
    assert [(each.epoch, each.training_samples, each.validation_samples) for each in results] == [
        (1, 1437, 360), (2, 1437, 360),
    ]  # fmt: skip
    assert results[1].loss < results[0].loss


def test_the_optimizer_is_sgd_with_momentum_and_decays_nothing(data: Path) -> None:
    optimizer = training_of(data, alone(), plan(), momentum=0.7).trainer.optimizer
    assert type(optimizer) is torch.optim.SGD
    assert {(group["momentum"], group["weight_decay"]) for group in optimizer.param_groups} == {(0.7, 0.0)}


def test_labels_are_smoothed_over_all_classes(data: Path) -> None:
    """(1 - s) of a label is its class's, s is all classes' alike (Szegedy et al. 2016, arXiv:1512.00567, section 7)."""
    task = TrialTask(plan(label_smoothing=0.2), image_data(data))
    logits = torch.tensor([[2.0, 0.0, -1.0, *[0.5] * 7]])
    chances = logits.double().exp() / logits.double().exp().sum()
    by_hand = -(0.8 * math.log(chances[0, 2]) + 0.2 * sum(map(math.log, chances[0])) / 10)

    class Constant(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return logits

    loss = task.loss(Constant(), (torch.zeros(1, 1, 8, 8, dtype=torch.uint8), torch.tensor([2])))
    assert float(loss) == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize(
    ("curve", "patience", "last"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5], 2, 5),  # it rises to its end
        ([0.1, 0.5, 0.4, 0.3, 0.6], 2, 4),  # two epochs after the best
        ([0.5, 0.5, 0.5, 0.5, 0.5], 3, 4),  # an equal one is no gain
        ([0.0, 0.0, 0.0, 0.1, 0.1], 4, 5),  # the first counts, whatever it is
        ([0.3, 0.2, 0.4, 0.3, 0.35], 2, 5),
    ],
)
def test_a_trial_stops_when_it_has_gained_nothing_for_so_many_epochs(
    data: Path, monkeypatch: pytest.MonkeyPatch, curve: list[float], patience: int, last: int
) -> None:
    """FAKE of the accuracy alone: how a network learns is not to be predicted."""

    def scripted(_: TrialTraining, epoch: int) -> EpochResult:
        return EpochResult(epoch, curve[epoch - 1], 1.0, 1437, 360)

    monkeypatch.setattr(TrialTraining, "_epoch", scripted)
    training = training_of(data, alone(), plan(epochs=len(curve), patience=patience))
    assert [each.epoch for each in training.epochs()] == list(range(1, last + 1))


# ---- ranks

RANKS = """
import torch
from tests.benchmarks.search.trials import PLAIN, SMALL, plan, training_of
class Case:
    def __init__(self, context):
        self.data, self.settings = context.data_dir, context.settings
    def work(self, engine, perf_log):
        architecture = PLAIN if self.settings["plain"] else SMALL
        training = training_of(self.data, engine, plan(architecture, batch_size=90))
        results = list(training.epochs())
        check = float(sum(tensor.double().abs().sum() for tensor in training.state().values()))
        return {
            "losses": [each.loss for each in results], "accuracies": [each.accuracy for each in results],
            "samples": results[0].training_samples, "checks": engine.group.gather(check),
        }
"""


def trained_on(folder: Path, data: Path, ranks: int, python: str, *, plain: bool) -> dict[str, Any]:
    """FINISHED of two epochs by the real launcher and driver."""
    case = folder / f"ranks{ranks}{plain}" / "pytorch"
    (case / "config").mkdir(parents=True)
    (case / "__init__.py").touch()
    (case / "case.py").write_text(RANKS)
    (case / "config" / "_base.py").write_text(f'case_kind = "measure"\nplain = {plain}\ncpu_threads = 1\n')
    (case / "config" / "mutable_params.py").write_text("mutable_params = []\n")
    launch = LaunchArguments(case_dir=case, data_dir=data, vendor="cpu")
    root = str(Path(__file__).parents[3])
    path = {"PYTHONPATH": f"{root}/training:{root}"}
    code, events = launch_ranks(folder / f"logs{ranks}{plain}", launch, ranks, python, **path)
    assert code == 0, (folder / f"logs{ranks}{plain}" / "rank0.out.log").read_text()[-3000:]
    return values_of(events[0], "FINISHED")[0]


def test_two_ranks_train_as_one_does(data: Path, tmp_path: Path, warm_python: str) -> None:
    one, two = (trained_on(tmp_path, data, ranks, warm_python, plain=True) for ranks in (1, 2))
    assert two["world_size"] == 2
    assert one["losses"] == pytest.approx(two["losses"], rel=1e-4)
    assert one["accuracies"] == pytest.approx(two["accuracies"], abs=2 / 360)
    assert one["samples"] == two["samples"] == 1437


def test_all_ranks_have_one_network_and_one_set_of_statistics(
    data: Path, tmp_path: Path, warm_python: str
) -> None:
    finished = trained_on(tmp_path, data, 2, warm_python, plain=False)
    first, second = finished["checks"]
    assert first == second


# ---- what a child begins with


@pytest.mark.parametrize("kind", [Deepen, Widen])
def test_a_child_begins_with_its_parents_accuracy(data: Path, kind: type[Any]) -> None:
    parent = training_of(data, alone(), plan(epochs=2))
    last = list(parent.epochs())[-1]
    sent = StoredWeights.read(StoredWeights(SMALL, parent.state()).as_bytes())
    layer = next(
        each.id for each in SMALL.main_chain[1:] if isinstance(each, Relu if kind is Deepen else Conv)
    )
    edit: Edit = kind(layer)
    child = apply(SMALL, edit)
    assert child.parameters > SMALL.parameters
    begun = training_of(
        data, alone(), plan(child, state=inherited(sent.state, sent.architecture, [edit], child))
    )
    assert begun.trainer.evaluate()["accuracy"] == pytest.approx(last.accuracy, abs=1.5 / 360)
    fresh = training_of(data, alone(), plan(child))
    assert fresh.trainer.evaluate()["accuracy"] < 0.3 < last.accuracy


# ---- images


def stored(count: int = 12) -> tuple[np.ndarray[Any, Any], Samples]:
    """Images of 6 x 6 whose pixels are their places: no two cuts of them are alike."""
    images = np.arange(36, dtype=np.uint8).reshape(1, 6, 6, 1).repeat(count, axis=0)
    return images, all_samples([count])


def test_a_training_image_is_cut_out_anywhere_and_mirrored_by_chance() -> None:
    data = ImageData(Path(), ImageFacts(2, 6, 6, 1, 12, 12), 4, flips=True, seed=3)
    images, samples = stored()
    cuts = data._augmented(images, samples)
    whole = images[0, ..., 0]
    possible = {
        whole[top : top + 4, left : left + 4][:, ::direction].tobytes()
        for top in range(3)
        for left in range(3)
        for direction in (1, -1)
    }
    seen = {cut[..., 0].tobytes() for cut in cuts}
    assert seen <= possible and len(seen) > 4
    assert np.array_equal(cuts, data._augmented(images, samples)), "the same samples give the same batch"
    later = Samples(1, samples.shards, samples.rows)
    assert not np.array_equal(cuts, data._augmented(images, later)), "another epoch gives another"


def test_a_validation_image_is_the_middle() -> None:
    data = ImageData(Path(), ImageFacts(2, 6, 6, 1, 12, 12), 4, flips=True, seed=3)
    images, samples = stored()
    assert np.array_equal(data._middle(images, samples), images[:, 1:5, 1:5])


def test_a_batch_is_bytes_in_channels_last_memory(data: Path) -> None:
    batch = image_data(data).training().batch(Samples(0, np.zeros(5, int), np.arange(5)))
    images, labels = batch.inputs
    assert (images.dtype, tuple(images.shape), labels.dtype) == (torch.uint8, (5, 1, 8, 8), torch.int64)
    assert images.is_contiguous(memory_format=torch.channels_last)
