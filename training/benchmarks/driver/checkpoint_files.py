"""A folder of checkpoints: written whole or not at all, the last two kept, the newest whole one found again.

Beside each, `<name>.sha256` holds its checksum as sha256sum writes and checks it. A file that was cut off or
altered is known by it, and so is one that another program put there or that got another step's name.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from utils.checkpoints import CHECKPOINT_PATTERN, checkpoint_name
from utils.errors import FlagPerfError
from utils.manifest import sha256_of

KEPT = 2
# As the state of a checkpoint is read from its bytes, and then moved to where a rank has it: of one file's size each.
COPIES = 2
_CHECKSUM_BYTES = 1024  # more than a line of sha256sum has
_ALTERED = "is cut off or altered: its SHA-256 is not the one beside it"


class NotWrittenError(FlagPerfError):
    """The disk did not take a checkpoint: it is full, or may not be written to."""


def write_checkpoint(folder: Path, step: int, save: Callable[[Path], None]) -> Path:
    """Let `save` write a checkpoint, and remove what is older than it and the checkpoint before it; the file.

    Under its name a file is whole: it is written under another one, brought to the disk, and renamed. An
    older checkpoint is removed only after that; one of a higher step, which another run left, never.

    Raises:
        NotWrittenError: the disk does not take it.
        Exception: what `save` raises beside OSError.
    """
    path = folder / checkpoint_name(step)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _written_beside(path) as partial:
            save(partial)
            line = f"{sha256_of(partial)}  {path.name}\n"
            with _written_beside(_checksum_file(path)) as partial_checksum:
                partial_checksum.write_text(line, encoding="ascii")
        _bring_to_disk(folder)  # a renamed file survives a loss of power only once its folder is there too
        older = sorted(file for file in folder.glob(CHECKPOINT_PATTERN) if file.name < path.name)
        for old in older[: 1 - KEPT]:
            old.unlink()
            _checksum_file(old).unlink(missing_ok=True)
    except OSError as error:
        raise NotWrittenError(
            f"the checkpoint of step {step} cannot be written: {error.strerror}",
            where=str(folder),
            remedy="free space or allow this user to write there, or set save_steps = None",
        ) from error
    return path


@contextmanager
def _written_beside(path: Path) -> Iterator[Path]:
    """Another name to write `path` under; it gets its own when it is whole and on the disk.

    Half a file is of no use to anybody, whatever ended its writing.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        _bring_to_disk(partial)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what is reported
            partial.unlink(missing_ok=True)
        raise


def _bring_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def has_checkpoints(folder: Path) -> bool:
    """Whether any lies there, be it whole or not."""
    return next(folder.glob(CHECKPOINT_PATTERN), None) is not None


def read_newest(folder: Path, share: float = math.inf) -> tuple[Path, bytes, tuple[str, ...]]:
    """The newest checkpoint that is whole and fits into memory: its file, its bytes, why newer ones were passed over.

    Args:
        share: bytes of memory that are free for each rank, for all COPIES of a checkpoint that it has at once.

    Raises:
        FlagPerfError: there is none.
    """
    skipped: list[str] = []
    for path in sorted(folder.glob(CHECKPOINT_PATTERN), reverse=True):
        try:
            return path, _read_whole(path, share), tuple(skipped)
        except OSError as error:
            skipped.append(f"{path.name} cannot be read: {error.strerror}")
        except ValueError as error:
            skipped.append(f"{path.name} {error}")
        except MemoryError:
            skipped.append(f"{path.name} does not fit into the memory that this process may have")
    raise FlagPerfError(
        f"there is no whole checkpoint: {'; '.join(skipped) or 'the folder has none'}",
        where=str(folder),
        remedy="name another run, or start anew",
    )


def _read_whole(path: Path, share: float) -> bytes:
    """The bytes of a checkpoint.

    They are read only once the file is known to be whole, for another one may be larger than any memory. Their own
    checksum is that of what is loaded, whatever becomes of the file meanwhile.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not whole, not the one that its name says, or there is not the memory for it.
    """
    if path.is_symlink() or not path.is_file():  # a named pipe would be read for ever
        raise ValueError("is not a regular file")
    checksum = _checksum_file(path)
    if not checksum.is_file():
        raise ValueError(f"has no {checksum.name} beside it")
    with checksum.open("rb") as stream:
        expected = stream.read(_CHECKSUM_BYTES).decode("ascii", errors="replace").split()
    size = path.stat().st_size
    if COPIES * size > share:  # before it is hashed: what has holes may have any size
        needed = f"takes {_gib(size)}, {COPIES} times in each rank as it is loaded"
        raise ValueError(f"{needed}, and {_gib(share)} of memory are free for a rank")
    if [sha256_of(path)] != [digest.lower() for digest in expected[:1]]:
        raise ValueError(_ALTERED)
    # `sha256sum -b` writes the asterisk, and `./` stands where it was given a path of this folder
    if [name.removeprefix("*").removeprefix("./") for name in expected[1:]] != [path.name]:
        name = " ".join(expected[1:]) or "no file"
        raise ValueError(f"may be of another step: {checksum.name} is the checksum of {name}")
    if not size:  # further on no bytes stand for "no checkpoint"
        raise ValueError("is empty")
    with path.open("rb") as stream:
        data = stream.read(size)
    if hashlib.sha256(data).hexdigest() != expected[0].lower():
        raise ValueError(_ALTERED)
    return data


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
