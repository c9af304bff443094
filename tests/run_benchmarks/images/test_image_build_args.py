"""Build arguments that are secret: the build gets them; no process list, no log and no image shows them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.transports.base import CommandError, Transport
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.ssh import SshTransport
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.images.building import DOCKER, Bench, words_in
from tests.run_benchmarks.process_table import argvs_meanwhile
from tests.run_benchmarks.transports.conftest import live_as, need_sshd
from tests.run_benchmarks.transports.sshd import Sshd
from utils.errors import FlagPerfError

# What is awkward for a shell: quotes, a dollar, backquotes, a backslash and two spaces.
AWKWARD = 'it\'s  "$HOME" `id` \\n'
# They tell what they were given, in another spelling: the image itself must not hold it.
MOUNTED = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN --mount=type=secret,id=REPO_TOKEN sleep 1 && base64 -w0 /run/secrets/REPO_TOKEN > /got
"""
PROXIED = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN printf %s "$http_proxy" | base64 -w0 > /got && sleep 1
"""
INSTALL = "echo >> /got; base64 -w0 /run/secrets/MIRROR >> /got\n"


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
        "http_proxy": f"http://p:{word}@proxy:3128",
        "REPO_TOKEN": f"{AWKWARD}{word}",
    }
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", INSTALL)
    path = bench.tree.config / "test_conf.py"
    path.write_text(path.read_text() + f"IMAGE_BUILD_ARGS = {args!r}\n")
    return word


def need_secrets(bench: Bench) -> None:
    """Let the bench use a command of its engine whose builder knows secrets; Docker's does not without buildx."""
    name = Path(bench.engine.split()[0]).name
    folders = os.environ["PATH"].split(os.pathsep)
    for command in (bench.engine, *(f"{folder}/{name}" for folder in folders)):
        if subprocess.run(engine_of(command).takes_secrets(), check=False).returncode == 0:
            bench.engine = command
            return
    pytest.skip(f"no {name} on this machine builds with --secret")


@pytest.mark.parametrize("dockerfile", [PROXIED, MOUNTED], ids=["proxied", "mounted"])
def test_a_secret_reaches_the_build_and_is_seen_nowhere(
    dockerfile: str, bench: Bench, password: str, transport: Transport
) -> None:
    # BuildKit keeps what another test's build has made, whatever the secret was
    bench.tree.write(f"{DOCKER}/Dockerfile", dockerfile.replace("sleep 1", f"sleep 1 && : {bench.uid}"))
    if dockerfile == MOUNTED:
        need_secrets(bench)
    log = bytearray()

    async def sink(chunk: bytes) -> None:
        log.extend(chunk)

    async def scenario() -> None:
        try:
            await bench.store.build(transport, bench.site, bench.image, bench.pip, sink)
        finally:
            await transport.close()

    with argvs_meanwhile() as argvs:
        asyncio.run(asyncio.wait_for(scenario(), timeout=180))
    first = f"{AWKWARD}{password}" if dockerfile == MOUNTED else f"http://p:{password}@proxy:3128"
    got = bench.ask("run", "--rm", bench.image.tag, "cat", "/got").splitlines()  # in another spelling
    assert [base64.b64decode(line).decode() for line in got] == [first, f"http://u:{password}@proxy:3128"]
    assert any(" build " in argv for argv in argvs), "the build was not among the processes"
    assert [argv for argv in argvs if password in argv] == []
    assert bench.files_with(password) == []
    assert words_in(bench, [password, got[0]]) == {got[0]}


