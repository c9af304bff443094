"""What a checkout of public FlagPerf (github.com/FlagOpen/FlagPerf) holds: its cases, by vendor, and their images."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from run_benchmarks.frameworks import FRAMEWORKS, STARTED_ELSEWHERE
from run_benchmarks.plan.case_files import CASE_SCRIPT
from run_benchmarks.plan.vendors import NO_VENDORS
from run_benchmarks.stages.tree import LARGEST_TREE
from run_benchmarks.stages.tree_files import files_in, problems_in
from utils.errors import FlagPerfError
from utils.text_files import opened, shortened

BENCHMARKS, DRIVER = "benchmarks", "benchmarks/driver"
DEEPEST = 64  # folders that hold a file, one in the other
IMPORTS_WITHIN = 2**20  # bytes of a file
_CONFIG = re.compile(r"config_(.+)\.py")
_USES_DRIVER = re.compile(rb"^[ \t]*(from|import) driver\b", re.MULTILINE)


@dataclass(frozen=True)
class PublicCase:
    """A folder `<vendor>/<model>-<framework>` of a checkout."""

    vendor: str
    model: str
    framework: str

    @property
    def settings(self) -> str:
        """The vendor's folder of the case."""
        return f"{self.vendor}/{self.model}-{self.framework}"

    @property
    def code(self) -> str:
        """The case's own folder, which all vendors share."""
        return f"{BENCHMARKS}/{self.model}/{self.framework}"


