"""A real run, archived and run again: what differs is said, the archive's parameters count, its code is never run."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.exports.archive import export_archive
from run_benchmarks.exports.reproduction import Reproduction, reproduction
from run_benchmarks.exports.unpacking import unpack
from run_benchmarks.plan.records import CaseSettings
from run_benchmarks.plan.secrets import NO_SECRETS
from tests.ports import reserved_port
from tests.run_benchmarks.exports.demo_run import change_json
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from utils.errors import FlagPerfError

CASE = "toy:pytorch:X1:1:1:1"
CONFIG = "acme/toy-pytorch/config/config_X1x1x1.py"
BATCH, ADDED = "train_batch_size = 16\n", "utils/new.py"


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WholeRun, Path]]:
    """A run of the toy, with a batch of 16, and its archive."""
    folder = tmp_path_factory.mktemp("reproduce")
    with (
        reserved_port() as port,
        pytest.MonkeyPatch.context() as patch,
    ):  # nobody can listen on this port meanwhile
        whole = make_whole_run(folder, port, patch)
        mutable = 'mutable_params = ["train_batch_size"]\n'
        whole.tree.write("benchmarks/toy/pytorch/config/mutable_params.py", mutable)
        whole.tree.write(CONFIG, BATCH)
        assert whole.main() == 0
        export_archive(whole.result, folder / "run.tar.gz", NO_SECRETS, whole.tree.training)
        yield whole, folder / "run.tar.gz"


@pytest.fixture
def whole(run_once: tuple[WholeRun, Path]) -> WholeRun:
    """The checkout and the settings as they were when it ran."""
    whole, _ = run_once
    whole.configure()
    whole.tree.write(CONFIG, BATCH)
    (whole.tree.training / ADDED).unlink(missing_ok=True)
    return whole


@pytest.fixture
def archive(run_once: tuple[WholeRun, Path]) -> Path:
    return run_once[1]


def results(whole: WholeRun) -> list[Path]:
    return sorted((whole.folder / "result").iterdir())


def again(archive: Path, whole: WholeRun, work: Path) -> Reproduction:
    """What `run.py reproduce` would run."""
    (work / "archive").mkdir(parents=True)
    about = unpack(archive, work / "archive")
    tree = whole.tree
    return reproduction(work / "archive", about, tree.config, tree.training, whole.folder / "result", work)


def test_it_is_run_again_and_compared(
    archive: Path, whole: WholeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (first,) = results(whole)
    capsys.readouterr()
    assert whole.main("reproduce", str(archive), "--show") == 0
    out, error = capsys.readouterr()
    assert (
        error == f"{first.name}, from {archive}, again:\n- the code and the parameters are what they were\n"
    )
    assert out == "" and results(whole) == [first]
    assert whole.main("reproduce", str(archive)) == 0
    (second,) = set(results(whole)) - {first}
    plans = [json.loads((run / "plan.json").read_text())["cases"] for run in (first, second)]
    assert plans[0] == plans[1]
    out = capsys.readouterr().out
    assert f"results and logs: {second}" in out
    assert str(archive) in out and "flagperf-reproduce-" not in out, "that folder is gone"
    assert CASE in out.partition("results and logs")[2], "the comparison comes after the run's own tables"


def test_what_differs_is_said_and_the_archives_parameters_count(
    archive: Path, whole: WholeRun, tmp_path: Path
) -> None:
    same = again(archive, whole, tmp_path / "same")
    work = tmp_path / "docker"
    (work / "archive").mkdir(parents=True)
    about = unpack(archive, work / "archive")
    change_json(work / "archive" / "run" / "plan.json", lambda plan: plan["run"].update(runtime="docker"))
    log_path, tree = whole.folder / "result", whole.tree
    docker = reproduction(work / "archive", about, tree.config, tree.training, log_path, work)
    assert docker.differs == ("it ran with RUNTIME = 'docker', and is run with 'process', as is set here",)
    assert same.differs == () and same.plan.training_dir == whole.tree.training
    whole.tree.write(CONFIG, "train_batch_size = 64\n")
    whole.tree.write(ADDED, "")
    whole.configure("CASES = {}\nCLEAR_CACHES = True\nSHM_SIZE = '3G'\nFLAGPERF_PATH = None\n")
    other = again(archive, whole, tmp_path / "other")
    text = "\n".join(other.differs)
    assert f"{CASE}: train_batch_size is 64 in this checkout, and is run with 16" in text
    assert f"{CASE}: its data is looked for where it was, in {whole.folder}/data" in text
    assert "the code is not what ran" in text and f"the code differs in {CONFIG}" in text
    (case,) = other.plan.cases
    assert case.settings.name == CASE and case.parameters["train_batch_size"] == 16
    assert (other.plan.run.clear_caches, other.plan.run.shm_size) == (False, "3G")
    assert other.plan.run.log_path == whole.folder / "result"
    assert other.plan.run.flagperf_path_host == str(whole.tree.training), (
        "and not the copy, which is gone afterwards"
    )
    assert f"--config {whole.tree.config}" in " ".join(other.plan.options)
    assert (whole.tree.training / CONFIG).read_text() == "train_batch_size = 64\n", (
        "the checkout is not touched"
    )


def test_the_code_in_an_archive_is_never_executed(archive: Path, whole: WholeRun, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert f"code/{CONFIG}" in names and "code/benchmarks/toy/pytorch/run_pretraining.py" in names
    work = tmp_path / "work"
    made = again(archive, whole, work)
    assert made.plan.training_dir == whole.tree.training
    whole.tree.write(CONFIG, "train_batch_size = 64\n")
    copy = again(archive, whole, tmp_path / "changed").plan.training_dir
    script = "benchmarks/toy/pytorch/run_pretraining.py"
    assert (copy / script).read_text() == (whole.tree.training / script).read_text()
    assert (copy / CONFIG).read_text() == "train_batch_size = 64\n\ntrain_batch_size = 16\n"


def test_the_file_that_a_configuration_is_a_link_to_is_not_written(
    archive: Path, whole: WholeRun, tmp_path: Path
) -> None:
    config = whole.tree.training / CONFIG
    other = config.with_name("shared.py")
    config.rename(other)
    config.symlink_to(other)  # by its whole name: in a copy, too, it would lead into the checkout
    other.write_text("train_batch_size = 64\n")
    try:
        copy = again(archive, whole, tmp_path / "work").plan.training_dir
        assert (copy / CONFIG).read_text() == "train_batch_size = 64\n\ntrain_batch_size = 16\n"
        assert other.read_text() == "train_batch_size = 64\n"
    finally:
        config.unlink()
        other.unlink()


def test_what_this_checkout_does_not_have_is_refused(
    archive: Path, whole: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    (whole.tree.training / CONFIG).unlink()
    before = results(whole)
    assert whole.main("reproduce", str(archive)) == 4
    error = capsys.readouterr().err
    assert "config_X1x1x1" in error and error.startswith("run/plan.json"), error
    assert results(whole) == before


def _hostile_name(plan: Any) -> None:
    plan["cases"][0]["settings"]["name"] = "x = open('/tmp/owned', 'w')\nTOY"


def _hostile_place(plan: Any) -> None:
    plan["cases"][0]["files"] |= {"config_dir": "../../config", "config_file": "test_conf.py"}
    plan["cases"][0]["parameters"] |= {"train_batch_size": 99, "import os; os": 1}


def _endless_parameter(plan: Any) -> None:
    plan["cases"][0]["parameters"] |= {"train_batch_size": "-" * 2**20}


def test_a_hostile_plan_writes_and_executes_nothing(archive: Path, whole: WholeRun, tmp_path: Path) -> None:
    tree, work = whole.tree, tmp_path / "work"
    (work / "archive").mkdir(parents=True)
    about = unpack(archive, work / "archive")
    path = work / "archive" / "run" / "plan.json"
    written = path.read_text()
    for change in (_hostile_name, _hostile_place, _endless_parameter):
        path.write_text(written)
        change_json(path, change)
        log_path, own = whole.folder / "result", work / change.__name__
        try:
            made = reproduction(work / "archive", about, tree.config, tree.training, log_path, own)
        except FlagPerfError as error:
            assert "cannot be the name of a case" in str(error) or "as no parameter has" in str(error)
            continue
        (case,) = made.plan.cases
        assert case.parameters["train_batch_size"] == 99
        assert (made.plan.training_dir / CONFIG).read_text().endswith("\ntrain_batch_size = 99\n")
        assert "import os" not in (made.plan.training_dir / CONFIG).read_text()


def test_an_archive_does_not_choose_what_lies_over_the_code(
    archive: Path, whole: WholeRun, tmp_path: Path
) -> None:
    """Its data is mounted in the container where it lies on the hosts, and not within the tree."""
    tree, log_path, work = whole.tree, whole.folder / "result", tmp_path / "work"
    (work / "archive").mkdir(parents=True)
    about = unpack(archive, work / "archive")
    code = "/srv/flagperf/benchmarks/toy/pytorch"

    def planned(name: str, host: str, settings: str) -> CaseSettings:
        places = {"name": name, "data_dir_host": host, "data_dir_container": code}
        change_json(
            work / "archive" / "run" / "plan.json", lambda plan: plan["cases"][0]["settings"].update(places)
        )
        whole.configure(settings)
        made = reproduction(work / "archive", about, tree.config, tree.training, log_path, work / name)
        return made.plan.cases[0].settings

    paths = (
        "FLAGPERF_PATH = None\nFLAGPERF_PATH_HOST = '/srv/host'\nFLAGPERF_PATH_CONTAINER = '/srv/flagperf'\n"
    )
    inside = f"CASES = {{}}\n{paths}"
    for name in ("again", CASE):
        assert planned(name, "/srv/data", inside).data_dir_container == "/srv/data"
    containers = f"{inside}RUNTIME = 'docker'\n"
    for host in (code, "/srv/flagperf", f"/srv/data/../..{code}", "/srv"):
        with pytest.raises(FlagPerfError, match="would lie over the code in the container"):
            planned("again", host, containers)
    own = {"model": "toy", "data_dir_host": "/srv/own", "data_dir_container": "/srv/inside"}
    today = planned("again", "/srv/data", f"{containers}CASES = ['again']\nagain = {own!r}\n")
    assert (today.data_dir_host, today.data_dir_container) == ("/srv/own", "/srv/inside")
