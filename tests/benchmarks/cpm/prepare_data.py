"""Small text and the command line of the preparation, for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.cpm.prepare import vocabulary
from benchmarks.cpm.prepare.command import main

WORDS = (
    *("天地", "玄黄", "宇宙", "洪荒", "日月", "盈昃", "辰宿", "列张", "寒来", "暑往", "秋收", "冬藏"),
    *("闰余", "成岁", "律吕", "调阳", "云腾", "致雨", "露结", "为霜", "金生", "丽水", "玉出", "昆冈"),
)
SMALL = ("--seq-length", "10", "--vocab-size", "100", "--eval-every", "4")


def document(number: int) -> str:
    """Words of the Thousand Character Classic, of a varying length."""
    words = [WORDS[(number * 7 + place * 5) % len(WORDS)] for place in range(1 + number * 3 % 23)]
    return "、".join(words) + "。"


def write_text(path: Path, documents: range) -> Path:
    path.write_text("".join(f"{document(number)}\n" for number in documents), encoding="utf-8")
    return path


def prepare(train: Path | Sequence[Path], out: Path, *more: str, workers: int = 1) -> int:
    """Run the command in this process with the small parameters; the later of two options counts."""
    texts = [train] if isinstance(train, Path) else train
    return main(["--train", *map(str, texts), "--out", str(out), "--workers", str(workers), *SMALL, *more])


def load(folder: Path) -> Array:
    """The chunks of a set, file after file."""
    return np.concatenate([np.load(path) for path in sorted(folder.iterdir())])


def tokens_of(chunks: Array) -> list[list[int]]:
    """The tokens of each chunk without padding."""
    return [row[row >= 0].tolist() for row in chunks]


def small_vocabulary() -> vocabulary.Vocabulary:
    return vocabulary.train((f"{document(number)}\n" for number in range(60)), 100)
