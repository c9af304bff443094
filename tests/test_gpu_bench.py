"""benches/gpu.py: all of its path on the CPU, the data that it makes, and what it takes for wrong numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.bert import shards as bert_shards
from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.common.arrays import starts
from benchmarks.cpm import chunks as cpm_chunks
from benchmarks.glm import shards as glm_shards
from tests.bench_modules import BENCHES, imported
from tests.structure import CONTROLLER_PACKAGES


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from imported(monkeypatch)


def test_the_whole_path_in_small_on_the_cpu_and_a_part_that_fails_takes_no_other(
    bench: Any, tmp_path: Path
) -> None:
    """With no other packages than those that it asks for: the rest of the controller's are hidden."""
    needed = {name for names in bench("gpu").NEEDED.values() for name in names}
    for package in CONTROLLER_PACKAGES - needed - {"markupsafe"}:  # that one comes with jinja2
        (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})\n")
    command = [sys.executable, str(BENCHES / "gpu.py"), "--device", "cpu", "--small", "--minutes", "20"]
    options = [
        "--cases",
        "glm",
        "bert",
        "--keep",
        str(tmp_path / "kept"),
        "--markdown",
        str(tmp_path / "t.md"),
    ]
    wrong = ["--set", "glm.train_batch_size=-1", "bert.max_steps=3"]
    alone = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [*command, *options, *wrong], capture_output=True, text=True, check=False, env=alone
    )
    assert done.returncode == 1, done.stderr  # for GLM's sake
    values = json.loads(done.stdout.splitlines()[-1])
    assert values["failures"].keys() == {"glm", "numerics glm"}
    assert "train_batch_size" in values["failures"]["glm"]
    assert values["gemm"].keys() >= {"fp32", "bf16"}
    trained = values["training"]["bert"]
    assert (trained["steps"], trained["samples"]) == (3, 12)
    assert trained["steady"] > 0
    assert trained["of_gemm"] == pytest.approx(
        trained["MFU"] or _flops(tmp_path) * trained["p_train"] / values["gemm"][trained["precision"]]
    )
    assert values["numerics"]["bert"]["precisions"][trained["precision"]]["within"]
    section = (tmp_path / "t.md").read_text()
    assert "## On one cpu" in section
    assert f"| bert | {trained['precision']} | 4 x 1 |" in section
    assert "No result: glm:" in section


def _flops(folder: Path) -> float:
    (result,) = (folder / "kept" / "rounds" / "bert").glob("result/run*/*/round1/result.json")
    flops: float = json.loads(result.read_text())["facts"]["model_flops_per_sample"]
    return flops


def test_what_this_python_lacks_is_said_at_the_start(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    gpu = bench("gpu")
    gpu.NEEDED["the ranks"] = ("torch", "no_such_module")
    assert gpu.main(["--device", "cpu", "--small"]) == 2
    assert "lacks no_such_module, which the ranks need" in capsys.readouterr().out


def test_the_full_models_are_refused_on_a_cpu(bench: Any) -> None:
    with pytest.raises(SystemExit):
        bench("gpu").read_options(["--device", "cpu"])


def test_a_part_that_saves_time_leaves_it_to_the_others(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = bench("gpu")
    now = [0.0]
    monkeypatch.setattr(gpu.time, "monotonic", lambda: now[0])
    budget = gpu.Budget(100.0, {"a": 1.0, "b": 3.0, "c": 1.0})
    assert budget.take("a") == pytest.approx(20.0)
    now[0] = 20.0
    assert budget.take("b") == pytest.approx(60.0)
    now[0] = 30.0
    assert budget.take("c") == pytest.approx(70.0)


def test_bert_data_has_the_form_and_the_lengths_of_the_task(bench: Any, tmp_path: Path) -> None:
    amount = bench("gpu_cases").TRAINING["bert"].amount(small=False)
    bench("made_data").make_bert(tmp_path, amount)
    files = bert_shards.training_files(tmp_path)
    assert [bert_shards.shape_of(path)[1:] for path in files] == [(512, 76)] * 2
    shard = bert_shards.open_shard(files[0])
    arrays = pretraining_arrays(shard)
    assert arrays.lengths.mean() / 512 == pytest.approx(0.5, abs=0.05)
    assert arrays.input_ids.max() < 30522
    predictions = (arrays.positions > 0).sum(axis=1)
    np.testing.assert_array_less(np.abs(predictions - 0.15 * arrays.lengths), 1.01)
    places = shard["masked_lm_positions"]
    assert (np.take_along_axis(shard["input_mask"], places, axis=1)[places > 0] == 1).all()
    assert all(len(set(row[row > 0])) == (row > 0).sum() for row in places[:50])
    assert bert_shards.shape_of(tmp_path / bert_shards.EVALUATION_FILE)[0] == 64


def test_glm_data_has_one_right_candidate_a_question_and_fits_the_model(bench: Any, tmp_path: Path) -> None:
    amount = bench("gpu_cases").TRAINING["glm"].amount(small=False)
    bench("made_data").make_glm(tmp_path, amount)
    for folder in (glm_shards.TRAIN_FOLDER, glm_shards.EVAL_FOLDER):
        questions = glm_shards.read_folder(tmp_path, folder)
        clozes = questions.clozes
        assert clozes.longest_sequence <= 512
        first = starts(clozes.candidate_counts)
        assert (np.add.reduceat(clozes.exact_match, first) == 1).all()
        assert (clozes.blanks < clozes.source_lengths).all()
        assert max(clozes.sources.max(), clozes.candidates.max()) < questions.vocabulary.start
    assert clozes.source_lengths.mean() == pytest.approx(300, abs=40)


def test_cpm_data_are_chunks_of_201(bench: Any, tmp_path: Path) -> None:
    bench("made_data").make_cpm(tmp_path, bench("gpu_cases").TRAINING["cpm"].amount(small=False))
    (path,) = cpm_chunks.chunk_files(tmp_path / cpm_chunks.TRAINING_FOLDER).files
    chunks = cpm_chunks.open_chunks(path)
    assert chunks.shape == (4096, 201)
    assert (chunks == 0).sum() == 0
    assert ((chunks >= 0).sum(axis=1) >= 2).all()
    assert ((chunks[:, -1] >= 0).mean()) == pytest.approx(0.9, abs=0.03)


def test_a_precision_without_a_kernel_has_its_reason_in_the_table(bench: Any) -> None:
    lost = {"loss": None, "norm": None, "gradients": None}
    row = {"differences": lost, "tolerance": lost, "within": False, "error": "no kernel"}
    compared = {"loss": 2.0, "gradient_norm": 1.0, "precisions": {"fp32": row}}
    assert bench("gpu_report").numerics_rows("bert", compared)[0][-1] == "no kernel"
