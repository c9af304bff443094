"""One preparation: what is read, what is made, and where its files stand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import wordpiece
from benchmarks.glm.prepare import TOOL
from benchmarks.glm.prepare.demo import DEMO_TEXTS
from benchmarks.glm.prepare.parameters import Parameters
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER, shard_name
from utils.preparation.recipe import fingerprints
from utils.preparation.workshop import Workshop

SOURCES = {TRAIN_FOLDER: "train.jsonl", EVAL_FOLDER: "val.jsonl"}


@dataclass(frozen=True)
class Part:
    """A share of the passages of `train` or `val`: every `parts`-th, from `number` on."""

    folder: str
    number: int
    parts: int

    @property
    def name(self) -> str:
        return f"{self.folder}_{self.number:05d}"


@dataclass(frozen=True)
class Job:
    """Make a data set in `out`. `record`: ReCoRD's folder or zip; None: the demo. `vocab` None: train one."""

    record: Path | None
    vocab: Path | None
    out: Path
    parameters: Parameters

    @property
    def workshop(self) -> Workshop:
        return Workshop(self.out)

    @property
    def vocab_file(self) -> Path:
        return self.out / "vocab.txt"

    @property
    def demo_record(self) -> Path:
        """Where the demo's questions are written in ReCoRD's form."""
        return self.workshop.folder / "record"

    @property
    def source(self) -> Path:
        """The folder or archive that holds train.jsonl and val.jsonl."""
        return self.demo_record if self.record is None else self.record

    def parts(self, folder: str) -> list[Part]:
        """All parts of a set."""
        count = self.parameters.parts if folder == TRAIN_FOLDER else max(1, self.parameters.parts // 4)
        return [Part(folder, number, count) for number in range(count)]

    @property
    def all_parts(self) -> list[Part]:
        return [part for folder in SOURCES for part in self.parts(folder)]

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Every file of the data set but its manifest."""
        return (self.vocab_file, *map(self.question_file, self.all_parts))

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (*self._inputs(), *([self.vocab] if self.vocab else []))

    def question_file(self, part: Part) -> Path:
        return self.out / shard_name(part.folder, part.number, part.parts)

    def recipe(self, workers: int) -> dict[str, Any]:
        """What decides the data set: equal recipes make equal files. Reads every input once."""
        recipe = {"tool": TOOL, **asdict(self.parameters), "record": fingerprints(self._inputs(), workers)}
        if self.vocab is not None:
            wordpiece.read(self.vocab)  # a bad one is refused before anything is made
            recipe["vocab"] = fingerprints([self.vocab], workers)
            del recipe["vocab_size"]
        return recipe

    def _inputs(self) -> list[Path]:
        if self.record is None:
            return list(DEMO_TEXTS)
        return [self.record / name for name in SOURCES.values()] if self.record.is_dir() else [self.record]
