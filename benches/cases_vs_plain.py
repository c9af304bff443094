"""Training throughput of the standard cases against what a user would else pick, in one run.

    python benches/cases_vs_plain.py [--cases bert glm cpm] [--precision bf16 fp32] [--sizes demo 4x256]

BERT and CPM stand against Hugging Face transformers; GLM, which it does not have, against the same model written
the way transformers writes one. The rules stand below; the peer that counts is the fastest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the weights' names for GPT-2 are the tests'
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import plain_bert
import plain_cpm
import plain_glm
from comparison import data_folder, read_options

CASES = {"bert": plain_bert, "glm": plain_glm, "cpm": plain_cpm}


def main() -> int:
    sizes = "\n".join(case.SIZES_TEXT for case in CASES.values())
    by_precision, chosen = read_options(
        f"{__doc__}\n{sizes}", cases={"nargs": "+", "choices": CASES, "default": list(CASES)}
    )
    figures: dict[str, dict[str, object]] = {}
    with data_folder(chosen.data) as folder:
        for name in chosen.cases:
            for options in by_precision:
                compared = CASES[name].comparisons(folder, options)
                measured = {each.size: each.result(options).as_json() for each in compared}
                figures[f"{name} {options.precision}"] = measured
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
