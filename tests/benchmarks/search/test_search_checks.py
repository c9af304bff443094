"""Proposals: made in a process of their own, and checked by the controller against what it knows itself."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from benchmarks.search.architecture import Architecture, Images, as_json
from benchmarks.search.controller.__main__ import _settings
from benchmarks.search.controller.architectures import checked, identity_of
from benchmarks.search.controller.first import first_proposals
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.hyperparameters import Space
from benchmarks.search.morphism import Deepen, Edit, apply, neighbours
from benchmarks.search.operations import operations_of
from benchmarks.search.proposer_process import Proposer
from benchmarks.search.protocol import Evaluation, Evaluations, Hyperparameters, Proposed, encode
from benchmarks.search.resnet import small_resnet
from tests.benchmarks.search.engine_parts import DATA, register
from tests.benchmarks.search.engine_processes import PATIENCE_S, environment_with
from utils.case_form import ROLES_TOKEN
from utils.errors import FlagPerfError
from utils.parameters import Configuration, MeasurementSettings

START = small_resnet(Images(8, 8, 1), 10)
SPACE = Space(START, (32, 64), most_parameters=50_000)
POINT = Hyperparameters(0.0, 3, 32)
NEAR = neighbours(START, Random(1), SPACE.limits)[0]
CHILD = Proposed(None, (Raw(msgspec.json.encode(NEAR.edit)),), Raw(as_json(NEAR.architecture)), POINT)


def test_what_a_proposal_is_worth_is_computed_of_its_architecture() -> None:
    proposed, facts = checked(CHILD, None, SPACE)
    assert proposed == CHILD
    assert facts.edits == (str(NEAR.edit),)
    assert facts.parameters == NEAR.architecture.parameters
    operations = operations_of(NEAR.architecture)
    assert (facts.forward_operations, facts.training_operations) == (operations.forward, operations.training)


def test_a_child_is_what_edits_make_of_its_parent() -> None:
    edit, grown = neighbours(NEAR.architecture, Random(2), SPACE.limits)[0]
    child = replace(
        CHILD, parent=1, edits=(Raw(msgspec.json.encode(edit)),), architecture=Raw(as_json(grown))
    )
    assert checked(child, CHILD, SPACE)[1].layers == len(grown.layers)
    with pytest.raises(RefuseError, match=r"not what the edits make|edits|layer"):
        checked(child, None, SPACE)


def test_edits_are_kept_as_this_code_writes_them() -> None:
    text = bytes(CHILD.edits[0])
    padded = replace(CHILD, edits=(Raw(text.replace(b",", b",\n" + b" " * 1000)),))
    assert checked(padded, None, SPACE)[0] == CHILD


LARGE = small_resnet(Images(32, 32, 1), 10)


@pytest.mark.parametrize(
    ("proposed", "says"),
    [
        (replace(CHILD, architecture=Raw(b"{}")), "no architecture"),
        (replace(CHILD, architecture=Raw(b'"\xff"')), "no architecture"),
        (replace(CHILD, edits=(Raw(b'{"kind":"shrink"}'),)), "shrink|Invalid"),
        (replace(CHILD, edits=()), "not what the edits make of its parent"),
        (replace(CHILD, architecture=Raw(as_json(START))), "not what the edits make of its parent"),
        (replace(CHILD, edits=(), architecture=Raw(as_json(LARGE))), "not what the edits make of its parent"),
        (replace(CHILD, hyperparameters=Hyperparameters(0.0, 3, 48)), "no batch size of this search: 48"),
    ],
)
def test_a_proposal_that_is_none_is_refused(proposed: Proposed, says: str) -> None:
    with pytest.raises(RefuseError, match=says) as caught:
        checked(proposed, None, SPACE)
    assert caught.value.status == 422


def test_architectures_at_no_distance_are_the_same_whatever_their_layers_are_called() -> None:
    layers = tuple(
        replace(layer, id=layer.id + 100, inputs=tuple(each + 100 if each else each for each in layer.inputs))
        for layer in START.layers
    )
    renamed = Architecture(START.images, layers)
    assert as_json(renamed) != as_json(START)
    assert identity_of(renamed) == identity_of(START) != identity_of(NEAR.architecture)


def test_networks_do_not_grow_above_the_most_parameters() -> None:
    with pytest.raises(RefuseError, match="parameters, 100 at most"):
        checked(CHILD, None, replace(SPACE, most_parameters=100))
    deep = next(relu.id for relu in START.layers if relu.kind == "relu")
    grown = apply(START, Deepen(deep))
    deepened = replace(
        CHILD, edits=(Raw(msgspec.json.encode(Deepen(deep))),), architecture=Raw(as_json(grown))
    )
    space = replace(SPACE, most_parameters=grown.parameters)
    checked(deepened, None, space)
    with pytest.raises(RefuseError, match=f"parameters, {grown.parameters} at most"):  # as it is trained
        checked(replace(deepened, hyperparameters=Hyperparameters(0.0, 5, 32)), None, space)


def test_networks_do_not_grow_above_the_most_layers() -> None:
    relu = next(layer.id for layer in START.layers if layer.kind == "relu")
    grown = START
    for _ in range(200):
        grown = apply(grown, Deepen(relu))
    edits = (Raw(msgspec.json.encode(Deepen(relu))),) * 200
    deepest = replace(CHILD, edits=edits, architecture=Raw(as_json(grown)))
    with pytest.raises(RefuseError, match=f"{len(grown.layers)} layers, 600 at most"):
        checked(deepest, None, replace(SPACE, most_parameters=2**30))


def test_there_is_a_first_proposal_for_each_worker_and_the_start_is_one() -> None:
    first = first_proposals(SPACE, 12, 7)
    assert bytes(first[0][0].architecture) == as_json(START)
    assert len({facts.identity for _, facts in first}) == 12
    assert first == first_proposals(SPACE, 12, 7)
    assert len(first_proposals(replace(SPACE, most_parameters=START.parameters), 12, 7)) < 12


def test_a_proposer_rebuilds_lineages_from_edits_and_proposes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", environment_with({})["PYTHONPATH"])
    edit, grown = neighbours(NEAR.architecture, Random(2), SPACE.limits)[0]
    texts = (CHILD.edits, (Raw(msgspec.json.encode(edit)),))
    told = [
        Evaluation(1, 1, 0.5, True, None, texts[0], POINT, False),
        Evaluation(2, 2, 0.9, True, 1, texts[1], POINT, False),
    ]

    def evaluations(page: list[Evaluation], *, wanted: bool) -> Evaluations:
        return Evaluations(Raw(encode(page)), 2, wanted, 1, 5, 0.0)

    with Proposer((sys.executable, "-m", "benchmarks.search.proposer"), SPACE) as proposer:
        assert proposer.answer(evaluations(told, wanted=False)) is None
        proposed = proposer.answer(evaluations([], wanted=True))
    assert proposed is not None
    assert proposed.parent in (1, 2)
    architecture = (NEAR.architecture, grown)[proposed.parent - 1]
    for text in proposed.edits:
        architecture = apply(architecture, msgspec.json.decode(bytes(text), type=Edit))
    assert as_json(architecture) == bytes(proposed.architecture)


def test_a_controller_says_what_is_wrong_without_a_traceback(tmp_path: Path) -> None:
    case = Path(__file__).resolve().parents[3] / "training" / "benchmarks" / "search" / "pytorch"
    words = ["--case_dir", str(case), "--data_dir", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.search.controller", *words]
    environment = {**environment_with({}), ROLES_TOKEN: "a-token-of-this-run"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert done.stderr.startswith("controller: ")
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


VALUES: dict[str, Any] = {
    "search_seconds": 60,
    "max_trials": 0,
    "epochs_by_round": (1, 2),
    "heartbeat_seconds": 2,
    "lost_after_seconds": 10,
    "precision": "bf16",
}
SIZE = {"workers": 2, "ranks": 1, "nodes": 2}


def _config(values: Mapping[str, Any]) -> Configuration:
    return Configuration(MeasurementSettings(seed=42), values, changed=())


def test_workers_have_to_have_all_parameters_of_the_controller() -> None:
    ours, theirs = (
        _settings(_config({**VALUES, "momentum": momentum}), SIZE, DATA, "{}") for momentum in (0.9, 0.5)
    )
    assert ours.difference(register(configuration=ours.configuration)) == ""
    assert "its configuration is not" in ours.difference(register(configuration=theirs.configuration))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("search_seconds", 0, "`$.search_seconds`"),
        ("search_seconds", "soon", "`$.search_seconds`"),
        ("epochs_by_round", (), "`$.epochs`"),
        ("epochs_by_round", (1, 0), "`$.epochs[1]`"),
        ("heartbeat_seconds", -1, "`$.heartbeat_s`"),
        ("precision", "fp8", "`$.precision`"),
        ("max_trials", -5, "`$.max_trials`"),
    ],
)
def test_settings_by_which_nothing_can_be_searched_are_refused(name: str, value: object, says: str) -> None:
    values, size = VALUES, SIZE
    assert _settings(_config(values), size, DATA, "{}").epochs == (1, 2)
    with pytest.raises(FlagPerfError, match=re.escape(says)):
        _settings(_config({**values, name: value}), size, DATA, "{}")
    peaks = '{"bf16": 1e14, "fp16": 200000000000000}'
    assert _settings(_config(values), size, DATA, peaks).peaks == {"bf16": 1e14, "fp16": 2e14}
    for other in ("", "[]", '{"bf16": 0}', '{"bf16": "fast"}'):
        with pytest.raises(FlagPerfError):
            _settings(_config(values), size, DATA, other)
