"""Write scikit-learn's bundled digits as a data set: python3 -m benchmarks.digits.prepare --out DIR"""

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from utils import manifest
from utils.errors import FlagPerfError
from utils.preparation import command

HELD_OUT = 360  # the last fifth: in the order of scikit-learn other people wrote it


def make(out: Path) -> int:
    """Write two tables of bytes, a row an image: its 64 pixels (0 to 16), then its label."""
    digits = load_digits()
    table = np.column_stack([digits.data, digits.target]).astype("uint8")
    if out.is_dir() and any(out.iterdir()) and not (out / manifest.MANIFEST_NAME).is_file():
        raise FlagPerfError("holds other files", where=str(out), remedy="name a folder that is empty or new")
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "training.npy", table[:-HELD_OUT])
    np.save(out / "held_out.npy", table[-HELD_OUT:])
    files = manifest.describe(out, ["training.npy", "held_out.npy"])
    manifest.write(out, manifest.Manifest("digits", "1", {"held_out": HELD_OUT}, {}, files))
    return command.OK


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.digits.prepare")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out", type=Path, metavar="DIR", help="where the data set is made")
    action.add_argument("--verify", type=Path, metavar="DIR", help="name every file that is not as made")
    options = parser.parse_args()
    return command.guarded(lambda: make(options.out) if options.out else command.verify(options.verify, 1))


if __name__ == "__main__":
    sys.exit(main())
