"""The worked example of CONTRIBUTING.md: a whole case in less than 150 lines, which users can run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import benchmarks
from benchmarks.driver.extern import case_class
from benchmarks.driver.loader import Loader
from benchmarks.driver.pytorch.case import Context
from tests.benchmarks.driver.controller import run_by_the_controller
from tests.benchmarks.driver.ranks import environment, values_of
from utils.config_files import load_constants
from utils.events import Event, parse_line
from utils.parameters import TrainingSettings

TRAINING = Path(benchmarks.__file__).parents[1]
CASE = TRAINING / "benchmarks/digits/pytorch"
FOLDERS = (TRAINING / "benchmarks/digits", TRAINING / "cpu/digits-pytorch")
CONTRIBUTING = TRAINING.parent / "CONTRIBUTING.md"
MOST_LINES = 149


def files_of_the_example() -> list[Path]:
    """All that a model engineer writes for it."""
    files = [path for folder in FOLDERS for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path for path in files if "__pycache__" not in path.parts]


def test_it_is_short() -> None:
    lines = {str(path): len(path.read_text().splitlines()) for path in files_of_the_example()}
    assert sum(lines.values()) <= MOST_LINES, lines


def section_of_contributing() -> str:
    text = CONTRIBUTING.read_text()
    return text[text.index("## Adding a case") : text.index("## Tests")]


def test_contributing_leads_to_each_of_its_files() -> None:
    section = section_of_contributing()
    linked = {(TRAINING.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", section)}
    assert [str(path) for path in linked if not path.exists()] == []
    said_together = {path for path in files_of_the_example() if path.name == "__init__.py"}
    assert set(files_of_the_example()) - said_together <= linked


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by the command that users give."""
    folder = tmp_path_factory.mktemp("digits") / "data"
    assert prepare("--out", str(folder)).returncode == 0
    return folder


def prepare(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.digits.prepare", *words]
    return subprocess.run(
        command, env=environment(), cwd=TRAINING, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_data_are_as_its_readme_says(data: Path) -> None:
    training, held_out = np.load(data / "training.npy"), np.load(data / "held_out.npy")
    assert (training.shape, held_out.shape, training.dtype) == ((1437, 65), (360, 65), np.dtype("uint8"))
    assert training[:, :64].max() == 16 and set(held_out[:, 64]) == set(range(10))
    means = np.stack([training[training[:, 64] == digit, :64].mean(axis=0) for digit in range(10)])
    nearest = ((held_out[:, None, :64] - means) ** 2).sum(axis=-1).argmin(axis=1)
    assert round(float((nearest == held_out[:, 64]).mean()), 2) == 0.85
    assert round(float(np.bincount(held_out[:, 64]).max()) / 360, 2) == 0.10


def test_what_is_not_as_made_is_named(data: Path, tmp_path: Path) -> None:
    assert prepare("--verify", str(data)).returncode == 0
    for path in data.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "held_out.npy").write_bytes((data / "held_out.npy").read_bytes()[:-1])
    done = prepare("--verify", str(tmp_path))
    assert (done.returncode, "held_out.npy" in done.stderr) == (1, True)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "training.npy"
    mine.write_text("mine")
    done = prepare("--out", str(tmp_path))
    assert (done.returncode, "other files" in done.stderr) == (1, True)
    assert mine.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [mine]


def test_flops_are_those_that_torch_counts(data: Path) -> None:
    settings = load_constants(CASE / "config/_base.py")
    case = case_class(CASE)(Context(data, TrainingSettings(), settings, torch.device("cpu")))
    model, batch = case.build_model(), Loader(case, TrainingSettings()).evaluation_batches()[0]
    with FlopCounterMode(display=False) as counter:
        case.loss(model, batch.inputs).sum().backward()
    assert batch.flops == pytest.approx(counter.get_total_flops(), rel=0.02)


# ---- as users run it


def by_hand(folder: Path, *settings: str) -> list[Event]:
    """The commands of CONTRIBUTING.md's first block, as they stand there but for the paths and `settings`."""
    block = section_of_contributing().split("```")[1].removeprefix("bash\n")
    script = block.replace("../.venv/bin/python", sys.executable).replace("/tmp/digits", str(folder))
    command = ["bash", "-ec", f'{script.rstrip()} "$@"', "bash", *settings]
    done = subprocess.run(
        command, cwd=TRAINING.parent, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return [event for line in done.stdout.splitlines() if (event := parse_line(line))]


def test_users_can_run_it(data: Path, tmp_path: Path, warm_python: str) -> None:
    """It converges on two ranks, and one rank by hand takes the same steps."""
    code, result, events = run_by_the_controller(warm_python, "digits:pytorch:cpu:1:2:1", data, tmp_path)
    assert (code, result["verdict"], result["rules"]["stamp"]) == (0, "CONVERGED", "closed")
    assert result["figures"]["acc"]["value"] >= 0.92
    assert result["figures"]["p_whole"]["value"] <= result["figures"]["p_train"]["value"]
    alone = by_hand(tmp_path / "digits", "--max_steps", "40", "--cpu_threads", "1")
    losses = [[value["loss"] for value in values_of(each, "STEP_END")][:2] for each in (events, alone)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    [start] = values_of(alone, "INIT_EVALUATION")
    assert (round(start["baseline"], 2), start["accuracy"] < 0.3) == (0.10, True)
