"""One preparation: what is read, what is made, and where its files stand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import wordpiece
from benchmarks.common.preparation.partial import PartialDataset
from benchmarks.common.preparation.recipe import fingerprints
from benchmarks.glm.prepare import TOOL
from benchmarks.glm.prepare.demo import DEMO_TEXTS
from benchmarks.glm.prepare.parameters import Parameters
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER, shard_name

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
class Inputs:
    """What is read. `record`: ReCoRD's folder or zip; None: the demo. `vocab` None: train one."""

    record: Path | None
    vocab: Path | None
    parameters: Parameters

    def recipe(self, workers: int) -> dict[str, Any]:
        """What decides the data set: equal recipes make equal files. Reads every input once."""
        recipe = {"tool": TOOL, **asdict(self.parameters), "record": fingerprints(self._files(), workers)}
        if self.vocab is not None:
            wordpiece.read(self.vocab)  # a bad one is refused before anything is made
            recipe["vocab"] = fingerprints([self.vocab], workers)
            del recipe["vocab_size"]
        return recipe

    def parts(self, folder: str) -> list[Part]:
        """All parts of a set."""
        count = self.parameters.parts if folder == TRAIN_FOLDER else max(1, self.parameters.parts // 4)
        return [Part(folder, number, count) for number in range(count)]

    def _files(self) -> list[Path]:
        if self.record is None:
            return list(DEMO_TEXTS)
        return [self.record / name for name in SOURCES.values()] if self.record.is_dir() else [self.record]


@dataclass(frozen=True)
class Job:
    """Make the data set of `inputs` in `partial`."""

    inputs: Inputs
    partial: PartialDataset

    @property
    def vocab_file(self) -> Path:
        return self.partial.data / "vocab.txt"

    @property
    def demo_record(self) -> Path:
        """Where the demo's questions are written in ReCoRD's form."""
        return self.partial.work / "record"

    @property
    def source(self) -> Path:
        """The folder or archive that holds train.jsonl and val.jsonl."""
        return self.demo_record if self.inputs.record is None else self.inputs.record

    def question_file(self, part: Part) -> Path:
        return self.partial.data / shard_name(part.folder, part.number, part.parts)
