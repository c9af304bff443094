"""Names in configuration files: whatever stands there is refused, or safe in a path, in a command and on a screen."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from run_benchmarks.plan.host_ranges import expand
from run_benchmarks.plan.values import HostEntry, PathName
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree
from utils.errors import ProblemsError

ODD = (
    "..",
    ".",
    "",
    "-o",
    "a/b",
    "../x",
    "a b",
    "a;b",
    "$(x)",
    "`x`",
    "a\nb",
    "\x1b[2J",
    "\u202ea",
    "é",
    "a\0",
    "n" * 300,
)
names = st.text() | st.sampled_from(ODD) | st.text("ab1.-_/:% $\n\\", max_size=8)
SAFE = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%+-]*")


def is_safe(name: str) -> bool:
    """Whether it is one component of a path, no option, and plain ASCII."""
    return SAFE.fullmatch(name) is not None and name not in (".", "..") and len(name) < 256


@pytest.mark.parametrize("kind", [HostEntry, PathName])
@given(names | names.map("fe80::1%{}".format))
@settings(derandomize=True, max_examples=300)
def test_a_name_is_refused_or_safe(kind: object, name: str) -> None:
    try:
        taken: str = TypeAdapter(kind).validate_python(name)
    except ValidationError:
        return
    assert all(map(is_safe, expand(taken) if kind is HostEntry else [taken])), taken


@pytest.mark.parametrize("host", ["node1", "10.1.2.3", "::1", "fe80::1%eth0", "a-b.example.org.", "_x"])
def test_a_usual_host_is_taken(host: str) -> None:
    assert TypeAdapter(HostEntry).validate_python(host) == host


@given(st.integers(0, 5), names, st.booleans())
@settings(
    derandomize=True,
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_case_is_refused_or_its_name_is_safe(tree: Tree, place: int, name: str, of_vendor: bool) -> None:
    parts = ["toy", "pytorch", "X1", "1", "2", "1"]
    parts[place] = name
    key = f"{name}/{':'.join(parts)}" if of_vendor else ":".join(parts)
    tree.configure(test_conf=TEST_CONF.replace('"toy:pytorch:X1:1:2:1"', ascii(key)))
    try:
        plan = tree.load()
    except ProblemsError as error:
        assert all(problem.message and problem.where for problem in error.problems)
        return
    assert all(is_safe(case.settings.name) for case in plan.cases), key
