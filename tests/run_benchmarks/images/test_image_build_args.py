"""Build arguments that are secret: the build gets them, and no process list shows them."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.images.build import layer_argvs, secret_build_args
from run_benchmarks.images.layers import ImagePlan, Layer
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports.base import CommandError, Transport
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.ssh import SshTransport
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.images.building import DOCKER, Bench
from tests.run_benchmarks.transports.conftest import live_as, need_sshd
from tests.run_benchmarks.transports.sshd import Sshd
from utils.errors import FlagPerfError

# What is awkward for a shell: quotes, a dollar, backquotes, a backslash and two spaces.
AWKWARD = 'it\'s  "$HOME" `id` \\n'
DOCKERFILE = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ARG MIRROR
ARG REPO_TOKEN
RUN printf '%s\\n' "$MIRROR" "$REPO_TOKEN" > /got && sleep 1
"""


@pytest.fixture(params=["this machine", "another host"])
def transport(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Transport]:
    """This machine, as itself or by way of a real ssh server."""
    if request.param == "this machine":
        yield LocalTransport()
        return
    need_sshd()
    server = Sshd(tmp_path / "sshd")
    server.start()
    live_as(server, monkeypatch)
    yield SshTransport("127.0.0.1", ClusterSettings(hosts=("127.0.0.1",), ssh_port=server.port))
    server.stop()


@pytest.fixture
def password(bench: Bench) -> str:
    """A password that build arguments hold."""
    word = f"word-{secrets.token_hex(8)}"
    args = {
        "BASE_IMAGE": BASE_IMAGE,
        "MIRROR": f"http://u:{word}@proxy:3128",
        "REPO_TOKEN": f"{AWKWARD}{word}",
    }
    bench.tree.write(f"{DOCKER}/Dockerfile", DOCKERFILE)
    path = bench.tree.config / "test_conf.py"
    path.write_text(path.read_text() + f"IMAGE_BUILD_ARGS = {args!r}\n")
    return word


def argvs_of_all_processes() -> set[str]:
    argvs = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argvs.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # ended meanwhile
            continue
    return argvs


def test_a_secret_reaches_the_build_and_no_process_list(
    bench: Bench, password: str, transport: Transport
) -> None:
    seen: set[str] = set()
    log = bytearray()

    async def watch_processes() -> None:
        while True:
            seen.update(await asyncio.to_thread(argvs_of_all_processes))

    async def sink(chunk: bytes) -> None:
        log.extend(chunk)

    async def scenario() -> None:
        watching = asyncio.create_task(watch_processes())
        try:
            await bench.store.build(transport, bench.site, bench.image, bench.pip, sink)
        finally:
            watching.cancel()
            await transport.close()

    asyncio.run(asyncio.wait_for(scenario(), timeout=120))
    got = bench.ask("run", "--rm", bench.image.tag, "cat", "/got")
    assert got.splitlines() == [f"http://u:{password}@proxy:3128", f"{AWKWARD}{password}"]
    assert any("--build-arg MIRROR" in argv for argv in seen), "the build was not among the processes"
    assert [argv for argv in seen if password in argv] == []
    assert bench.files_with(password) == []


def test_a_failing_build_does_not_tell_its_secrets(bench: Bench, password: str) -> None:
    bench.tree.write(f"{DOCKER}/Dockerfile", DOCKERFILE.replace("&& sleep 1", "&& exit 9"))
    with pytest.raises(CommandError) as caught:
        asyncio.run(bench.build())
    assert "--build-arg REPO_TOKEN" in caught.value.message
    assert not any(password in word for argv in bench.transport.commands for word in argv)


def image(**args: str) -> ImagePlan:
    return ImagePlan((Layer("dockerfile", "t:1", ("d",)),), tuple(args.items()))


def test_only_what_is_shown_redacted_is_handed_over_by_the_environment(bench: Bench) -> None:
    plan = image(BASE_IMAGE="b:1", http_proxy="http://proxy:3128", https_proxy="http://u:w@proxy", A_KEY="k")
    assert secret_build_args(plan) == {"https_proxy": "http://u:w@proxy"}
    (argv,) = layer_argvs(bench.store.engine, bench.site, plan.layers[0], None, plan, ())
    given = [after for word, after in itertools.pairwise(argv) if word == "--build-arg"]
    assert given == ["BASE_IMAGE=b:1", "http_proxy=http://proxy:3128", "https_proxy", "A_KEY=k"]


def test_a_secret_that_no_variable_can_hold_is_refused_without_showing_it() -> None:
    with pytest.raises(FlagPerfError, match="MY-TOKEN") as caught:
        secret_build_args(image(**{"MY-TOKEN": "hunter2"}))
    assert "hunter2" not in str(caught.value)
    assert "rename it" in caught.value.remedy
