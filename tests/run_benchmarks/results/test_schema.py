"""The published schemas: current, true of what is written, and what is written is what is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from run_benchmarks.reading import parsed
from run_benchmarks.results.provenance import Provenance
from run_benchmarks.results.round_result import SCHEMA, Observation, RoundResult
from run_benchmarks.results.summary import Run
from scripts import result_schemas
from tests.run_benchmarks.builders import conclude, make_case, observed
from utils.inventory import HostInventory
from utils.records import Verdict

PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas"
CHECKS = {name: Draft202012Validator(result_schemas.schema_of(name)) for name in result_schemas.RECORDS}
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
PLAIN: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXTS, int: st.integers(), float: FLOATS, bool: st.booleans(), NoneType: st.none(), Any: JSON,
}  # fmt: skip


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that stands in a record."""
    kind, inner = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if kind in (Union, UnionType):
        return st.one_of(*map(values_of, inner))
    if kind is Literal:
        return st.sampled_from(inner)
    if kind is tuple:
        return st.lists(values_of(inner[0]), max_size=2).map(tuple)
    if kind is list:
        return st.lists(values_of(inner[0]), max_size=2)
    if is_dataclass(hint):
        return records_of(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    return st.dictionaries(*map(values_of, inner), max_size=2)  # a Mapping, or nothing that is in a record


def records_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any record of a dataclass, all of its fields drawn."""
    hints = get_type_hints(kind)
    drawn = {
        each.name: st.just(SCHEMA) if each.name == "schema" else values_of(hints[each.name])
        for each in fields(kind)
    }
    return st.deferred(lambda: st.builds(kind, **drawn))


@pytest.mark.parametrize("name", result_schemas.RECORDS)
def test_the_published_schema_is_that_of_the_records(name: str) -> None:
    published = json.loads((PUBLISHED / f"{name}.schema.json").read_text())
    assert published == result_schemas.schema_of(name), "scripts/result_schemas.py docs/schemas"
    Draft202012Validator.check_schema(published)


def test_the_command_writes_every_schema(tmp_path: Path) -> None:
    assert result_schemas.main([str(tmp_path)]) == 0
    for path in PUBLISHED.iterdir():
        assert json.loads((tmp_path / path.name).read_text()) == json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "kind"), [("result", RoundResult), ("round", Observation), ("summary", Run)]
)
def test_what_is_written_is_of_the_schema_and_read_as_it_was(name: str, kind: Any) -> None:
    @settings(max_examples=25, deadline=None)
    @given(record=records_of(kind))
    def holds(record: Any) -> None:
        content = json.loads(json.dumps(record.as_dict(), allow_nan=False))
        CHECKS[name].validate(content)
        assert parsed(kind, content, name) == record

    holds()


def test_a_schema_refuses_what_is_none() -> None:
    content = observed(make_case()).as_dict()
    for wrong in ({"schema": 2}, {"hosts": "h1"}, {"time_s": "fast"}, {"origin": {"harness": {}}}):
        assert not CHECKS["round"].is_valid({**content, **wrong})
    assert not CHECKS["round"].is_valid({name: content[name] for name in content if name != "origin"})


def test_a_result_that_nobody_could_read_back_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours: the judge makes a record that its own type does not take back."""
    case = make_case()
    provenance = Provenance(hosts=(HostInventory(kernel="x" * 9_000),))
    shared, figures = observed(case).shared(), {"round_time": observed(case).round_time()}
    made = RoundResult(**shared, verdict=Verdict.CONVERGED, figures=figures, provenance=provenance)
    monkeypatch.setattr("run_benchmarks.round_state.without_secrets", lambda *_: made)
    result = conclude(case, observed(case), tmp_path)
    assert result.verdict is Verdict.FAILED and "provenance.hosts.0.kernel" in f"{result.failure}"
    assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "FAILED"
