"""BERT training throughput against Hugging Face transformers, in one run on one machine.

    python benches/bert_vs_transformers.py

See comparison.py for the rules; `--help` for the sizes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import plain_bert
from comparison import read_options

REPORTED = ("demo", "4x256")


def main() -> int:
    options, _ = read_options(f"{__doc__}\n{plain_bert.SIZES_TEXT}")
    with tempfile.TemporaryDirectory() as folder:
        ratios = {c.size: c.ratio(options) for c in plain_bert.comparisons(Path(folder), options)}
    print(json.dumps({f"ratio_{name}": round(ratios[name], 3) for name in REPORTED}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
