"""One preparation: what is read, what is made, and where its intermediate files stand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.bert import shards
from benchmarks.bert.prepare import TOOL
from benchmarks.bert.prepare.parameters import Parameters
from benchmarks.common import wordpiece
from benchmarks.common.preparation.partial import PartialDataset
from benchmarks.common.preparation.recipe import fingerprints

PART_BYTES = 64 << 20


@dataclass(frozen=True)
class Inputs:
    """What is read. `vocab` None: train one. `eval_texts` empty: hold documents out."""

    texts: tuple[Path, ...]
    eval_texts: tuple[Path, ...]
    vocab: Path | None
    parameters: Parameters

    def recipe(self, workers: int) -> dict[str, Any]:
        """What decides the data set: equal recipes make equal files. Reads every input once."""
        recipe = {"tool": TOOL, **asdict(self.parameters), "text": fingerprints(self.texts, workers)}
        if self.vocab is not None:
            wordpiece.read(self.vocab)  # a bad one is refused before anything is made
            recipe["vocab"] = fingerprints([self.vocab], workers)
            del recipe["vocab_size"]
        if self.eval_texts:
            recipe["eval_text"] = fingerprints(self.eval_texts, workers)
            del recipe["eval_every"]
        return recipe

    def parts_of(self, file: int) -> list[str]:
        """Names of the parts of text file number `file`."""
        size = self.texts[file].stat().st_size
        count = self.parameters.parts_per_file or max(1, -(-size // PART_BYTES))
        return [f"f{file:05d}_p{part:04d}" for part in range(count)]

    @property
    def parts(self) -> list[str]:
        return [part for file in range(len(self.texts)) for part in self.parts_of(file)]


@dataclass(frozen=True)
class Job:
    """Make the data set of `inputs` in `partial`."""

    inputs: Inputs
    partial: PartialDataset

    @property
    def parameters(self) -> Parameters:
        return self.inputs.parameters

    @property
    def vocab_file(self) -> Path:
        return self.partial.data / "vocab.txt"

    @property
    def eval_file(self) -> Path:
        return self.partial.data / shards.EVALUATION_FILE

    def shard_file(self, index: int) -> Path:
        return self.partial.data / shards.shard_name(index, self.parameters.shards)

    def part_text(self, part: str) -> Path:
        return self.partial.work / "text" / f"{part}.txt"

    def held_out_text(self, file: int) -> Path:
        return self.partial.work / "text" / f"f{file:05d}_eval.txt"

    def part_samples(self, part: str) -> Path:
        return self.partial.work / "samples" / f"{part}.hdf5"
