"""The same global batch on 1x1, 1x2 (in micro-batches) and 2x1 (nodes x ranks) is the same training, in every case.

Ranks are started by the launcher, as in a container; the two nodes of 2x1 are two launchers on this machine.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER
from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.base import LaunchJob
from tests.benchmarks.bert.shard_files import TINY_MODEL as TINY_BERT
from tests.benchmarks.bert.shard_files import write_data
from tests.benchmarks.cpm.chunk_data import TINY as TINY_CPM
from tests.benchmarks.cpm.chunk_data import random_chunks, write_set
from tests.benchmarks.driver.ranks import TRAINING, command_line, environment, values_of
from tests.benchmarks.glm.cloze_data import TINY as TINY_GLM
from tests.benchmarks.glm.cloze_data import as_clozes, random_questions
from tests.benchmarks.glm.cloze_data import write_set as write_clozes
from tests.ports import free_port
from utils.events import Event, read_events

STEPS, GLOBAL_BATCH, EVALUATION_SAMPLES = 20, 8, 11  # two ranks do not divide 11
PATIENCE_S = 150
WORLDS = {"1x1": (1, 1, 1), "1x2": (1, 2, 2), "2x1": (2, 1, 1)}  # nodes, ranks a node, micro-batches a step
COUNTERS = ("num_trained_samples", "num_trained_tokens", "global_steps", "global_batch_size")


@dataclass(frozen=True)
class Trained:
    """A case to be trained: its settings (no dropout, whose masks are each rank's own) and its data."""

    folder: str  # below benchmarks/
    settings: dict[str, Any]
    write: Callable[[Path], object]

    @property
    def framework(self) -> str:
        return self.folder.partition("/")[2]


def _write_chunks(data_dir: Path) -> None:
    generator = np.random.default_rng(4)
    train, valid = (generator.integers(2, 14, size=count).tolist() for count in (64, EVALUATION_SAMPLES))
    write_set(data_dir, "train", random_chunks(train[:40], seed=1), random_chunks(train[40:], seed=2))
    write_set(data_dir, "valid", random_chunks(valid, seed=3))


def _write_questions(data_dir: Path) -> None:
    for folder, count in ((TRAIN_FOLDER, 64), (EVAL_FOLDER, EVALUATION_SAMPLES)):
        write_clozes(data_dir, folder, as_clozes(random_questions(count, seed=count)))


# So long an epsilon that AdamW and LAMB feel the gradients' scale, which they hide otherwise.
SETTINGS: dict[str, Any] = {
    "init_checkpoint": "",
    "optimizer": "adamw",
    "epsilon": 0.1,
    "learning_rate": 0.05,
    "max_grad_norm": 2.0,
    "warmup_steps": 0,
    "decay_steps": STEPS,
    "max_steps": STEPS,
    "max_samples_termination": None,
    "target": 2.0,  # out of reach
    "eval_batch_size": 4,
    "eval_interval_steps": None,
    "eval_interval_samples": 80,
    "eval_iter_start_samples": 0,
    "log_freq": 1,
    "precision": "fp32",
    "dist_timeout_seconds": 60.0,
    "cpu_threads": 1,  # two threads for so little only wait for each other on a busy machine
}
GPT_LIKE = {"initializer_range": 0.3, "hidden_dropout": 0.0, "attention_dropout": 0.0}
CASES = {
    "bert-pytorch": Trained("bert/pytorch", {**TINY_BERT, "optimizer": "lamb"}, write_data),
    "bert-paddle": Trained("bert/paddle", TINY_BERT, write_data),
    "cpm-pytorch": Trained("cpm/pytorch", {**TINY_CPM, **GPT_LIKE}, _write_chunks),
    "glm-pytorch": Trained("glm/pytorch", {**TINY_GLM, **GPT_LIKE}, _write_questions),
}


@dataclass(frozen=True)
class Run:
    """The events of every rank of a world, in the order of their global ranks."""

    events: list[list[Event]]

    @property
    def losses(self) -> list[float]:
        return [value["loss"] for value in values_of(self.events[0], "STEP_END")]

    @property
    def finished(self) -> dict[str, Any]:
        return values_of(self.events[0], "FINISHED")[0]


def _launch(
    python: str, folder: Path, data_dir: Path, case: Trained, nnodes: int, nproc: int, micro: int
) -> Run:
    parts = {
        "train_batch_size": GLOBAL_BATCH // (nnodes * nproc * micro),
        "gradient_accumulation_steps": micro,
    }
    settings = {**SETTINGS, **case.settings, **parts}
    folder.mkdir()
    config = folder / f"config_cpux{nnodes}x{nproc}.py"
    config.write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    launch = LaunchArguments(
        case_dir=TRAINING / "benchmarks" / case.folder,
        data_dir=data_dir,
        vendor="cpu",
        extern_config_dir=folder,
        extern_config_file=config.name,
        enable_extern_config=True,
        extern_module_dir=folder / "extern",
    )
    script, logs = tuple(command_line(launch)[2:]), folder / "logs"
    logs.mkdir()
    hosts = ("127.0.0.1",) * nnodes
    job = LaunchJob(nnodes, nproc, "127.0.0.1", free_port(), str(logs), script, python, hosts)
    framework = open_framework(case.framework)
    nodes = [
        subprocess.Popen(
            framework.launch_argv(job, rank),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(nnodes)
    ]
    try:
        outputs = [node.communicate(timeout=PATIENCE_S)[0] for node in nodes]
    finally:
        for node in nodes:
            node.terminate()  # the launcher then ends its ranks; nothing where it has ended
    files = [logs / f"rank{rank}.out.log" for rank in range(nnodes * nproc)]
    output = "\n".join([*outputs, *(file.read_text()[-3000:] for file in files)])
    assert [node.returncode for node in nodes] == [0] * nnodes, output
    return Run([read_events(file) for file in files])


@pytest.fixture(scope="module", params=list(CASES))
def trained(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    warm_python: str,
    warm_paddle: str,
) -> tuple[Trained, dict[str, Run]]:
    """A case and its run on each world."""
    case, folder = CASES[request.param], tmp_path_factory.mktemp(request.param)
    case.write(folder / "data")
    python = {"pytorch": warm_python, "paddle": warm_paddle}[case.framework]
    return case, {
        name: _launch(python, folder / name, folder / "data", case, *world) for name, world in WORLDS.items()
    }


Case = tuple[Trained, dict[str, Run]]


def of_two_ranks(runs: dict[str, Run]) -> dict[str, Run]:
    return {name: run for name, run in runs.items() if name != "1x1"}


def test_the_losses_of_20_steps_are_the_same(trained: Case) -> None:
    _, runs = trained
    alone = runs["1x1"].losses
    assert len(alone) == STEPS
    assert max(alone) - min(alone) > 0.3  # it does train
    for name, run in of_two_ranks(runs).items():
        assert run.losses == pytest.approx(alone, rel=2e-4), name


def test_samples_and_tokens_are_counted_once(trained: Case) -> None:
    _, runs = trained
    alone = runs["1x1"].finished
    assert alone["num_trained_samples"] == STEPS * GLOBAL_BATCH
    for run in of_two_ranks(runs).values():
        finished = run.finished
        assert finished["world_size"] == 2
        assert {counter: finished[counter] for counter in COUNTERS} == {c: alone[c] for c in COUNTERS}
        assert finished["model_flops_per_sample"] == pytest.approx(alone["model_flops_per_sample"], rel=1e-12)


def test_the_evaluation_covers_each_sample_once(trained: Case) -> None:
    """Before training, when the weights are the same: a sample left out or taken twice would move every mean."""
    _, runs = trained
    alone = values_of(runs["1x1"].events[0], "INIT_EVALUATION")[0]
    means = {name: value for name, value in alone.items() if isinstance(value, float)}
    assert "eval_loss" in means
    for name, run in of_two_ranks(runs).items():
        for events in run.events:
            evaluation = values_of(events, "INIT_EVALUATION")[0]
            assert {mean: evaluation[mean] for mean in means} == pytest.approx(means, rel=1e-5), name


def test_every_rank_writes_the_same_events_and_one_finishes(trained: Case) -> None:
    _, runs = trained
    alone = [event.name for event in runs["1x1"].events[0]]
    assert alone.count("FINISHED") == 1
    assert alone.count("EVALUATE") == 2
    for name, run in of_two_ranks(runs).items():
        first, second = ([event.name for event in events] for events in run.events)
        assert first == alone, name
        assert second == alone[:-1], name


def test_times_add_up_and_rates_are_ordered_in_every_result(trained: Case) -> None:
    _, runs = trained
    for name, run in runs.items():
        values = run.finished
        assert values["p_whole"] <= values["p_train"] <= values["p_core"], name
        apart = values["eval_time"] + values.get("checkpoint_time", 0.0)
        assert apart + values["no_eval_time"] == pytest.approx(values["raw_train_time"]), name
        assert values["data_wait_time"] + values["pure_compute_time"] == pytest.approx(values["no_eval_time"])
        assert values["init_time"] + values["raw_train_time"] <= values["e2e_time"], name
        for rate, time in (
            ("p_whole", "raw_train_time"),
            ("p_train", "no_eval_time"),
            ("p_core", "pure_compute_time"),
        ):
            assert values[rate] * values[time] == pytest.approx(values["num_trained_samples"]), (name, rate)
