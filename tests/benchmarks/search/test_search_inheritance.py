"""Weights that another worker made up: well-formed, and of another network than the child's parent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from msgspec import structs
from torch import Tensor

from benchmarks.search.architecture import Architecture, ArchitectureError
from benchmarks.search.hyperparameters import trained
from benchmarks.search.layers import Add, AnyLayer, BatchNorm, Conv, Dropout, MaxPool, Relu
from benchmarks.search.morphism import EditError, Limits, neighbours
from benchmarks.search.protocol import Hyperparameters
from benchmarks.search.pytorch import runner as runner_module
from benchmarks.search.pytorch.network import build
from benchmarks.search.pytorch.stored_weights import StoredWeights, WeightsError
from benchmarks.search.pytorch.weights import inherited
from tests.benchmarks.search.runners import Told, child_of, runner_of
from tests.benchmarks.search.trials import SMALL, digits
from utils.events import Event, format_line, parse_line

GENERATIONS = 15
State = dict[str, Tensor]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits(tmp_path_factory.mktemp("search"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def other_layers(architecture: Architecture, random: Random) -> Iterator[Architecture]:
    """Architectures of its ids and shapes in each of which one layer is another, or takes another."""
    layers = architecture.layers
    for place in random.sample(range(len(layers)), len(layers)):
        others = list(_others(architecture, layers[place]))
        for other in random.sample(others, min(2, len(others))):
            try:
                forged = Architecture(architecture.images, (*layers[:place], other, *layers[place + 1 :]))
            except ArchitectureError:
                continue  # now a layer is taken by none
            if forged.shapes == architecture.shapes:
                yield forged


def _others(architecture: Architecture, layer: AnyLayer) -> Iterator[AnyLayer]:
    [takes, *_], source = architecture.inputs_of(layer), layer.inputs[0]
    gives = architecture.shapes[layer.id]
    if takes == gives and len(layer.inputs) == 1:
        flat = (Relu(layer.id, (source,)), Dropout(layer.id, (source,)))
        of_maps = (
            BatchNorm(layer.id, (source,)),
            MaxPool(layer.id, (source,), 3, 1),
            Conv(layer.id, (source,), gives.channels, 5),
        )
        yield from (other for other in (*flat, *(() if gives.flat else of_maps)) if other.kind != layer.kind)
    if isinstance(layer, Conv):
        yield structs.replace(layer, inserted=not layer.inserted)
        if not layer.inserted:
            yield structs.replace(layer, kernel=7 if layer.kernel == 5 else 5)
    if isinstance(layer, Add):
        yield structs.replace(layer, inputs=layer.inputs[::-1])
    for earlier, shape in architecture.shapes.items():
        if shape == takes and earlier != source and earlier < layer.id:
            yield structs.replace(layer, inputs=(earlier, *layer.inputs[1:]))


def stored(architecture: Architecture) -> StoredWeights:
    """What another worker reads of a network of it."""
    return StoredWeights.read(StoredWeights(architecture, build(architecture).state_dict()).as_bytes())


def test_only_the_network_that_the_edits_begin_with_gives_a_child_its_weights() -> None:
    """Whatever the hyper-parameters of either were: their kernels and dropout may differ."""
    random, parent = Random(86), SMALL
    forged_kinds: Counter[str] = Counter()
    for generation in range(GENERATIONS):
        edit, child = random.choice(neighbours(parent, random, Limits(parameters=2**14)))
        one, other = (Hyperparameters(random.random(), random.choice((3, 5, 7)), 1) for _ in range(2))
        true, child_trained = stored(trained(parent, one)), trained(child, other)
        build(child_trained).load_state_dict(inherited(true.state, true.architecture, [edit], child_trained))
        for architecture in islice(other_layers(true.architecture, random), 4):
            forged = stored(architecture)
            forged_kinds.update(
                type(is_now).__name__
                for is_now, was in zip(architecture.layers, true.architecture.layers, strict=True)
                if is_now != was
            )
            with pytest.raises(EditError):
                inherited(forged.state, architecture, [edit], child_trained)
        parent = SMALL if generation % 6 == 5 else child
    assert {"Relu", "Dropout", "BatchNorm", "MaxPool", "Conv", "Add"} <= forged_kinds.keys()


@pytest.mark.parametrize("kind", [Relu, BatchNorm, MaxPool])
def test_a_parent_of_equal_shapes_and_another_layer_ends_no_rank_and_is_not_begun_with(
    data: Path, capsys: pytest.CaptureFixture[str], kind: type[AnyLayer]
) -> None:
    forged = next(
        each
        for each in other_layers(SMALL, Random(1))
        if any(
            isinstance(is_now, kind) and isinstance(SMALL.by_id[is_now.id], Conv) for is_now in each.layers
        )
    )
    told = Told()
    told.put(3, StoredWeights(forged, build(forged).state_dict()).as_bytes())
    runner_of(data, told)[0].run(child_of(3))
    assert "trial 9: its parent's weights do not fit: EditError" in capsys.readouterr().out
    assert told.named("done") == [(9, False)] and told.named("failed") == []


@pytest.mark.parametrize("error", [KeyError("layers.7.weight"), RuntimeError("two\nlines"), StopIteration()])
@pytest.mark.parametrize("step", ["get", "inherited"])
def test_whatever_fails_with_a_parents_weights_the_child_begins_with_fresh_ones(
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    step: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    told = Told()
    told.put(3, StoredWeights(SMALL, build(SMALL).state_dict()).as_bytes())
    monkeypatch.setattr(told if step == "get" else runner_module, step, fail)
    runner_of(data, told)[0].run(child_of(3))
    printed = capsys.readouterr().out
    assert f"weights{' of trial 3' if step == 'get' else ' do not fit'}: {type(error).__name__}" in printed
    assert not any(line.startswith("lines") for line in printed.splitlines())
    assert told.named("done") == [(9, False)] and told.named("failed") == []


def _with(name: str, value: float) -> Callable[[State], State]:
    return lambda state: {**state, name: torch.full_like(state[name], value)}


BATCH_NORM = next(layer.id for layer in SMALL.layers if isinstance(layer, BatchNorm))


@pytest.mark.parametrize(
    "change",
    [
        _with("layers.1.weight", float("nan")),
        _with("layers.1.weight", float("inf")),
        _with(f"layers.{BATCH_NORM}.running_mean", float("-inf")),
        _with(f"layers.{BATCH_NORM}.running_var", -1.0),
    ],
)
def test_values_that_no_training_comes_to_are_not_begun_with(
    data: Path, capsys: pytest.CaptureFixture[str], change: Callable[[State], State]
) -> None:
    told = Told()
    told.put(3, StoredWeights(SMALL, change(build(SMALL).state_dict())).as_bytes())
    runner_of(data, told)[0].run(child_of(3))
    assert "trial 9: the weights of trial 3: there are " in capsys.readouterr().out
    assert told.named("done") == [(9, False)] and told.named("failed") == []


def test_values_that_are_too_large_for_a_loss_are_a_failure_that_is_told(data: Path) -> None:
    """By which the controller gives them to no more children, after the first ones."""
    told, last = Told(), f"layers.{SMALL.layers[-1].id}.weight"
    told.put(3, StoredWeights(SMALL, _with(last, 3e38)(build(SMALL).state_dict())).as_bytes())
    runner_of(data, told)[0].run(child_of(3))
    assert [number for number, _ in told.named("failed")] == [9]


def _forged_words() -> Iterator[tuple[str, Any]]:
    event = format_line(Event("FINISHED", {"score": 1}))
    state = build(SMALL).state_dict()
    whole = StoredWeights(SMALL, state)
    yield "tensor", StoredWeights(SMALL, {**state, f"\n{event}\n": torch.zeros(1)}).as_bytes()
    kind = event.replace('"', "'").encode()
    yield "kind", whole.as_bytes().replace(b'"relu', b'"' + kind, 1)


def test_what_is_told_of_anothers_weights_holds_none_of_its_words() -> None:
    """FlagPerf takes a line with its prefix for an event of whoever wrote the log."""
    for name, forged in _forged_words():
        with pytest.raises(WeightsError) as caught:
            StoredWeights.read(forged)
        assert "PerfLog" not in str(caught.value), name
        assert not any(map(parse_line, str(caught.value).splitlines()))
