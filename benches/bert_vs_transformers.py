"""BERT training throughput against Hugging Face transformers, in one run on one machine.

    python benches/bert_vs_transformers.py

The rules stand below; the peer that counts is the fastest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import plain_bert
from comparison import data_folder, read_options


def main() -> int:
    by_precision, chosen = read_options(f"{__doc__}\n{plain_bert.SIZES_TEXT}")
    figures: dict[str, dict[str, object]] = {}
    with data_folder(chosen.data) as folder:
        for options in by_precision:
            compared = plain_bert.comparisons(folder, options)
            figures[options.precision] = {each.size: each.result(options).as_json() for each in compared}
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
