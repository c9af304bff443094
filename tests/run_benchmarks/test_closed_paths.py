"""What this user may not read is said in a sentence, and hides nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run_benchmarks.plan.tree import make_tree
from tests.run_benchmarks.whole_run import REAL_TRAINING
from tests.run_benchmarks.written_run import write_run

CAPABILITIES = "-dac_override,-dac_read_search"
# root may read everything, but for these
MORTAL = () if os.geteuid() else ("setpriv", f"--bounding-set={CAPABILITIES}", f"--inh-caps={CAPABILITIES}")
NEWEST = "run20261122083027"


def closed(folder: Path) -> Path:
    """A folder that nobody may look into, with one in it."""
    (folder / "inner").mkdir(parents=True)
    folder.chmod(0)
    return folder


def run_py(*words: object) -> subprocess.CompletedProcess[str]:
    command = (*MORTAL, sys.executable, REAL_TRAINING / "run_benchmarks" / "run.py", *words)
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("verb", ["show", "status"])
def test_another_users_folder_among_the_results_hides_none_of_ours(verb: str, tmp_path: Path) -> None:
    log_path = tmp_path / "result"
    write_run(log_path / NEWEST)
    for name in ("lost+found", "run20271122083027"):
        closed(log_path / name)
    done = run_py(verb, "--log-path", log_path)
    assert done.returncode == 0, done.stderr
    assert NEWEST in done.stdout


@pytest.mark.parametrize(
    "words", ["show", "status", "stop", "resume", "report", "compare", "import", "vendor check"]
)
def test_a_closed_folder_is_named(words: str, tmp_path: Path) -> None:
    folder = closed(tmp_path / "closed") / "inner"
    done = run_py(*words.split(), folder)
    assert done.returncode == 2, done.stderr
    assert str(folder) in done.stderr
    assert ": cannot be used: Permission denied\n    -> " in done.stderr


def test_a_closed_folder_of_the_configuration(tmp_path: Path) -> None:
    folder = closed(tmp_path / "closed") / "inner"
    done = run_py("plan", "--config", folder)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert f"{folder}: cannot be used: Permission denied" in done.stderr


@pytest.mark.parametrize("verb", ["plan", "list", "status"])
@pytest.mark.parametrize("path", ["closed/inner", "~nosuch/x"])
def test_results_that_cannot_be_anywhere(verb: str, path: str, tmp_path: Path) -> None:
    folder = tmp_path / path if closed(tmp_path / "closed") and path[0] != "~" else path
    done = run_py(verb, "--log-path", folder)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert str(folder) in done.stderr


@pytest.mark.parametrize(
    "file",
    [
        "benchmarks/toy/pytorch/run_pretraining.py",
        "acme/docker_image/pytorch/Dockerfile",
        "acme/toy-pytorch/config/requirements.txt",
        "acme/toy-pytorch/config/environment_variables.sh",
    ],
)
def test_a_closed_file_of_a_case_is_named(file: str, tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    path = tree.write(file, "")
    path.chmod(0)
    program = f"""if True:
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(REAL_TRAINING)!r})
        from run_benchmarks import verbs
        verbs.options.TRAINING_DIR = Path({str(tree.training)!r})
        sys.exit(verbs.main(["plan", "--config", {str(tree.config)!r}]))
    """
    done = subprocess.run(
        [*MORTAL, sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    # whole, or below the checkout
    assert str(path) in done.stderr.replace(f"{tree.training}: ", f"{tree.training}/")
