"""The cases whose preparations are tested alike: what each reads, at a small size, and how it is spoilt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bert.prepare.command import BertPreparation
from benchmarks.common.preparation.command import Preparation
from benchmarks.cpm.prepare.command import CpmPreparation
from benchmarks.glm.prepare.command import GlmPreparation
from tests.benchmarks.bert import prepare_data as bert
from tests.benchmarks.cpm import prepare_data as cpm
from tests.benchmarks.glm import prepare_data as glm


@dataclass(frozen=True)
class PreparedCase:
    """A case's preparation on small input.

    Attributes:
        preparation: whose command is run.
        write_input: writes good input at a path, more of it or less, and returns what `source` is given.
        spoil: makes good input bad, and returns what of it is named with why.
        small: parameters that make it quick; several training files.
        training: their folder in the data set.
        vocabulary: its file in the data set.
        kills: steps, and how many training files are finished when that step is.
        other: parameters that make another data set, and how the difference is named.
    """

    preparation: Preparation
    write_input: Callable[[Path, int], Path]
    spoil: Callable[[Path], str]
    small: tuple[str, ...]
    training: str
    vocabulary: str
    kills: dict[str, int]
    other: tuple[tuple[str, str], str]

    @property
    def name(self) -> str:
        return self.preparation.model

    def command(self, given: Path, out: Path, *more: str, workers: int = 1) -> list[str]:
        return [
            *(f"--{self.preparation.source}", str(given), "--out", str(out)),
            *("--workers", str(workers), *self.small, *more),
        ]

    def prepare(self, given: Path, out: Path, *more: str, workers: int = 1) -> int:
        """Run the command in this process; the later of two options counts."""
        return self.preparation.main(self.command(given, out, *more, workers=workers))


def contents(out: Path) -> dict[str, bytes]:
    """Every file below `out`, hidden ones included."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def _append(path: Path, content: bytes, where: str) -> str:
    with path.open("ab") as stream:
        stream.write(content)
    return f"{path}{where}"


CASES = [
    PreparedCase(
        BertPreparation(),
        write_input=lambda path, documents: bert.write_text(path, range(documents)),
        spoil=lambda path: _append(path, b"\ncaf\xe9\n", ", line"),
        small=(*bert.SMALL, "--vocab-size", "150", "--parts-per-file", "4", "--shards", "6"),
        training="2048_shards_uncompressed",
        vocabulary="vocab.txt",
        kills={"split_00000": 0, "vocabulary": 0, "part_f00000_p0002": 0, "shard_00003": 4},
        other=(("--seed", "7"), "seed is 12345 there, 7 asked"),
    ),
    PreparedCase(
        GlmPreparation(),
        write_input=lambda path, passages: glm.write_record(path, train=range(passages // 3)),
        spoil=lambda path: _append(path / "val.jsonl", b"{]\n", ", line 7: not JSON"),
        small=glm.SMALL,
        training="train",
        vocabulary="vocab.txt",
        kills={"vocabulary": 0, "questions_train_00002": 3, "questions_val_00000": 4},
        other=(("--seq-length", "60"), "seq_length is 64 there, 60 asked"),
    ),
    PreparedCase(
        CpmPreparation(),
        write_input=lambda path, documents: cpm.write_text(path, range(documents)),
        spoil=lambda path: _append(path, b"\xff\n", ", line"),
        small=(*cpm.SMALL, "--parts-per-file", "4"),
        training="train",
        vocabulary="chinese_vocab.model",
        kills={"split_00000": 0, "vocabulary": 0, "chunks_train_00002": 3},
        other=(("--seq-length", "12"), "seq_length is 10 there, 12 asked"),
    ),
]
