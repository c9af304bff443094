"""Run a case of this tree as users do: by the controller, on this machine, without containers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import verbs
from run_benchmarks.verbs import options
from tests.ports import free_port
from utils.events import Event, read_events


def run_by_the_controller(
    python: str, case: str, data: Path, folder: Path, training: Path = options.TRAINING_DIR
) -> tuple[int, dict[str, Any], list[Event]]:
    """One round of `case`, a key of CASES, below `folder`: exit code, result, rank 0's events."""
    config = folder / "config"
    config.mkdir()
    (config / "cluster_conf.py").write_text(f'HOSTS = ["localhost"]\nMASTER_PORT = {free_port()}\n')
    (config / "test_conf.py").write_text(
        f'VENDOR = "cpu"\nCASES = {{"{case}": "{data}"}}\nRUNTIME = "process"\n'
        f'PROCESS_PYTHON = "{python}"\nFLAGPERF_PATH = "{folder}/fp"\n'
        f'FLAGPERF_LOG_PATH = "{folder}/result"\nMIN_FREE_DISK_GIB = 0\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "TRAINING_DIR", training)
        code = verbs.main(["--config", str(config)])
    (round_dir,) = (folder / "result").glob(f"run*/{case.partition(':')[0]}*/round1")
    result = json.loads((round_dir / "result.json").read_text())
    return code, result, read_events(round_dir / "localhost_noderank0" / "rank0.out.log")
