"""What a host that hands out an image may send the others: archives of real engines, and hostile ones."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import tarfile
from collections.abc import Sequence
from typing import Any

import pytest

from run_benchmarks.images.store import ImageStore
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages.image_archive import ImageArchive, ImageArchiveError
from run_benchmarks.stages.image_stream import Counter, stream_image
from run_benchmarks.transports.base import Completed
from run_benchmarks.transports.local import LocalTransport
from tests.lab.tiny_image import NAME
from tests.lab.tiny_image import build as build_tiny_image
from tests.run_benchmarks.images.engines import engine_with

TAG = "flagperf/acme-pytorch:0123456789ab"
MANIFEST = json.dumps([{"Config": "c.json", "RepoTags": [TAG], "Layers": ["l.tar"]}])
REPOSITORIES = json.dumps({"flagperf/acme-pytorch": {"0123456789ab": "f00"}})
INDEX = json.dumps(
    {
        "manifests": [
            {
                "annotations": {
                    "io.containerd.image.name": f"docker.io/{TAG}",
                    "org.opencontainers.image.ref.name": "0123456789ab",
                }
            }
        ]
    }
)


def archive_of(*members: tuple[tarfile.TarInfo | str, str], form: int = tarfile.USTAR_FORMAT) -> bytes:
    """A real tar stream; a name stands for a plain file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        for name, text in members:
            member = tarfile.TarInfo(name) if isinstance(name, str) else name
            member.size = len(text.encode()) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def passed_on(archive: bytes, tag: str = TAG, piece: int = 700) -> int:
    """How much of it a receiver gets, and then what was wrong, if anything was."""
    look, passed = ImageArchive(tag), 0
    for start in range(0, len(archive), piece):
        look.take(archive[start : start + piece])
        passed += piece
    look.end()
    return passed


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", **pax: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.pax_headers = kind, link, pax
    return info


@pytest.mark.parametrize("piece", [1, 511, 512, 100_000])
def test_an_archive_of_the_image_itself_passes(piece: int) -> None:
    good = archive_of(
        (member("f00", tarfile.DIRTYPE), ""),
        ("f00/layer.tar", "x" * 3000),
        ("f00/empty", ""),
        (member("f01/layer.tar", tarfile.SYMTYPE, "../f00/layer.tar"), ""),
        (member("blobs/sha256/f02", mtime="1.5"), "x" * 512),
        ("manifest.json", MANIFEST),
        ("repositories", REPOSITORIES),
        ("index.json", INDEX),
        form=tarfile.PAX_FORMAT,
    )
    assert passed_on(good, piece=piece) >= len(good)


OTHER = "others/image:1"
HOSTILE: dict[str, Sequence[tuple[Any, str]]] = {
    "a second tag": [("manifest.json", json.dumps([{"RepoTags": [TAG, OTHER]}]))],
    "a second image": [("manifest.json", json.dumps([{"RepoTags": [TAG]}, {"RepoTags": [OTHER]}]))],
    "another spelling": [("manifest.json", f'[{{"RepoTags": ["{TAG}"], "repoTag\u017f": ["{OTHER}"]}}]')],
    "the key twice": [("manifest.json", f'[{{"RepoTags": ["{OTHER}"], "RepoTags": ["{TAG}"]}}]')],
    "a second manifest": [("manifest.json", MANIFEST), ("./manifest.json", MANIFEST.replace(TAG, OTHER))],
    "through a folder that is a link": [
        (member("x", tarfile.SYMTYPE, "."), ""),
        ("x/manifest.json", MANIFEST.replace(TAG, OTHER)),
    ],
    "a link to a manifest": [("m", ""), (member("manifest.json", tarfile.SYMTYPE, "m"), "")],
    "a hard link": [("m", ""), (member("manifest.json", tarfile.LNKTYPE, "m"), "")],
    "a name in a header of its own": [(member("m", path="manifest.json"), MANIFEST.replace(TAG, OTHER))],
    "a size of what is no file": [(member("x", tarfile.DIRTYPE, size="1024"), "")],
    "out and in again": [("manifest.json/x/..", MANIFEST)],
    "what is not JSON": [("manifest.json", MANIFEST + "[]")],
    "brackets": [("manifest.json", "[" * 100_000)],
    "a manifest of any size": [("manifest.json", MANIFEST + " " * 2**20)],
    "a name that is a list": [
        ("index.json", json.dumps({"annotations": {"io.containerd.image.name": [TAG]}}))
    ],
    "repositories": [("repositories", json.dumps({"flagperf/acme-pytorch": {"1": "f00"}}))],
    "repositories without an object": [("repositories", "[]")],
    "an index": [("index.json", INDEX.replace(f"docker.io/{TAG}", OTHER))],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_would_replace_another_image_is_stopped_before_it_arrives(name: str) -> None:
    archive = archive_of(("layer", "x" * 600), *HOSTILE[name], form=tarfile.PAX_FORMAT)
    for piece in (1, 512, len(archive)):
        with pytest.raises(ImageArchiveError):
            passed_on(archive, piece=piece)


def test_what_an_engine_would_read_otherwise_is_stopped() -> None:
    good = archive_of(("manifest.json", MANIFEST))
    for bad in (
        good[:1000],
        good[:1024],
        good + b"x" * 512,
        b"\x1f\x8b\x08" + good[3:],
        b"BZh9\0" + good[5:],
    ):
        with pytest.raises(ImageArchiveError):
            passed_on(bad)


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_a_real_engines_archive_passes_and_one_of_two_images_does_not(kind: str) -> None:
    engine = engine_with(build_tiny_image(), kind)
    tag, other = "flagperf-lab-test:sent", "flagperf-lab-test:other"

    def ask(*argv: str, stdin: bytes = b"") -> bytes:
        return subprocess.run([*engine.split(), *argv], input=stdin, capture_output=True, check=True).stdout

    class Hostile(LocalTransport):
        async def run(self, argv: Sequence[str], **options: Any) -> Completed:
            more = (other,) if "save" in argv else ()
            several = ("--multi-image-archive",) if more and kind == "podman" else ()
            return await super().run((*argv[:2], *several, *argv[2:], *more), **options)

    async def sent(source: LocalTransport) -> None:
        store = ImageStore(engine_of(engine))
        assert await stream_image(store, source, [LocalTransport("h2")], tag, Counter()) == {}

    try:
        ask("tag", NAME, tag)
        asyncio.run(sent(LocalTransport("h1")))
        ask("tag", NAME, other)
        with pytest.raises(ImageArchiveError, match="flagperf-lab-test:other"):
            asyncio.run(sent(Hostile("h1")))
    finally:
        ask("image", "rm", tag, other)