class Checkout:
    """A checkout's `training/`, listed once; nothing of it is executed, and nothing in it changed."""

    def __init__(self, path: Path) -> None:
        """FlagPerfError: it is none."""
        self.path = _training_of(path)
        left_out = [self.path / "run_benchmarks", self.path / "result"]
        files = files_in(self.path, left_out)
        self.files = sorted(file.relative_to(self.path).as_posix() for file in files)
        deep = [file for file in self.files if file.count("/") > DEEPEST]
        if deep:  # each is reached from the root, folder by folder
            where, remedy = (
                shortened(f"{self.path}/{deep[0]}", 200),
                "take it away: public FlagPerf has none such",
            )
            raise FlagPerfError(f"lies deeper than {DEEPEST} folders", where=where, remedy=remedy)
        objections = {problem.name: problem.message for problem in problems_in(self.path, left_out)}
        self._objections = objections
        # asked for each case, while vendors share a case's code: without this a file is looked at once for each
        self._files_of = cache(partial(_names_in, self.files))
        self._objected_of = cache(partial(_names_in, sorted(objections)))
        self._size_of = cache(self._bytes_of)
        self._images_of = cache(self._image_names)
        self._imports_driver = cache(self._begins_with_driver)

    def below(self, *folders: str) -> list[str]:
        """The files in these folders, or of these names."""
        return [file for folder in dict.fromkeys(folders) for file in self._files_of(folder)]

    @cached_property
    def vendors(self) -> list[str]:
        """The folders with settings for cases, or images."""
        tops = {PurePosixPath(file).parts[0] for file in self.files if file.count("/") > 1}
        return sorted(tops - set(NO_VENDORS))

    def cases(self, vendor: str) -> list[PublicCase]:
        """All cases that a vendor has a folder for, also those that cannot run here."""
        parts = (PurePosixPath(file).parts for file in self.below(vendor))
        names = {part[1] for part in parts if len(part) > 2 and "-" in part[1]}
        return [self._case(vendor, name) for name in sorted(names)]

    def _case(self, vendor: str, name: str) -> PublicCase:
        """The framework is the longest that the name ends with: both parts may hold dashes."""
        frameworks = sorted((*FRAMEWORKS, *STARTED_ELSEWHERE), key=len, reverse=True)
        framework = next((each for each in frameworks if name.endswith(f"-{each}")), name.partition("-")[2])
        return PublicCase(vendor, name.removesuffix(f"-{framework}"), framework)

    def images(self, vendor: str, framework: str) -> list[str]:
        """The names of the vendor's image folders for a framework."""
        return [name for name in self._images_of(vendor) if name.partition("_")[0] == framework]

    def _image_names(self, vendor: str) -> list[str]:
        dockerfiles = (PurePosixPath(file) for file in self.below(f"{vendor}/docker_image"))
        names = {file.parts[2] for file in dockerfiles if len(file.parts) == 4 and file.name == "Dockerfile"}
        return sorted(names)

    def sizes(self, case: PublicCase) -> list[str]:
        """What the case's configurations are for, as their names say: `A100x1x8`."""
        names = (PurePosixPath(file) for file in self.below(f"{case.settings}/config"))
        matches = (_CONFIG.fullmatch(name.name) for name in names if len(name.parts) == 4)
        return [match[1] for match in matches if match and not match[1].endswith("common")]

    def uses_driver(self, case: PublicCase) -> bool:
        """Whether the case imports FlagPerf's driver package of its time, and brings none."""
        return self._imports_driver(case.code)

    def _begins_with_driver(self, code: str) -> bool:
        own = self.below(code)
        if any(file.startswith(f"{code}/driver/") for file in own):
            return False
        return any(_USES_DRIVER.search(self._begin_of(file)) for file in own if file.endswith(".py"))

    def _begin_of(self, file: str) -> bytes:
        with self.opened(file) as content:
            return content.read(IMPORTS_WITHIN)

    @contextmanager
    def opened(self, file: str) -> Iterator[BinaryIO]:
        """One of `files`, to be read; whoever owns the checkout may meanwhile have put a link to elsewhere there.

        Raises:
            FlagPerfError: it does not lie in the checkout any more, or cannot be read.
        """
        place = Path(os.path.realpath(self.path / file))  # a checkout has links to other files of its own
        if not place.is_relative_to(self.path):
            remedy = "see who changes the checkout, and import one that is yours alone"
            raise FlagPerfError("leads out of the checkout", where=str(self.path / file), remedy=remedy)
        # from the root: who owns the checkout may have put a link there since
        with opened(place, LARGEST_TREE, Path(place.anchor)) as content:
            yield content

    def size_of(self, *folders: str) -> int:
        """The bytes of the files in these folders, or of these names."""
        return sum(self._size_of(folder) for folder in dict.fromkeys(folders))

    def _bytes_of(self, folder: str) -> int:
        return sum((self.path / file).stat().st_size for file in self._files_of(folder))

    def objection(self, *folders: str) -> str:
        """What forbids to bring these folders, or files of these names: itself, or one that holds them."""
        shown = [os.fsencode(folder).decode(errors="backslashreplace") for folder in folders]
        above = [parent.as_posix() for name in shown for parent in PurePosixPath(name).parents]
        inside = (self._objected_of(name) for name in shown)
        bad = next((name for name in chain(above, *inside) if name in self._objections), "")
        return f"{bad} {self._objections[bad]}" if bad else ""

    def why_not(self, case: PublicCase) -> str:
        """Why the case cannot run here; empty where nothing is in its way."""
        return next(filter(None, self._obstacles(case)), "")

    def _obstacles(self, case: PublicCase) -> Iterator[str]:
        yield STARTED_ELSEWHERE.get(case.framework, "")
        yield "" if case.framework in FRAMEWORKS else f"{case.framework} is no framework that is started here"
        yield "" if self._files_of(case.code) else f"the checkout has no {case.code}"
        has_script = self.below(f"{case.code}/{CASE_SCRIPT}")
        yield "" if has_script else f"{case.code} has no {CASE_SCRIPT}"
        yield "" if self.sizes(case) else "the vendor has no configuration for it"
        readme = f"{BENCHMARKS}/{case.model}/README.md"
        size = self.size_of(case.code, case.settings, readme, DRIVER)
        yield f"{size >> 20} MiB, more than goes to hosts" if size > LARGEST_TREE else ""
        lacks = self.uses_driver(case) and not self.below(DRIVER)
        yield f"it imports `driver`, and the checkout has no {DRIVER}" if lacks else ""
        driver = [DRIVER] if self.uses_driver(case) else []
        yield self.objection(case.code, case.settings, *self._files_of(readme), *driver)


def _names_in(names: Sequence[str], folder: str) -> list[str]:
    """Of sorted paths those in a folder, which stand together, or the one that is this path."""
    begin, end = (bisect_left(names, f"{folder}{sign}") for sign in ("/", "0"))  # "0" comes behind "/"
    place = bisect_left(names, folder)
    return [*names[begin:end], *(name for name in names[place : place + 1] if name == folder)]


def _training_of(path: Path) -> Path:
    for folder in (path, path / "training"):
        if (folder / BENCHMARKS).is_dir() and (folder / "run_benchmarks").is_dir():
            return folder.resolve()
    message = "is no checkout of FlagPerf: it has no training/ with benchmarks/ and run_benchmarks/"
    remedy = "give the folder that `git clone https://github.com/FlagOpen/FlagPerf` made"
    raise FlagPerfError(message, where=str(path), remedy=remedy)
