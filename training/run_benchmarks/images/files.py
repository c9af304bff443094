"""Images that are files: an engine of this machine builds them, a tool makes each a file, and hosts get that.

A host has them in the folder `images` of its work folder, each with its SHA-256 beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from run_benchmarks.images.build import BUILD_TIMEOUT_S
from run_benchmarks.images.store import ImageStore, OwnImage, StoredImage
from run_benchmarks.names import image_file
from run_benchmarks.runtimes.engine import Engine, Podman
from run_benchmarks.stages.work_folder import ENTER_OWN, IN_OWN
from run_benchmarks.transports.base import ByteSink, CommandError, Transport, checked
from utils.errors import FlagPerfError
from utils.numbers import whole

LOOKING_S = 60.0
SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}", re.ASCII)
SUM = ".sha256"
# $0: the work folder; $1: a file in it, which need not be there: its SHA-256, as it was when it came.
SEE = f'[ ! -f "$0/$1" ] || {{ {ENTER_OWN}[ -L "$1" ] || [ -L "$1{SUM}" ] || head -c 64 "$1{SUM}"; }}'
# $0: the work folder; below it $1, a copy that has come, and $2, the file that it becomes; $3: its SHA-256. Another
# host, or run, may do the same.
TAKE = (
    f"set -eu; umask 077; {ENTER_OWN}"
    '[ "$(sha256sum <"$1")" = "$3  -" ] || { echo "it is not what was sent" >&2; exit 1; }; '
    'mkdir -p "${2%/*}"; new=$(mktemp "$2.XXXXXX"); trap \'rm -f "$new"\' EXIT; printf %s "$3" >"$new"; '
    f'mv -fT "$new" "$2{SUM}"; ln "$1" "$new" 2>/dev/null || cp "$1" "$new"; '
    'mv -fT "$new" "$2" 2>/dev/null || [ "$1" -ef "$2" ]'  # mv refuses what is the same file already
)
# $0: the work folder; $1: a file in it.
HAND_OUT = f'{ENTER_OWN}exec cat "./$1"'
# $0: a folder, $1: a file in it: its bytes and its SHA-256.
MEASURE = f'{ENTER_OWN}stat -c %s "./$1" && sha256sum <"./$1"'
# $0: the work folder, $1: what its files end in. A line each: name, bytes, when it was made, now.
LIST = (
    f'[ -d "$0" ] || exit 0; {ENTER_OWN}now=$(date +%s); '
    'for file in ./images/*"$1"; do [ ! -f "$file" ] || [ -L "$file" ] || '
    'printf "%s\\t%s\\t%s\\n" "${file##*/}" "$(stat --printf="%s\\t%Y" "$file")" "$now"; done'
)
REMOVE = f'[ ! -d "$0" ] || {{ {ENTER_OWN}rm -f "./images/$1" "./images/$1{SUM}"; }}'
# $0: a folder, $1: the file to make in it, $2: the engine, $3: the image.
SAVE_AND_BUILD = (
    f'{ENTER_OWN}"$2" save --output archive "$3" && exec apptainer build "./$1" docker-archive:archive'
)

# The command that makes the image `tag` of an engine the file `name` in the folder `folder` of this machine.
Maker = Callable[[Engine, str, str, str], tuple[str, ...]]


def sif(engine: Engine, tag: str, folder: str, name: str) -> tuple[str, ...]:
    """A SIF file, by Apptainer."""
    return ("sh", "-c", SAVE_AND_BUILD, folder, name, engine.command, tag)


def squash_fs(engine: Engine, tag: str, folder: str, name: str) -> tuple[str, ...]:
    """A SquashFS file, by Enroot."""
    scheme = "podman" if isinstance(engine, Podman) else "dockerd"
    return ("sh", "-c", IN_OWN, folder, "enroot", "import", "--output", name, f"{scheme}://{tag}")


@dataclass(frozen=True)
class ImageFiles:
    """The images of hosts whose work folder is `work`. suffix: of files; builds: the images of this machine."""

    work: str
    suffix: str
    maker: Maker
    builds: ImageStore

    def path(self, tag: str) -> str:
        """Where a host has the image `tag`."""
        return image_file(self.work, tag, self.suffix)

    def _below(self, tag: str) -> str:
        """The same, from the work folder."""
        return str(PurePosixPath(self.path(tag)).relative_to(self.work))

    def kept_as(self, tag: str) -> str:
        """What the image is called among those that a host keeps."""
        return PurePosixPath(self.path(tag)).name

    async def image(self, transport: Transport, tag: str) -> StoredImage | None:
        """The image `tag` on the host, or None where it has no such image; its ID is the file's SHA-256."""
        seen = await checked(transport, ("sh", "-c", SEE, self.work, self._below(tag)), timeout=LOOKING_S)
        return StoredImage(f"sha256:{seen.stdout}") if SHA256.fullmatch(seen.stdout) else None

    async def make(self, here: Transport, tag: str, folder: str, name: str) -> tuple[int, str]:
        """Make the image `tag` of this machine's engine a file in a folder of ours; its bytes, and its SHA-256.

        Raises:
            CommandError: the tool is not here, or failed.
        """
        argv = self.maker(self.builds.engine, tag, folder, name)
        remedy = "this machine makes the file: it needs the tool, beside the engine of CONTAINER_ENGINE"
        await checked(here, argv, remedy=remedy, timeout=BUILD_TIMEOUT_S)
        done = await checked(here, ("sh", "-c", MEASURE, folder, name), timeout=BUILD_TIMEOUT_S)
        size, digest, *_ = [*done.stdout.split(), "", ""]
        number = whole(size)
        if number is None or not SHA256.fullmatch(digest):
            raise CommandError(done, "see what this command prints: no size and no SHA-256")
        return number, digest

    async def hand_out(self, transport: Transport, tag: str, sink: ByteSink) -> None:
        """Hand the host's file of an image to `sink`."""
        argv = ("sh", "-c", HAND_OUT, self.work, self._below(tag))
        await checked(transport, argv, stdout=sink, timeout=BUILD_TIMEOUT_S)

    async def take(self, transport: Transport, tag: str, copy: str, sha256: str) -> None:
        """Make a copy, which lies in the host's work folder, its image; CommandError where it is not the right one."""
        argv = ("sh", "-c", TAKE, self.work, copy, self._below(tag), sha256)
        await checked(transport, argv, timeout=BUILD_TIMEOUT_S)

    async def own_images(self, transport: Transport) -> list[OwnImage]:
        """The images that the host keeps, by the names of their files."""
        listed = await checked(transport, ("sh", "-c", LIST, self.work, self.suffix), timeout=LOOKING_S)
        images = []
        for line in listed.whole_stdout().splitlines():
            name, *numbers = (line.split("\t") + [""] * 4)[:4]
            size, made, now = map(whole, numbers)
            if NAME.fullmatch(name) and None not in (size, made, now):
                images.append(OwnImage(name, size or 0, float((now or 0) - (made or 0))))
        return images

    async def remove(self, transport: Transport, name: str) -> None:
        """Take the file `name` of an image away."""
        if not NAME.fullmatch(name) or not name.endswith(self.suffix):
            raise FlagPerfError(f"{name!r} is no image of FlagPerf's", where=transport.host)
        await checked(transport, ("sh", "-c", REMOVE, self.work, name), timeout=LOOKING_S)
