"""Small text and the command line of the preparation, for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from benchmarks.bert.prepare.command import main
from benchmarks.bert.prepare.instances import Instance

WORDS = ("light", "dark", "water", "earth", "heaven", "day", "night", "beast", "fowl", "fish", "tree", "king")
SMALL = (
    *("--seq-length", "32", "--max-predictions", "5", "--dup", "2"),
    *("--shards", "3", "--eval-samples", "20", "--eval-every", "4"),
)


HAND_MADE = [
    [[10, 11, 12], [13, 14], [15, 16, 17, 18]],
    [[20, 21], [22, 23, 24]],
    [[30, 31, 32, 33, 34]],
]
# What google-research/bert's create_pretraining_data.py makes of HAND_MADE: seed 12345, sequence 12,
# 2 predictions, duplication 2. ids, length of segment 0, masked positions, their labels, random next.
REFERENCE = [
    Instance([2, 20, 4, 3, 30, 31, 4, 33, 34, 3], 4, [2, 6], [21, 32], True),
    Instance([2, 4, 21, 3, 4, 31, 32, 33, 34, 3], 4, [1, 4], [20, 30], True),
    Instance([2, 30, 4, 32, 33, 34, 3, 4, 15, 16, 17, 3], 7, [2, 7], [31, 14], True),
    Instance([2, 30, 50, 32, 33, 34, 3, 15, 16, 17, 4, 3], 7, [2, 10], [31, 18], True),
    Instance([2, 10, 11, 4, 3, 13, 14, 15, 23, 17, 18, 3], 5, [3, 8], [12, 16], False),
    Instance([2, 10, 11, 12, 3, 13, 4, 15, 16, 4, 18, 3], 5, [6, 9], [14, 17], False),
    Instance([2, 22, 23, 24, 3, 12, 13, 4, 15, 16, 17, 3], 5, [7, 8], [14, 15], True),
    Instance([2, 22, 23, 4, 3, 30, 31, 32, 4, 34, 3], 5, [3, 8], [24, 33], True),
]


def sentence(document: int, number: int) -> str:
    """Words of a document's own, which tell where a token came from, among common ones."""
    common = [WORDS[(document * 7 + number * 3 + i) % len(WORDS)] for i in range(4 + number % 5)]
    return f"{' '.join(common)} w{document}x."


def write_text(path: Path, documents: range, sentences: int = 9) -> Path:
    """Documents of 1 to `sentences` sentences, a blank line after each."""
    blocks = [
        "\n".join(sentence(number, i) for i in range(1 + (number * 5) % sentences)) for number in documents
    ]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


def whole_words(documents: range) -> list[str]:
    """A vocabulary in which every word of `write_text` is one token."""
    own = [f"w{number}x" for number in documents]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS, *own]


def prepare(text: Path | Sequence[Path], out: Path, *more: str, workers: int = 1) -> int:
    """Run the command in this process with the small parameters; the later of two options counts."""
    texts = [text] if isinstance(text, Path) else text
    arguments = ["--text", *map(str, texts), "--out", str(out), "--workers", str(workers), *SMALL, *more]
    return main(arguments)


def load(*files: Path) -> dict[str, NDArray[Any]]:
    """The arrays of several HDF5 files, one after the other."""
    columns: dict[str, list[NDArray[Any]]] = {}
    for path in files:
        with h5py.File(path, "r") as file:
            for key in file:
                columns.setdefault(key, []).append(file[key][:])
    return {key: np.concatenate(arrays) for key, arrays in columns.items()}


def training_files(out: Path) -> list[Path]:
    return sorted((out / "2048_shards_uncompressed").iterdir())


def eval_file(out: Path) -> Path:
    return out / "eval_set_uncompressed" / "part_eval_10k.hdf5"
