"""The config files as they are shipped lead to a plan with the real tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan_notes import notes_of
from utils.config_files import parts_of_config

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


def test_every_vendor_of_the_tree_can_be_read(tmp_path: Path) -> None:
    """Each config of each vendor in the tree is a valid case, of which nothing is noted but a peak nobody publishes."""
    (tmp_path / "cluster_conf.py").write_text('HOSTS = ["n1", "n2", "n3", "n4"]\n')
    configs = sorted(TRAINING.glob("*/*-*/config/config_*x*x*.py"))
    assert configs
    for vendor in sorted({path.parents[2].name for path in configs}):
        keys = [_key(path) for path in configs if path.parents[2].name == vendor]
        cases = "".join(f'    "{key}": "/data",\n' for key in keys)
        (tmp_path / "test_conf.py").write_text(
            f'VENDOR = "{vendor}"\nFLAGPERF_LOG_PATH = {str(tmp_path)!r}\nCASES = {{\n{cases}}}\n'
        )
        plan = load_plan(tmp_path, TRAINING)
        assert len(plan.cases) == len(keys)
        without = {name for name, chip in plan.cases[0].vendor.chips.items() if not chip.peak_flops}
        silent = re.compile(rf"CHIPS has no peak( for \w+)? of ({'|'.join(without) or '-'}):")
        assert [note for note in notes_of(plan) if not silent.search(note)] == []


def _key(config: Path) -> str:
    model, framework = config.parents[1].name.rsplit("-", 1)
    parts = parts_of_config(config.stem)
    assert parts, config
    return ":".join(map(str, (model, framework, *parts, 1)))
