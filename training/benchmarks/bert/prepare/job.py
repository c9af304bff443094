"""One preparation: what is read, what is made, and where its intermediate files stand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import wordpiece
from benchmarks.bert.prepare import TOOL, shards
from benchmarks.bert.prepare.parameters import Parameters
from utils.preparation.recipe import fingerprints
from utils.preparation.workshop import Workshop

PART_BYTES = 64 << 20


@dataclass(frozen=True)
class Job:
    """Make a data set in `out`. `vocab` None: train one. `eval_texts` empty: hold documents out."""

    texts: tuple[Path, ...]
    eval_texts: tuple[Path, ...]
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
    def eval_file(self) -> Path:
        return self.out / shards.EVAL_FILE

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Every file of the data set but its manifest."""
        shard_files = map(self.shard_file, range(self.parameters.shards))
        return (self.vocab_file, self.eval_file, *shard_files)

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (*self.texts, *self.eval_texts, *([self.vocab] if self.vocab else []))

    def shard_file(self, index: int) -> Path:
        return self.out / shards.shard_name(index, self.parameters.shards)

    def part_text(self, part: str) -> Path:
        return self.workshop.folder / "text" / f"{part}.txt"

    def held_out_text(self, file: int) -> Path:
        return self.workshop.folder / "text" / f"f{file:05d}_eval.txt"

    def part_samples(self, part: str) -> Path:
        return self.workshop.folder / "samples" / f"{part}.hdf5"

    def parts_of(self, file: int) -> list[str]:
        """Names of the parts of text file number `file`."""
        size = self.texts[file].stat().st_size
        count = self.parameters.parts_per_file or max(1, -(-size // PART_BYTES))
        return [f"f{file:05d}_p{part:04d}" for part in range(count)]

    @property
    def parts(self) -> list[str]:
        return [part for file in range(len(self.texts)) for part in self.parts_of(file)]

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
