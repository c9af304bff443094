"""Gives the hosts images of this machine's engine: the layers are bound read-only, none is copied.

The engine keeps an image as a few small files (configuration, layer chain) and a folder a layer. The small
files are copied into the host's own store, the layers' contents are bind mounts. This holds for the store
that Docker writes with the `overlay2` driver, the default up to version 28. With any other store the image
is streamed into each host, which takes some 20 s a GB.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.commands import LabError, run

HOST_ROOT = "/var/lib/docker"


@dataclass(frozen=True)
class Image:
    """An image of this machine's engine: its `id` (sha256:...), its names, its layers' content digests."""

    id: str
    tags: tuple[str, ...]
    diff_ids: tuple[str, ...]

    @property
    def chain_ids(self) -> list[str]:
        """The engine's names of the layers: a digest over the layer and all below it (OCI image spec)."""
        chain = [self.diff_ids[0]]
        for diff_id in self.diff_ids[1:]:
            chain.append("sha256:" + hashlib.sha256(f"{chain[-1]} {diff_id}".encode()).hexdigest())
        return [chain_id.removeprefix("sha256:") for chain_id in chain]


def find(names: Sequence[str]) -> list[Image]:
    """The images `names` of this machine's engine.

    Raises:
        LabError: the engine does not answer or has no such image.
    """
    if not names:
        return []
    facts = json.loads(run(["docker", "image", "inspect", *names]))
    return [Image(fact["Id"], tuple(fact["RepoTags"]), tuple(fact["RootFS"]["Layers"])) for fact in facts]


def store() -> Path | None:
    """The folder of this machine's engine whose layers can be shared; None: they must be streamed."""
    facts = run(["docker", "info", "--format", "{{.Driver}}\t{{.DockerRootDir}}"])
    driver, folder = facts.strip().split("\t")
    root = Path(folder)
    return root if driver == "overlay2" and (root / "image/overlay2/layerdb").is_dir() else None


def share(images: Sequence[Image], root: Path, into: Path) -> list[tuple[Path, str]]:
    """Enters `images` of the engine store `root` in the store `into` of a host that has not started yet.

    Returns the binds that the host needs: pairs of a layer's folder and its place on the host.
    """
    names: dict[str, dict[str, str]] = {}
    binds: dict[str, tuple[Path, str]] = {}
    for image in images:
        _copy_file("imagedb/content/sha256", image.id.removeprefix("sha256:"), root, into)
        for tag in image.tags:
            names.setdefault(tag.rpartition(":")[0], {})[tag] = image.id
        for chain_id in image.chain_ids:
            layer = _share_layer(chain_id, root, into)
            binds[layer] = (root / "overlay2" / layer / "diff", f"{HOST_ROOT}/overlay2/{layer}/diff")
    (into / "image/overlay2").mkdir(parents=True, exist_ok=True)
    (into / "image/overlay2/repositories.json").write_text(json.dumps({"Repositories": names}))
    return list(binds.values())


def _share_layer(chain_id: str, root: Path, into: Path) -> str:
    """Enters one layer; returns the name of its folder below overlay2/."""
    entry = f"image/overlay2/layerdb/sha256/{chain_id}"
    layer = (root / entry / "cache-id").read_text().strip()
    source, target = root / "overlay2" / layer, into / "overlay2" / layer
    if not (into / entry).exists():
        shutil.copytree(root / entry, into / entry)
        for name in ("diff", "work"):
            (target / name).mkdir(parents=True)
        for name in ("link", "lower", "committed"):
            if (source / name).exists():
                shutil.copy(source / name, target / name)
        links = into / "overlay2/l"
        links.mkdir(exist_ok=True)
        (links / (source / "link").read_text().strip()).symlink_to(f"../{layer}/diff")
    return layer


def _copy_file(folder: str, name: str, root: Path, into: Path) -> None:
    target = into / "image/overlay2" / folder
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(root / "image/overlay2" / folder / name, target / name)


def stream(names: Sequence[str], load: Sequence[str], timeout: float = 600.0) -> None:
    """Saves the images `names` of this machine's engine into the command `load` (a host's `docker load`)."""
    with subprocess.Popen(["docker", "save", *names], stdout=subprocess.PIPE) as save:
        loaded = subprocess.run(load, stdin=save.stdout, capture_output=True, text=True, timeout=timeout)
    if save.returncode or loaded.returncode:
        raise LabError(f"streaming {', '.join(names)} failed: {loaded.stderr.strip()}")
