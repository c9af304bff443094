"""A `training/` folder with what belongs to the hosts, and what stays at home."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "benchmarks/toy/pytorch/case.py": "case\n",
    "acme/docker_image/pytorch/Dockerfile": "FROM scratch\n",
    "acme/docker_image/pytorch/.dockerignore": "*.md\n",
    "acme/docker_image/pytorch/pytorch_install.sh": "#!/bin/sh\n",
    "run_benchmarks/config/test_conf.py": "PASSWORD = 'kept at home'\n",
    "result/run1/log": "old\n",
    ".flagperf/runs/x": "work\n",
    "acme/.editor~": "hidden\n",
    "acme/__pycache__/vendor.cpython-311.pyc": "bytecode\n",
    "benchmarks/toy/result/readme": "a folder of this name lower down is part of the tree\n",
}


def make_training(root: Path) -> Path:
    """Write it below `root`, which is given back."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "acme/docker_image/pytorch/pytorch_install.sh").chmod(0o755)
    return root
