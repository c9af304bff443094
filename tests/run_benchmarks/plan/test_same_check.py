"""The controller and every rank refuse the same parameters, and make the same of the others."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import read_configuration
from run_benchmarks.plan.parameters import read_parameters
from run_benchmarks.plan.problems import Problems
from tests.run_benchmarks.builders import FILES
from utils.errors import ProblemsError
from utils.parameters import KINDS

SETTINGS = sorted({field.name for kind in KINDS.values() for field in fields(kind)})
# A case's own names, and the words that have a meaning of their own.
NAMES = [*SETTINGS, "hidden_size", "name", "target_accuracy", "case_kind"]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 50),
    st.floats(-1, 2, allow_nan=False),
    st.sampled_from(["fp15", "fp32", "bf16", "adamw", "linear", "constant", "measure", "converge"]),
    st.lists(st.integers(0, 3), max_size=2),
)
PARAMETERS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6)
# With one that is misspelt: of a case's own file the plan alone looks whether its code uses it.
OF_VENDOR = st.dictionaries(st.sampled_from([*NAMES, "max_step"]), VALUES, max_size=6)
CASE = {"max_steps": 5, "hidden_size": 8, "target_accuracy": 0.5, "eval_interval_steps": 5}
# Mostly right by itself, so that most of what is generated comes to the checks of the vendor's layer.
BASES = st.one_of(
    PARAMETERS.map(lambda values: {**CASE, **values}),
    PARAMETERS.map(lambda values: {"case_kind": "measure", "hidden_size": 8, **values}),
    st.just({**CASE, "name": "x"}),
    PARAMETERS,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(base=BASES, vendor=OF_VENDOR)
def test_both_sides_agree(tmp_path_factory: Any, base: dict[str, Any], vendor: dict[str, Any]) -> None:
    root = tmp_path_factory.mktemp("tree", numbered=True)
    _write(root / FILES.case_dir / "config" / "_base.py", base)
    _write(root / FILES.case_dir / "config" / "mutable_params.py", {"mutable_params": ["seed"]})
    _write(root / FILES.config_dir / FILES.config_file, vendor)
    assert _on_the_controller(root) == _in_a_rank(root)


def _write(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name} = {value!r}\n" for name, value in values.items()))


def _on_the_controller(root: Path) -> Any:
    problems = Problems()
    parameters = read_parameters(root, FILES, problems)
    if parameters is None:
        return {(problem.name, problem.message, problem.remedy) for problem in problems.all}
    values = dict(parameters.values)
    kind = values.pop("case_kind")
    if kind == "converge" and "target_accuracy" in values:  # the case's name for the driver's `target`
        values["target"] = values.pop("target_accuracy")
    return kind, values


def _in_a_rank(root: Path) -> Any:
    arguments = LaunchArguments(
        case_dir=root / FILES.case_dir,
        data_dir=root,
        extern_config_dir=root / FILES.config_dir,
        extern_config_file=FILES.config_file,
        enable_extern_config=True,
    )
    try:
        config = read_configuration(arguments, "accuracy")
    except ProblemsError as error:
        return {(problem.name, problem.message, problem.remedy) for problem in error.problems}
    return config.kind, config.as_dict()
