"""What the author of a case got wrong is told at the start, on the first batch, with the file and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.session import _exit_code_of
from tests.benchmarks.driver.ranks import run_here, values_of
from utils.errors import FlagPerfError

# A whole case: y = w x, on eight points.
CASE = """
import torch
from torch import nn
from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Dataset
class Case:
    metric = "closeness"
    flops_formula = "none"
    def __init__(self, context):
        self.points = torch.arange(8.0).reshape(8, 1) * context.settings["slope"]
    def build_model(self):
        return nn.Linear(1, 1)
    def baseline(self):
        return None
    def training_data(self):
        return Dataset(8, self.batch)
    def evaluation_data(self):
        return Dataset(8, self.batch)
    def batch(self, samples):
        x = self.points[torch.as_tensor(samples.rows)]
        return Batch(x, samples=len(samples), tokens=None, flops=None, loss_counts=(float(len(samples)),))
    def loss(self, model, inputs):
        return (model(inputs) - inputs).square().sum().reshape(1)
    def evaluate(self, model, inputs):
        wrong = (model(inputs) - inputs).abs().sum()
        return torch.stack([wrong, torch.tensor(float(len(inputs)))])
    def metrics(self, sums):
        return {"closeness": -sums[0] / sums[1]}
"""
BASE = "slope = 0.1\ntarget_closeness = 0.0\nmax_steps = 4\neval_batch_size = 4\ntrain_batch_size = 4\n"
BASE += "eval_interval_steps = 2\n"
BASE += 'lr_schedule = "constant"\nprecision = "fp32"\ncpu_threads = 1\n'


def _launch(folder: Path, code: str = CASE, base: str = BASE) -> LaunchArguments:
    case = folder / "pytorch"
    (case / "config").mkdir(parents=True)
    (case / "__init__.py").touch()
    (case / "case.py").write_text(code)
    (case / "config" / "_base.py").write_text(base)
    (case / "config" / "mutable_params.py").write_text("mutable_params = []\n")
    return LaunchArguments(case_dir=case, data_dir=folder, vendor="cpu")


def test_the_whole_case_trains(tmp_path: Path, capsys: Any) -> None:
    events = run_here(capsys, _launch(tmp_path))
    assert values_of(events, "FINISHED")[0]["global_steps"] == 4
    assert values_of(events, "INIT_EVALUATION")[0]["global_steps"] == 0


@pytest.mark.parametrize("exit_call", ["sys.exit()", "sys.exit(0)", "sys.exit('no data')"])
def test_a_case_that_ends_the_rank_was_not_done(exit_call: str, tmp_path: Path, capsys: Any) -> None:
    """The peers of a rank that ends with 0 would wait for it."""
    launch = _launch(tmp_path, CASE.replace("return None", f"import sys; {exit_call}"))
    assert _exit_code_of(lambda: run_here(capsys, launch)) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("SystemExit")


def test_looking_at_the_first_batch_leaves_training_as_it_was(tmp_path: Path, capsys: Any) -> None:
    """Dropout draws the same masks whether the first batch was looked at before or not."""
    code = CASE.replace("nn.Linear(1, 1)", "nn.Sequential(nn.Dropout(0.5), nn.Linear(1, 1))")
    code = code.replace(
        "    def loss(self, model, inputs):\n",
        "    calls = 0\n    def loss(self, model, inputs):\n        Case.calls += 1\n"
        "        if Case.calls == 1: torch.rand(7)\n",
    )
    plain = code.replace("torch.rand(7)", "pass")
    losses = []
    for number, text in enumerate((code, plain)):
        events = run_here(capsys, _launch(tmp_path / str(number), text, BASE + "log_freq = 1\n"))
        losses.append([value["loss"] for value in values_of(events, "STEP_END")])
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("old", "new", "message", "remedy"),
    [
        (".sum().reshape(1)", ".sum()", "loss gave a tensor of shape ()", "reshape(1)"),
        (".square().sum().reshape(1)", ".square().reshape(-1)", "loss gave a tensor of shape (4,)", "the sum over"),
        (".sum().reshape(1)", ".sum().reshape(1).double()", "not in float32", ".float()"),
        (".square().sum().reshape(1)", ".square().mean().reshape(1)", "halves: a mean", "the sum over labels"),
        (".square().sum().reshape(1)", ".sum().reshape(1) / 0", "the loss of the first batch is", "first batch"),
        ("loss_counts=(float(len(samples)),)", "loss_counts=()", "loss_counts is ()", "one number a part"),
        ("samples=len(samples)", "samples=9", "says that it has 9", "how many were asked for"),
        ("return Dataset(8, self.batch)", "return [1]", "training_data gave [1]", "return a Dataset"),
        ('{"closeness":', '{"nearness":', "gave nearness, and not the case's metric, closeness", "return {"),
        ("-sums[0] / sums[1]}", "torch.zeros(1)}", "what is no number: closeness = a tensor", "a number for each"),
        ("return torch.stack([wrong,", "return wrong\n        torch.stack([wrong,",
         "evaluate gave a tensor of shape ()",
         "added up"),
        ("        return None", "        return {}", "baseline gave {} (dict)", "or None"),
        ('["slope"]', '["slop"]', "reads the setting 'slop'", "did you mean slope?"),
        ('["slope"]', '["max_steps"]', "reads the setting 'max_steps'", "context.driver.max_steps"),
        ("    def baseline(self):\n        return None\n", "", "lacks baseline", "docs/adding-a-case.md"),
        ("class Case:", "class Kase:", "there is no class Case", "docs/adding-a-case.md"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_before_any_training(
    tmp_path: Path, capsys: Any, old: str, new: str, message: str, remedy: str
) -> None:
    assert old in CASE
    with pytest.raises(FlagPerfError) as error:
        run_here(capsys, _launch(tmp_path, CASE.replace(old, new)))
    assert message in error.value.message and remedy in error.value.remedy
    assert error.value.where.endswith("case.py") or error.value.where == "context.settings"


def test_a_missing_case_py_is_named(tmp_path: Path, capsys: Any) -> None:
    launch = _launch(tmp_path)
    (launch.case_dir / "case.py").unlink()
    with pytest.raises(FlagPerfError, match=r"case\.py: no such file"):
        run_here(capsys, launch)


def test_without_a_target_or_a_list_of_mutable_names_nothing_starts(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(FlagPerfError, match="a case that trains has a target"):
        run_here(capsys, _launch(tmp_path, base=BASE.replace("target_closeness = 0.0\n", "")))
    launch = _launch(tmp_path / "other")
    (launch.case_dir / "config" / "mutable_params.py").unlink()
    with pytest.raises(FlagPerfError, match="every result of the case would be open"):
        run_here(capsys, launch)


MEASURE = """
from benchmarks.driver.operations import Operation
class Case:
    def __init__(self, context): ...
    def operations(self):
        return [Operation("naps", "nap", 1.0, "naps a second", lambda: lambda: None)]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.0", "float('nan')", "work is nan (float), not a finite number above 0"),
        ('"nap", 1.0', '"", 1.0', "unit is '': a figure needs one"),
        ('"naps a second"', "None", "definition is None: a figure needs one"),
        ('"naps",', '"MFU",', "'MFU': its name is that of a figure of FlagPerf's own"),
        ('"naps",', '"my naps",', "'my naps': its name is not a letter"),
        ("lambda: None)", "lambda: None, 'bf16')", "peak is 'bf16', but unit is 'nap'"),
        ("lambda: lambda: None", "3", "start is 3 (int), not a function"),
        ('[Operation("naps"', '["naps"] + [Operation("naps"', "operation 1: 'naps' (str) is no Operation"),
        ("return [", "return 2 * [", "2 operations are called 'naps'"),
        ("return [", "return [] and [", "operations gave none"),
    ],
)
def test_an_operation_that_cannot_be_a_figure_is_told_before_it_is_measured(
    tmp_path: Path, capsys: Any, old: str, new: str, message: str
) -> None:
    assert old in MEASURE
    with pytest.raises(FlagPerfError) as error:
        run_here(capsys, _launch(tmp_path, MEASURE.replace(old, new), 'case_kind = "measure"\n'))
    assert message in error.value.message
