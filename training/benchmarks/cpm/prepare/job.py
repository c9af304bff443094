"""One preparation: what is read, what is made, and where its intermediate files stand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.preparation.partial import PartialDataset
from benchmarks.common.preparation.recipe import fingerprints
from benchmarks.cpm.chunks import EVALUATION_FOLDER, TRAINING_FOLDER
from benchmarks.cpm.prepare import TOOL, vocabulary
from benchmarks.cpm.prepare.parameters import Parameters

PART_BYTES = 32 << 20
VOCABULARY_FILE = "chinese_vocab.model"


@dataclass(frozen=True)
class Part:
    """A share of the text: of `train` or `valid`, and its number there."""

    folder: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.folder}_{self.number:05d}"


@dataclass(frozen=True)
class Inputs:
    """What is read. `vocab` None: train one. `valid` empty: hold documents out."""

    train: tuple[Path, ...]
    valid: tuple[Path, ...]
    vocab: Path | None
    parameters: Parameters

    @property
    def texts(self) -> tuple[Path, ...]:
        return self.train + self.valid

    def recipe(self, workers: int) -> dict[str, Any]:
        """What decides the data set: equal recipes make equal files. Reads every input once."""
        recipe = {"tool": TOOL, **asdict(self.parameters), "train": fingerprints(self.train, workers)}
        if self.vocab is not None:
            vocabulary.read(self.vocab)  # a bad one is refused before anything is made
            recipe["vocab"] = fingerprints([self.vocab], workers)
            del recipe["vocab_size"]
        if self.valid:
            recipe["valid"] = fingerprints(self.valid, workers)
            del recipe["eval_every"]
        return recipe

    def parts(self, folder: str) -> list[Part]:
        """All parts of a set. Held-out documents are one part for each training file."""
        if folder == EVALUATION_FOLDER and not self.valid:
            return [Part(folder, number) for number in range(len(self.train))]
        files = self.train if folder == TRAINING_FOLDER else self.valid
        return [Part(folder, number) for number in range(sum(map(self._part_count, files)))]

    def parts_of(self, text: int) -> list[Part]:
        """The parts to which the documents of text file number `text` are dealt."""
        folder, first, files = TRAINING_FOLDER, 0, self.train
        if text >= len(self.train):
            folder, first, files = EVALUATION_FOLDER, len(self.train), self.valid
        before = sum(map(self._part_count, files[: text - first]))
        return [Part(folder, before + number) for number in range(self._part_count(self.texts[text]))]

    def _part_count(self, text: Path) -> int:
        return self.parameters.parts_per_file or max(1, -(-text.stat().st_size // PART_BYTES))


@dataclass(frozen=True)
class Job:
    """Make the data set of `inputs` in `partial`."""

    inputs: Inputs
    partial: PartialDataset

    @property
    def vocab_file(self) -> Path:
        return self.partial.data / VOCABULARY_FILE

    def part_text(self, part: Part) -> Path:
        return self.partial.work / "text" / f"{part.name}.txt"

    def chunk_file(self, part: Part) -> Path:
        count = len(self.inputs.parts(part.folder))
        return self.partial.data / part.folder / f"chunks_{part.number:05d}_of_{count:05d}.npy"
