"""Where the cases, drivers and images of a checkout go in this `training/`: nothing that is here is touched."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from run_benchmarks.imports.checkout import BENCHMARKS, DRIVER, Checkout, PublicCase
from run_benchmarks.imports.choice import chosen_cases, chosen_vendors
from run_benchmarks.imports.record import IMAGES, SUFFIX, Imports, read_imports, write_imports
from run_benchmarks.plan.vendors import VENDOR_FILE
from run_benchmarks.stages.tree import LARGEST_TREE
from run_benchmarks.stages.tree_files import MOST_PATHS
from utils.code_files import digest_of_file
from utils.errors import FlagPerfError, Problem, ProblemsError

OLD_MONITOR = "stays behind: it makes itself a daemon, which nobody could be sure to end"
BLOCK = 2**20  # bytes that are copied at a time
MOST_NAMED = 8  # images in the note on a case
LESS = "see what writes to the checkout, or import less of it: --vendor, --cases"
AGAIN = "mend it and import again, or take away what came with --undo"


@dataclass(frozen=True)
class ImportedItem:
    """A line of the table: a vendor's case or image, its name here (empty: it does not come), sizes, a word on it."""

    vendor: str
    name: str
    here: str
    sizes: Sequence[str] = ()
    note: str = ""


@dataclass
class Laying:
    """What would be laid down: path below training/ -> path in the checkout; and what there is to say of it."""

    checkout: Checkout
    files: dict[str, str] = field(default_factory=dict)
    rows: list[ImportedItem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def lay_out(
    checkout: Checkout, training_dir: Path, vendors: Sequence[str] = (), cases: Sequence[str] = ()
) -> Laying:
    """Everything of these vendors and cases (`model` or `model:framework...`); without any, of all.

    Raises:
        FlagPerfError: there is no such vendor or case in the checkout, or nothing of it can run here.
    """
    if checkout.path == training_dir.resolve():
        raise FlagPerfError("is this checkout itself", where=str(checkout.path), remedy="give another one")
    chosen = chosen_vendors(checkout, vendors)
    wanted = chosen_cases(checkout, chosen, cases)
    plan = _Plan(checkout, training_dir, read_imports(training_dir))
    for vendor in chosen:
        plan.add(vendor, [case for case in wanted if case.vendor == vendor])
    if not any(row.here for row in plan.laying.rows):
        reasons = "; ".join(dict.fromkeys(row.note for row in plan.laying.rows)) or "it has no cases"
        raise FlagPerfError(f"nothing of it can run here: {reasons}", where=str(checkout.path))
    return plan.laying


def lay_down(laying: Laying, training_dir: Path) -> int:
    """Copy the files, once it is clear that none of them lies here; how many are new.

    Each is read once, into a folder of its own: whoever owns the checkout may change it meanwhile.

    Raises:
        ProblemsError: something else lies where they go; nothing was laid down.
        FlagPerfError: a file could not be read or written; what was laid down until then is in the record.
    """
    imports = read_imports(training_dir)
    try:
        # beside what it is to be, and with a dot before its name: no host gets it
        with TemporaryDirectory(prefix=".import-", dir=training_dir) as folder:
            copies = _copies(laying, Path(folder))
            digests = {target: digest_of_file(copy) for target, copy in copies.items()}
            _check_free(digests, training_dir, imports)
            new = [target for target in digests if not (training_dir / target).exists()]
            folders = sorted({*imports.folders, *_missing_folders(new, training_dir)})
            write_imports(training_dir, Imports({**imports.files, **digests}, tuple(folders)))
            for target in new:
                _put(copies[target], training_dir / target)
    except OSError as error:
        message = f"could not be written: {error.strerror}"
        raise FlagPerfError(message, where=str(error.filename or training_dir), remedy=AGAIN) from error
    return len(new)


def _check_free(digests: Mapping[str, str], training_dir: Path, imports: Imports) -> None:
    remedy = "move it away, or take the earlier import away with --undo and import again"
    problems = [
        Problem(
            str(training_dir), target, "", "lies here already, and is not what would be laid down", remedy
        )
        for target, digest in digests.items()
        if _is_taken(training_dir / target, digest, is_ours=target in imports.files)
    ]
    if problems:
        raise ProblemsError(problems)


def _is_taken(path: Path, digest: str, *, is_ours: bool) -> bool:
    if not path.exists() and not path.is_symlink():
        return False
    return not (is_ours and path.is_file() and digest_of_file(path) == digest)


def _missing_folders(targets: Sequence[str], training_dir: Path) -> set[str]:
    parents = {parent.as_posix() for target in targets for parent in PurePosixPath(target).parents[:-1]}
    return {parent for parent in parents if not (training_dir / parent).exists()}


def _copies(laying: Laying, folder: Path) -> dict[str, Path]:
    """Copies of the checkout's files, by the paths at which they are to lie, with the modes that they get."""
    copies, room = {}, LARGEST_TREE
    for number, (target, source) in enumerate(laying.files.items()):
        copies[target] = folder / str(number)
        with laying.checkout.opened(source) as content:
            room -= _copy(content, copies[target], room)
    return copies


def _copy(content: BinaryIO, copy: Path, room: int) -> int:
    """Copy a file of at most `room` bytes; how many it has."""
    try:
        with copy.open("xb") as file:
            file.writelines(_blocks(content, room))
        copy.chmod(0o755 if os.fstat(content.fileno()).st_mode & 0o100 else 0o644)
        return copy.stat().st_size
    except OSError as error:
        message = f"could not be copied: {error.strerror}"
        raise FlagPerfError(message, where=str(content.name), remedy=AGAIN) from error


def _blocks(content: BinaryIO, room: int) -> Iterator[bytes]:
    """What is in a file; its owner may have written to it since it was looked at, and may go on."""
    while block := content.read(BLOCK):
        room -= len(block)
        if room < 0:
            message = f"with it there are more than {LARGEST_TREE >> 20} MiB, which go to no host"
            raise FlagPerfError(message, where=str(content.name), remedy=LESS)
        yield block


def _put(copy: Path, target: Path) -> None:
    """Put a copy in its place, whole, and over nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(exist_ok=False)
    copy.replace(target)


class _Plan:
    """Gathers what a laying holds, vendor by vendor; a model has one name for all of them."""

    def __init__(self, checkout: Checkout, training_dir: Path, imports: Imports) -> None:
        self.laying = Laying(checkout)
        self._checkout, self._root = checkout, training_dir
        self._laid = imports.above()
        self._images_here = cache(self._names_here)  # asked for each case
        self._done: set[tuple[str, str]] = set()
        # the folders of our own that vendors of the checkout have here: a model's begin with its name and a dash
        self._settings = {
            folder.name
            for vendor in checkout.vendors
            for folder in (training_dir / vendor).glob("*-*/")
            if folder.relative_to(training_dir).as_posix() not in self._laid
        }

    def add(self, vendor: str, cases: Sequence[PublicCase]) -> None:
        """A vendor with these cases and the images for them."""
        before = len(self.laying.files)
        for case in cases:
            self._add_case(case)
        frameworks = {case.framework for case in cases if not self._checkout.why_not(case)}
        for image in sorted(name for each in frameworks for name in self._checkout.images(vendor, each)):
            self._add_image(vendor, image)
        if len(self.laying.files) > before:
            self.laying.notes += self._of_vendor(vendor)

    def _add_case(self, case: PublicCase) -> None:
        name, why = f"{case.model}:{case.framework}", self._checkout.why_not(case)
        sizes = self._checkout.sizes(case)
        if why:
            self.laying.rows.append(ImportedItem(case.vendor, name, "", sizes, why))
            return
        model = self._free(case.model, BENCHMARKS, beside=self._settings)
        code = f"{BENCHMARKS}/{model}/{case.framework}"
        self._lay(case.code, code)
        if self._checkout.uses_driver(case):
            self._lay(DRIVER, f"{code}/driver")
        self._lay(f"{BENCHMARKS}/{case.model}/README.md", f"{BENCHMARKS}/{model}/README.md")
        self._lay(case.settings, f"{case.vendor}/{model}-{case.framework}")
        image, note = self._image_of(case)
        self.laying.rows.append(ImportedItem(case.vendor, name, f"{model}:{image}", sizes, note))

    def _image_of(self, case: PublicCase) -> tuple[str, str]:
        """What stands for the framework and its version in the case's keys, and a word on it."""
        here = self._images_here(case.vendor, case.framework)
        if here:
            named, more = here[1:MOST_NAMED], len(here) - MOST_NAMED
            rest = f" and {more} more" if more > 0 else ""
            return here[0], f"in its keys also {', '.join(named)}{rest}" if named else ""
        folder = f"{case.vendor}/{IMAGES}"
        dockerfiles = (self._root / folder).glob(f"{case.framework}*/Dockerfile")
        if own := sorted(path.parent.name for path in dockerfiles):
            return own[0], f"no Dockerfile came for it: its image is ours, {IMAGES}/{own[0]}"
        remedy = f'write {folder}/{case.framework}/Dockerfile, or set RUNTIME = "process"'
        return case.framework, f"no Dockerfile came for it: {remedy}"

    def _names_here(self, vendor: str, framework: str) -> list[str]:
        """The names that the vendor's images for a framework have here, of those that go to hosts."""
        folder, came = f"{vendor}/{IMAGES}", self._checkout.images(vendor, framework)
        return [self._free(name, folder) for name in came if not self._why_no_image(f"{folder}/{name}")]

    def _why_no_image(self, folder: str) -> str:
        size = self._checkout.size_of(folder)
        if size > LARGEST_TREE:
            return (
                f"{size >> 20} MiB, more than goes to hosts: build an image with what it installs by hand, and "
                "write a Dockerfile FROM that one"
            )
        return self._checkout.objection(folder)

    def _add_image(self, vendor: str, name: str) -> None:
        folder = f"{vendor}/{IMAGES}/{name}"
        if note := self._why_no_image(folder):
            self.laying.rows.append(ImportedItem(vendor, f"{IMAGES}/{name}", "", (), note))
            return
        here = self._free(name, f"{vendor}/{IMAGES}")
        target = f"{vendor}/{IMAGES}/{here}"
        self._lay(folder, target)
        script = f"{target}/{name}_install.sh"
        if here != name and name != name.partition("_")[0] and script in self.laying.files:
            self.laying.files[f"{target}/{here}_install.sh"] = self.laying.files.pop(script)
        if here != name:
            note = f"in the keys of test_conf.py: ...:{here}:..."
            self.laying.rows.append(ImportedItem(vendor, f"{IMAGES}/{name}", f"{IMAGES}/{here}", (), note))

    def _lay(self, source: str, target: str) -> None:
        """The files of a folder, or a file; vendors share a case's code, and cases a driver."""
        if (source, target) in self._done:
            return
        self._done.add((source, target))
        for file in self._checkout.below(source):
            path = f"{target}{file.removeprefix(source)}"
            self.laying.files[path] = file
            if len(self.laying.files) > MOST_PATHS:
                message = f"more than {MOST_PATHS} files would be laid down; {source} is among them"
                raise FlagPerfError(message, where=str(self._checkout.path), remedy=LESS)

    def _free(self, name: str, home: str, beside: Collection[str] = ()) -> str:
        """The name, or with a suffix where it is taken by what no import laid down.

        Args:
            home: the folder that would hold it.
            beside: of these folders it may not be the first part either, before a dash.
        """
        for candidate in (name, f"{name}{SUFFIX}"):
            is_there = (self._root / home / candidate).exists() and f"{home}/{candidate}" not in self._laid
            if not is_there and not any(each.startswith(f"{candidate}-") for each in beside):
                return candidate
        message = f"both {name} and {name}{SUFFIX} are taken here"
        raise FlagPerfError(message, where=str(self._root / home), remedy="rename one of them")

    def _of_vendor(self, vendor: str) -> Iterator[str]:
        if self._checkout.below(f"{vendor}/{vendor}_monitor.py"):
            yield f"{vendor}/{vendor}_monitor.py {OLD_MONITOR}"
        if not (self._root / vendor / VENDOR_FILE).is_file():
            yield f"{vendor} has no {VENDOR_FILE} here: ACCE_CONTAINER_OPT and ACCE_VISIBLE_DEVICE_ENV_NAME are needed"
