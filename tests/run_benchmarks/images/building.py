"""A tree whose image is built by this machine's real engine, and a package index that wants a password."""

from __future__ import annotations

import base64
import secrets
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from run_benchmarks.images.build import BuildSite, build_name
from run_benchmarks.images.layers import ImagePlan, plan_image
from run_benchmarks.images.store import ImageStore
from run_benchmarks.names import LABEL_RUN
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.transports.base import Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree

USER = "reader"
DOCKER = "acme/docker_image/pytorch"
DOCKERFILE = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ENTRYPOINT ["/bin/false"]
"""


class Recorder(LocalTransport):
    """This machine; keeps every command, and can lose contact after one."""

    def __init__(self, *, lost_after: str = "\0") -> None:
        super().__init__("localhost")
        self.commands: list[tuple[str, ...]] = []
        self.lost_after = lost_after

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.commands.append(tuple(argv))
        completed = await super().run(argv, **options)
        if any(self.lost_after in word for word in argv):
            raise TransportError("contact was lost", where=self.host)
        return completed

    def ran(self, *words: str) -> bool:
        """Whether a command held all these words."""
        return any(set(words) <= set(argv) for argv in self.commands)


@dataclass
class Bench:
    """A tree with its image, and where it is built. Everything of it has `uid` in its name."""

    tree: Tree
    work: Path
    uid: str
    pip: PipSettings = field(default_factory=PipSettings)
    local: bool = True
    log: bytearray = field(default_factory=bytearray)
    transport: Recorder = field(default_factory=Recorder)
    engine: str = "docker"

    @property
    def store(self) -> ImageStore:
        return ImageStore(engine_of(self.engine))

    def ask(self, *argv: str) -> str:
        """What the engine prints."""
        done = subprocess.run([*self.engine.split(), *argv], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{self.engine} {' '.join(argv)}: {done.stderr}"
        return done.stdout.strip()

    @property
    def run_uid(self) -> str:
        return f"run20260102030405-{self.uid[:6]}"

    @property
    def image(self) -> ImagePlan:
        plan = self.tree.load()
        return plan_image(plan, plan.cases[0])

    @property
    def site(self) -> BuildSite:
        name = build_name(self.run_uid, "localhost", self.image.tag)
        return BuildSite(str(self.tree.training), str(self.work), self.run_uid, name, self.local)

    async def build(self) -> None:
        async def sink(chunk: bytes) -> None:
            self.log.extend(chunk)

        await self.store.build(self.transport, self.site, self.image, self.pip, sink)

    @property
    def output(self) -> str:
        return self.log.decode()

    def files_with(self, secret: str) -> list[str]:
        """What on the host holds this text."""
        files = [path for path in self.work.rglob("*") if path.is_file()]
        return [str(path) for path in files if secret.encode() in path.read_bytes()]


@contextmanager
def make_bench(tmp_path: Path, engine: str) -> Iterator[Bench]:
    """A bench in a folder; its containers and images are removed after the test."""
    uid = secrets.token_hex(4)
    registry = f"flagperf-test-{uid}.invalid"
    tree = make_tree(tmp_path)
    settings = {"IMAGE_REGISTRY": registry, "IMAGE_BUILD_ARGS": {"BASE_IMAGE": BASE_IMAGE}}
    tree.configure(test_conf=TEST_CONF + "".join(f"{key} = {value!r}\n" for key, value in settings.items()))
    tree.write(f"{DOCKER}/Dockerfile", DOCKERFILE)
    (tmp_path / "work").mkdir(mode=0o700)
    bench = Bench(tree, tmp_path / "work", uid, engine=engine)
    yield bench
    for container in bench.ask("ps", "-aq", "--filter", f"label={LABEL_RUN}={bench.run_uid}").split():
        bench.ask("rm", "--force", container)
    images = bench.ask("images", "--format", "{{.Repository}}:{{.Tag}}").splitlines()
    for image in [name for name in images if name.startswith(registry)]:
        bench.ask("image", "rm", "--force", image)


def wheel(folder: Path, name: str) -> Path:
    """A package that brings one module."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "x = 1\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


@dataclass(frozen=True)
class Index:
    """A package index on this machine that answers only to USER with the password."""

    url: str
    password: str
    refused: list[str]


@contextmanager
def serve_index(tmp_path: Path) -> Iterator[Index]:
    """An index with one package, while the test runs."""
    package = wheel(tmp_path / "index", "flagperf_test_indexed")
    password = f"secret-{secrets.token_hex(8)}"
    wanted = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
    refused: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != wanted:
                refused.append(self.path)
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.end_headers()
                return
            is_page = self.path.endswith("/")
            exists = not is_page or "flagperf-test-indexed" in self.path
            link = f'<a href="/{package.name}">{package.name}</a>'
            self.send_response(200 if exists else 404)
            self.send_header("Content-Type", "text/html" if is_page else "application/octet-stream")
            self.end_headers()
            self.wfile.write(f"<html>{link}</html>".encode() if is_page else package.read_bytes())

        def log_message(self, *arguments: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    port = server.server_address[1]
    yield Index(f"http://{USER}:{password}@127.0.0.1:{port}/simple", password, refused)
    server.shutdown()
    server.server_close()
    thread.join()


def words_in(bench: Bench, words: Sequence[str]) -> set[str]:
    """Those of `words` that the image holds: what any of its layers says of itself, or any file in one of them."""
    tags = [layer.tag for layer in bench.image.layers]
    asked = [
        bench.ask(*question, tag)
        for tag in tags
        for question in (("history", "--no-trunc"), ("image", "inspect"))
    ]
    present = {word for word in words for text in asked if word in text}
    # Where the tests are killed it ends with them, and with it its hold on Podman's store.
    save = ["setpriv", "--pdeathsig", "KILL", *bench.engine.split(), "save", tags[-1]]
    longest = max(map(len, words))
    with subprocess.Popen(save, stdout=subprocess.PIPE) as archive:
        assert archive.stdout is not None
        rest = b""
        while chunk := archive.stdout.read(1 << 20):
            present |= {word for word in words if word.encode() in rest + chunk}
            rest = chunk[-longest:]
    assert archive.returncode == 0
    return present
