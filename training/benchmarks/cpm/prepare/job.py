"""One preparation: what is read, what is made, and where its intermediate files stand."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cpm.chunks import EVALUATION_FOLDER, TRAINING_FOLDER
from benchmarks.cpm.prepare import TOOL, vocabulary
from benchmarks.cpm.prepare.parameters import Parameters
from utils.preparation.recipe import fingerprints
from utils.preparation.workshop import Workshop

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
class Job:
    """Make a data set in `out`. `vocab` None: train one. `valid` empty: hold documents out."""

    train: tuple[Path, ...]
    valid: tuple[Path, ...]
    vocab: Path | None
    out: Path
    parameters: Parameters

    @property
    def workshop(self) -> Workshop:
        return Workshop(self.out)

    @property
    def vocab_file(self) -> Path:
        return self.out / VOCABULARY_FILE

    @property
    def texts(self) -> tuple[Path, ...]:
        return self.train + self.valid

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Every file of the data set but its manifest."""
        parts = self.parts(TRAINING_FOLDER) + self.parts(EVALUATION_FOLDER)
        return (self.vocab_file, *map(self.chunk_file, parts))

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (*self.texts, *([self.vocab] if self.vocab else []))

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

    def part_text(self, part: Part) -> Path:
        return self.workshop.folder / "text" / f"{part.name}.txt"

    def chunk_file(self, part: Part) -> Path:
        return self.out / part.folder / f"chunks_{part.number:05d}_of_{len(self.parts(part.folder)):05d}.npy"

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

    def _part_count(self, text: Path) -> int:
        return self.parameters.parts_per_file or max(1, -(-text.stat().st_size // PART_BYTES))