def test_the_engines_own_proxy_serves_a_build_and_is_in_no_image(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker gives containers the proxies of its config.json, Podman those of its environment; a commit keeps them."""
    password = f"word-{secrets.token_hex(8)}"
    proxy = f"http://corp:{password}@127.0.0.1:1"
    config = {"proxies": {"default": {"httpsProxy": proxy}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("https_proxy", proxy)
    # the install step leaves what it saw in another spelling
    bench.tree.write(f"{DOCKER}/Dockerfile", f"FROM {BASE_IMAGE}\nENV http_proxy=http://images-own:1\n")
    seen = 'printf %s "$http_proxy $https_proxy" | base64 -w0 > /got\n'
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", seen)
    asyncio.run(bench.build())
    got = base64.b64decode(bench.ask("run", "--rm", bench.image.tag, "cat", "/got")).decode()
    assert got == f"http://images-own:1 {proxy}"
    assert words_in(bench, [password]) == set()


# Forms in which a Dockerfile declares what the plan, which reads it without the engine's grammar, does not see.
SHOWING = {
    "quoted": 'ARG "http_proxy"\nRUN true',
    "environment": "ARG h\\\nttp_proxy\nENV PROXY=$http_proxy",
    "label": "ARG h\\\nttp_proxy\nLABEL built.by=$http_proxy",
}


def expect_none_shown(bench: Bench, secret: str, *, may_hide: bool) -> None:
    """Build; the image that shows the secret is refused and gone. `may_hide`: Podman does not show it in this form."""
    tag = bench.image.layers[0].tag
    try:
        asyncio.run(bench.build())
    except FlagPerfError as error:
        assert "for all to read" in error.message and "remove ARG" in error.remedy
        assert bench.ask("images", "--quiet", tag) == ""
    else:
        assert may_hide and "podman" in bench.engine
        shown = bench.ask("history", "--no-trunc", "--format={{.CreatedBy}}", tag)
        assert secret not in shown + bench.ask("image", "inspect", tag)


@pytest.mark.parametrize("form", SHOWING)
def test_an_image_that_shows_a_secret_is_removed(form: str, bench: Bench, password: str) -> None:
    bench.tree.write(f"{DOCKER}/Dockerfile", f"FROM {BASE_IMAGE}\n{SHOWING[form]}\n")
    expect_none_shown(bench, password, may_hide=form == "quoted")


def test_the_engines_own_proxy_in_a_history_is_refused(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = f"word-{secrets.token_hex(8)}"
    proxy = f"http://corp:{password}@127.0.0.1:1"
    (tmp_path / "config.json").write_text(json.dumps({"proxies": {"default": {"httpsProxy": proxy}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("https_proxy", proxy)
    bench.tree.write(f"{DOCKER}/Dockerfile", f"FROM {BASE_IMAGE}\nARG https_proxy\nRUN true\n")
    expect_none_shown(bench, password, may_hide=True)


def test_a_failing_build_does_not_tell_its_secrets(bench: Bench, password: str) -> None:
    bench.tree.write(f"{DOCKER}/Dockerfile", PROXIED.replace("&& sleep 1", "&& exit 9"))
    with pytest.raises(CommandError) as caught:
        asyncio.run(bench.build())
    assert "--build-arg http_proxy" in caught.value.message
    assert not any(password in word for argv in bench.transport.commands for word in argv)


def test_an_image_is_named_by_what_is_in_it_and_not_by_what_opens_it(bench: Bench, password: str) -> None:
    bench.tree.write(f"{DOCKER}/Dockerfile", PROXIED)
    before = bench.image.tag
    path = bench.tree.config / "test_conf.py"
    path.write_text(path.read_text().replace(password, "another-word"))
    assert bench.image.tag == before
    path.write_text(path.read_text().replace("REPO_TOKEN", "REPO_TOKEN_2"))
    assert bench.image.tag != before


def test_an_engine_without_secrets_is_told_from_one_that_has_them(tmp_path: Path) -> None:
    for script, code in (("echo '  --secret stringArray'", 0), ("echo 'buildx is missing' >&2; exit 1", 1)):
        engine = tmp_path / f"docker{code}"
        engine.write_text(f"#!/bin/sh\n{script}\n")
        engine.chmod(0o755)
        argv = engine_of(str(engine)).takes_secrets()
        assert subprocess.run(argv, check=False).returncode == code
