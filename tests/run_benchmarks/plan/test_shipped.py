"""The config files as they are shipped lead to a plan with the real tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from run_benchmarks.plan.load import load_plan

TRAINING = Path(__file__).resolve().parents[3] / "training"
CONFIG = TRAINING / "run_benchmarks" / "config"


def test_shipped_files_run_the_demo_on_this_machine() -> None:
    plan = load_plan(CONFIG, TRAINING)
    [case] = plan.cases
    assert (plan.cluster.hosts, case.vendor.name, case.vendor.device_type) == (("localhost",), "cpu", "cpu")
    assert case.settings.name == "bert:pytorch:cpu:1:2:1"
    assert case.hosts == ("localhost",)
    assert case.chip is not None and case.chip.name == "cpu"
    assert case.parameters["target_mlm_accuracy"] > 0
    assert case.settings.data_dir_host == str(TRAINING.parent / ".quickstart" / "bert_demo")
    assert plan.run.flagperf_path_host == str(TRAINING)
    assert plan.run.log_path == TRAINING / "result"
    files = case.files
    for path in (
        files.script,
        f"{files.config_dir}/{files.config_file}",
        f"{files.dockerfile_dir}/Dockerfile",
    ):
        assert (TRAINING / path).is_file()


def test_a_copy_is_valid_in_any_folder() -> None:
    path = CONFIG / "test_conf.py"
    names: dict[str, object] = {"__file__": "/conf/test_conf.py"}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)  # noqa: S102 - it is our own
    assert names["CASES"] == {"bert:pytorch:cpu:1:2:1": "/.quickstart/bert_demo"}


@pytest.mark.parametrize("name", ["cluster_conf.py", "test_conf.py"])
def test_every_setting_is_explained_beside_it(name: str) -> None:
    text = (CONFIG / name).read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            assert lines[node.lineno - 2].startswith("#"), f"line {node.lineno} has no comment above it"


def test_other_dialect_in_the_comments_is_right(tmp_path: Path) -> None:
    """The 2022 form that test_conf.py shows in comments works when the comment marks are taken away."""
    text = (CONFIG / "test_conf.py").read_text(encoding="utf-8")
    begin = text.index('# CASES = ["BERT')
    end = text.index("# ---- Paths")
    shown = "\n".join(line.removeprefix("# ") for line in text[begin:end].splitlines())
    (tmp_path / "test_conf.py").write_text(text[:begin] + shown + "\n" + text[end:])
    (tmp_path / "cluster_conf.py").write_text((CONFIG / "cluster_conf.py").read_text())
    [case] = load_plan(tmp_path, TRAINING).cases
    assert (case.settings.name, case.settings.config) == ("BERT_TORCH_DEMO_CPU_1X2", "config_cpux1x2")
