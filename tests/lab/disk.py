"""A host's disk: this machine's own root file system below, what the host changes above (overlayfs).

Nothing a host writes reaches this machine. What stands here is prepared in the upper layer before the host
mounts it, with overlayfs' own marks: a whiteout hides a path, an opaque folder hides what lies below it.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

OPAQUE = "trusted.overlay.opaque"


@dataclass(frozen=True)
class Disk:
    """The layers in `folder`: `upper` (changes), `work` (overlayfs' own), `root` (where the host mounts)."""

    folder: Path

    @property
    def upper(self) -> Path:
        return self.folder / "upper"

    def create(self) -> None:
        """Makes the empty layers; the folder must not be on an overlay file system itself."""
        for name in ("upper", "work", "root"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        _copy_attributes(Path("/"), self.upper)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Gives the host a file of its own at the absolute `path`."""
        file = self._above(path)
        file.unlink(missing_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def hide(self, path: str) -> None:
        """Takes this machine's file or folder `path` out of the host's sight; one in a hidden folder is already."""
        place = self.upper / Path(path).relative_to("/")
        if not any(stage.is_char_device() for stage in (place, *place.parents)):
            os.mknod(self._above(path), stat.S_IFCHR, os.makedev(0, 0))

    def empty(self, path: str, mode: int = 0o700) -> None:
        """Gives the host an empty folder of its own at `path`, whatever this machine has there."""
        folder = self._above(path)
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
        os.setxattr(folder, OPAQUE, b"y")

    def _above(self, path: str) -> Path:
        """The place of `path` in the upper layer, its parents made with the attributes they have below."""
        inside = Path(path).relative_to("/")
        for parent in reversed(inside.parents[:-1]):
            if not (self.upper / parent).exists():
                (self.upper / parent).mkdir()
                _copy_attributes("/" / parent, self.upper / parent)
        return self.upper / inside


def _copy_attributes(source: Path, target: Path) -> None:
    if source.is_dir():
        status = source.stat()
        os.chown(target, status.st_uid, status.st_gid)
        shutil.copymode(source, target)
