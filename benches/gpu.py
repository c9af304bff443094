"""What one NVIDIA GPU does with FlagPerf's cases: no network, no container engine, no data, nine minutes.

    python3 benches/gpu.py --markdown gpu.md       on the machine with the GPU
    python3 benches/gpu.py --device cpu --small    all of its path in about a minute, without one

Rounds of the product itself (run.py, the process runtime on localhost): `gemm` by dtype, BERT-large, GLM-large and
CPM-1-medium with their shipped configurations, a fixed number of steps from random weights on data made in place.
Then one step of each against the CPU. A part that fails or is late is reported and takes no other with it.

It prints tables and, as its last line, one JSON object; it exits with 1 if a part has no result or its numbers
are outside their tolerance.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

# For what is missing this says how to get it; everything else is imported after that.
NEEDED = {
    "the controller": ("ahocorasick_rs", "jinja2", "loguru", "msgspec", "pydantic", "rich"),
    "the ranks": ("torch", "numpy", "h5py", "safetensors", "psutil"),
}
SHARES = {"gemm": 4.5, "bert": 4.0, "glm": 3.0, "cpm": 3.0, "numerics": 1.5}  # of the time, relative
SPARE_S = 10.0  # of the whole, for making data and writing tables


def missing_modules(device: str) -> list[str]:
    """A line for each thing that this Python lacks; `pynvml` only costs power and energy, and is said by a line."""
    lines = []
    for of, names in NEEDED.items():
        absent = [name for name in names if importlib.util.find_spec(name) is None]
        if absent:
            lines.append(f"{sys.executable} lacks {', '.join(absent)}, which {of} need")
    if device == "cuda" and importlib.util.find_spec("pynvml") is None:
        print("pynvml (the pip package nvidia-ml-py) is not installed: no power, no energy", flush=True)
    return lines


def read_options(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="small models and matrices, few steps")
    parser.add_argument("--minutes", type=float, default=9.0, help="for everything together")
    parser.add_argument("--parts", nargs="+", choices=SHARES, default=list(SHARES), help="only these")
    parser.add_argument("--cases", nargs="+", choices=("bert", "glm", "cpm"), default=["bert", "glm", "cpm"])
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="CASE.NAME=VALUE", dest="changes",
        help="further settings of a configuration, e.g. bert.torch_compile=True",
    )  # fmt: skip
    parser.add_argument(
        "--profile", action="store_true", help="in place of comparing numbers: time by kernel"
    )
    parser.add_argument(
        "--markdown", type=Path, help="write the tables here, as a section of docs/measured.md"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work here, and leave results and logs")
    options = parser.parse_args(words)
    if options.device == "cpu" and not options.small:
        parser.error("--device cpu needs --small: the full models would take hours")
    options.changes = changes_by_case(options.changes, parser)
    return options


def changes_by_case(words: list[str], parser: argparse.ArgumentParser) -> dict[str, dict[str, Any]]:
    """`case.name=value` of the command line, by case."""
    changes: dict[str, dict[str, Any]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        case, dot, setting = name.partition(".")
        if not (equals and dot and case in SHARES and setting):
            parser.error(f"--set {word}: write CASE.NAME=VALUE")
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text
        changes.setdefault(case, {})[setting] = value
    return changes


class Budget:
    """Divides the time: a part gets its share of what is left, so that what one saves goes to the next."""

    def __init__(self, seconds: float, shares: Mapping[str, float]) -> None:
        self._end = time.monotonic() + seconds
        self._shares = dict(shares)

    def take(self, part: str) -> float:
        """Seconds for `part`, which is begun now."""
        left = max(self._end - time.monotonic(), 0.0)
        share = self._shares[part] / sum(self._shares.values())
        del self._shares[part]
        return left * share


def main(words: list[str] | None = None) -> int:
    options = read_options(words)
    missing = missing_modules(options.device)
    if missing:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        print(
            *missing,
            "    -> where there is a network: "
            f"pip download --only-binary=:all: --python-version {version} -d wheels NAMES",
            "    -> here: python3 -m pip install --no-index --find-links wheels --target site NAMES, "
            "then PYTHONPATH=site",
            sep="\n",
        )
        return 2
    from gpu_run import GpuRun  # imports what was looked for above

    begin = time.monotonic()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="flagperf-gpu-", dir="/var/tmp"))
    try:
        run = GpuRun(options, folder.resolve())
        plan: dict[str, Callable[[float], None]] = run.parts()
        shares = {part: SHARES[part.partition(" ")[0]] for part in plan}
        budget = Budget(options.minutes * 60 - SPARE_S, shares)
        for part, work in plan.items():
            limit_s = budget.take(part)
            run.do(part, work, limit_s)
        run.report(time.monotonic() - begin)
        return int(run.exit_code)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
