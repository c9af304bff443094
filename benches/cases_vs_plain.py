"""Training throughput of the standard cases against plain implementations of the same models, in one run.

    python benches/cases_vs_plain.py [--cases bert glm cpm]

BERT and CPM stand against Hugging Face transformers, GLM, which it does not have, against a plain form of the
paper's definition. See comparison.py for the rules.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the plain form of GLM is the tests'
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import plain_bert
import plain_cpm
import plain_glm
from comparison import read_options

CASES = {"bert": plain_bert, "glm": plain_glm, "cpm": plain_cpm}
REPORTED = ("demo", "4x256")


def main() -> int:
    sizes = "\n".join(case.SIZES_TEXT for case in CASES.values())
    options, found = read_options(
        f"{__doc__}\n{sizes}", cases={"nargs": "+", "choices": CASES, "default": list(CASES)}
    )
    ratios: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in found.cases:
            compared = CASES[name].comparisons(Path(folder), options)
            measured = {comparison.size: comparison.ratio(options) for comparison in compared}
            ratios[name] = {size: round(measured[size], 3) for size in REPORTED}
    print(json.dumps(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
