"""Images built by this machine's real engine, with real pip behind a package index that wants a password."""

from __future__ import annotations

import asyncio
import configparser
import json
import secrets
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.images.build import KEPT_OUTPUT_BYTES, layer_argvs, run_logged
from run_benchmarks.images.pip_handover import PIP_FOLDER, pip_conf, pip_mounts
from run_benchmarks.images.unfinished import BUILD, BUILD_MARK, end_builds, unfinished_builds
from run_benchmarks.names import LABEL_RUN, run_of
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.stages.work_folder import REMOVE_BELOW
from run_benchmarks.transports.base import CommandError, Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.time_limit import within
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.images.building import DOCKER, Bench, Index, Recorder, make_bench, wheel, words_in
from tests.run_benchmarks.images.engines import engine_with
from tests.run_benchmarks.process_table import pids_with

VENDOR_CASE = "acme/toy-pytorch/config"
INSTALL = """\
set -eu
ls /workspace/docker_image/Dockerfile && touch beside  # where existing scripts look, and what they fetch goes to
echo "install begins"
test -r /etc/pip.conf
python3 -m pip config list | grep -q index-url
test "$(stat -c %a /etc/pip.conf)" = 600
mkdir -p /opt/acme && echo 1 > /opt/acme/installed
grep -q '^NoNewPrivs:.*1$' /proc/self/status
chown daemon /opt/acme && chmod 700 /opt/acme && ls /opt/acme && su -s /bin/sh -c true daemon
if mknod /tmp/memory c 1 1; then exit 1; fi
chown root /opt/acme
"""


@pytest.mark.parametrize("local", [True, False], ids=["this machine", "another host"])
def test_the_settings_of_pip_serve_the_build_and_are_gone_after_it(
    local: bool, bench: Bench, index: Index, tmp_path: Path
) -> None:
    wheel(tmp_path / "wheels", "flagperf_test_offline")
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", INSTALL)
    bench.tree.write("benchmarks/toy/pytorch/requirements.txt", "flagperf-test-indexed\n")
    bench.tree.write("acme/toy-pytorch/config/requirements.txt", "flagperf-test-offline==1.0\n")
    bench.pip = PipSettings({"index-url": index.url, "retries": "0"}, None, (tmp_path / "wheels",))
    bench.local = local

    asyncio.run(bench.build())

    # What was wanted is there, and the image can be used as one expects.
    tag = bench.image.tag
    code = "import flagperf_test_indexed, flagperf_test_offline; print(open('/opt/acme/installed').read())"
    assert bench.ask("run", "--rm", tag, "python3", "-c", code) == "1"
    assert "Successfully installed" in bench.output
    assert "install begins" in bench.output
    # The credentials were used, and are nowhere.
    assert index.refused == []
    assert words_in(bench, [index.password, "flagperf_test_indexed"]) == {"flagperf_test_indexed"}
    assert bench.files_with(index.password) == []
    assert not [path for path in bench.work.rglob("*") if path.is_file()]
    assert index.password not in bench.output
    assert not any(index.password in word for argv in bench.transport.commands for word in argv)
    # Nor do containers of the image count as the run's.
    labels = json.loads(bench.ask("image", "inspect", "--format", "{{json .Config.Labels}}", tag))
    assert labels[LABEL_RUN] == ""
    assert bench.ask("ps", "-aq", "--filter", f"name={bench.site.name}") == ""


def test_what_is_there_is_not_built_again(bench: Bench) -> None:
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", "touch /first\n")
    asyncio.run(bench.build())
    built = bench.ask("image", "inspect", "--format", "{{.Id}}", bench.image.tag)
    bench.ask("tag", bench.image.tag, f"{bench.image.tag}-first")

    bench.transport, bench.log = Recorder(), bytearray()
    asyncio.run(bench.build())
    assert not any(bench.transport.ran(verb) for verb in ("build", "run", "commit"))
    assert bench.log == b""

    # A lost layer is made upon those that are left.
    bench.ask("image", "rm", bench.image.tag)
    asyncio.run(bench.build())
    assert not bench.transport.ran("build")
    assert bench.transport.ran("commit")
    again = bench.ask("image", "inspect", "--format", "{{.Id}}", bench.image.tag)
    assert again != built  # an image ID holds the time of the build, ...

    async def digests() -> list[str]:
        tags = [bench.image.tag, f"{bench.image.tag}-first"]
        return [await bench.store.software_digest(LocalTransport(), bench.site, tag) for tag in tags]

    new, old = asyncio.run(digests())
    assert new == old  # ... a digest of the software in it does not
    assert bench.ask("ps", "-aq", "--filter", f"label={LABEL_RUN}={bench.run_uid}") == ""


def test_a_failing_install_script_is_an_error_with_the_end_of_its_output(bench: Bench, index: Index) -> None:
    lines = "for i in $(seq 1 3000); do echo \"line $i\"; done; echo 'no compiler' >&2; exit 7\n"
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", lines)
    bench.pip = PipSettings({"index-url": index.url})
    with pytest.raises(CommandError) as caught:
        asyncio.run(bench.build())
    error = caught.value
    assert error.completed.returncode == 7
    assert error.message.splitlines()[-1] == "no compiler"
    assert "line 3000" in error.message
    assert "line 1\n" not in error.message
    assert "line 1\n" in bench.output
    assert bench.output.endswith("no compiler\n")
    assert "image_build log" in error.remedy
    assert bench.files_with(index.password) == []
    assert index.password not in str(error)
    # The layer that went well stays; there is no image that looks finished.
    layers = bench.image.layers
    assert asyncio.run(bench.store.image(LocalTransport(), layers[0].tag)) is not None
    assert asyncio.run(bench.store.image(LocalTransport(), layers[1].tag)) is None


def test_of_a_secret_where_a_failed_steps_output_is_cut_nothing_is_shown(tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.write_text(f"index-password {'x ' * (KEPT_OUTPUT_BYTES // 2 - 10)}\n no wheel\n")

    async def log(_: bytes) -> None: ...

    with pytest.raises(CommandError, match="no wheel") as caught:
        asyncio.run(run_logged(LocalTransport(), ("sh", "-c", f"cat {output}; exit 1"), log, {}))
    assert "word" not in caught.value.message


def test_a_failing_dockerfile_is_an_error_with_its_output(bench: Bench) -> None:
    bench.tree.write(f"{DOCKER}/Dockerfile", f"FROM {BASE_IMAGE}\nRUN echo 'no such header' >&2; exit 9\n")
    with pytest.raises(CommandError) as caught:
        asyncio.run(bench.build())
    assert "no such header" in caught.value.message
    assert "no such header" in bench.output


def test_an_interrupted_build_leaves_no_credentials_and_is_found_by_its_run(
    bench: Bench, index: Index
) -> None:
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", "echo waiting; exec sleep 600\n")
    bench.pip = PipSettings({"index-url": index.url})

    async def scenario() -> tuple[str, ...]:
        building = asyncio.create_task(bench.build())
        while b"waiting" not in bench.log:
            await asyncio.sleep(0.05)
            assert not building.done(), bench.output
        assert bench.files_with(index.password)
        building.cancel()
        await asyncio.gather(building, return_exceptions=True)
        runtime = open_runtime(replace(bench.tree.load().run, container_engine=bench.engine))
        return await runtime.remove_all(LocalTransport(), bench.run_uid)

    assert asyncio.run(asyncio.wait_for(scenario(), timeout=120)) == (bench.site.name,)
    assert bench.files_with(index.password) == []


def test_a_build_whose_controller_is_gone_is_found_by_its_run_and_ended(bench: Bench) -> None:
    """The engine's command outlives an ssh connection, and its containers have no label."""
    mark = str(10**7 + secrets.randbelow(10**7))
    bench.tree.write(f"{DOCKER}/Dockerfile", f"FROM {BASE_IMAGE}\nRUN sleep {mark}\n")
    transport, work, uid = LocalTransport(), str(bench.work), bench.run_uid

    async def scenario() -> None:
        building = asyncio.create_task(bench.build())
        while not pids_with(mark):
            await asyncio.sleep(0.05)
            assert not building.done(), bench.output
        (unit,) = await unfinished_builds(transport, work)
        assert (str(unit), run_of(unit.labels)) == (f"{BUILD} (running)", uid)
        assert await unfinished_builds(transport, f"{work}/other") == ()
        another_run = f"{uid[:-1]}{'1' if uid[-1] == '0' else '0'}"
        assert await end_builds(transport, work, another_run) == () and not building.done()
        assert await end_builds(transport, work, uid) == (BUILD,)
        with pytest.raises(CommandError):
            await building
        assert await unfinished_builds(transport, work) == ()
        while pids_with(mark):
            await asyncio.sleep(0.05)

    asyncio.run(within(scenario(), 120.0))


def test_who_has_the_mark_of_a_build_is_ended_and_no_container_has_it(bench: Bench) -> None:
    """One that is a parent at every look, and a task in a container."""
    transport, work, uid = LocalTransport(), str(bench.work), bench.run_uid
    mark, busy = f"{BUILD_MARK}={uid}:{work}", "trap : TERM; while :; do sleep 0.1; done"
    task = bench.ask("run", "-d", f"--label={LABEL_RUN}={uid}", "-e", mark, BASE_IMAGE, "sh", "-c", busy)
    assert asyncio.run(unfinished_builds(transport, work)) == ()
    with subprocess.Popen(["env", mark, "sh", "-c", busy], start_new_session=True) as build:
        assert asyncio.run(end_builds(transport, work, uid)) == (BUILD,)
    assert build.returncode == -signal.SIGKILL
    assert bench.ask("ps", "-q", "--no-trunc", f"--filter=label={LABEL_RUN}={uid}") == task


def test_credentials_are_gone_when_their_hand_over_breaks(bench: Bench) -> None:
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", "true\n")
    bench.pip = PipSettings({"index-url": "https://u:word@mirror.example.org/simple"})
    bench.transport = Recorder(lost_after="umask 077")
    with pytest.raises(TransportError):
        asyncio.run(bench.build())
    assert bench.files_with("word") == []


def test_settings_on_the_host_are_for_their_owner_alone(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CERTIFICATE")
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", "true\n")
    bench.pip = PipSettings({"proxy": "http://u:word@proxy:3128"}, tmp_path / "ca.pem")
    seen: dict[str, int] = {}

    class Looking(Recorder):
        async def run(self, argv: Sequence[str], **options: object) -> Completed:
            if REMOVE_BELOW in argv:
                files = (path for path in (bench.work / "pip").rglob("*"))
                seen.update({path.name: path.stat().st_mode & 0o777 for path in files})
            return await super().run(argv, **options)  # type: ignore[arg-type]

    bench.transport = Looking()
    asyncio.run(bench.build())
    assert seen == {bench.site.name: 0o700, "pip.conf": 0o600, "ca.crt": 0o600}


@pytest.mark.parametrize("local", [True, False])
def test_the_pip_conf_of_a_build(local: bool, tmp_path: Path) -> None:
    """Folders of this machine are named as the build sees them, and not at all where it cannot see them."""
    pip = PipSettings(
        {
            "index-url": "https://u:p%40ss@host/simple",
            "extra-index-url": "file:///srv/simple https://more/simple",
            "find-links": "https://a/ https://b/",
        },
        tmp_path / "ca.pem",
        (tmp_path / "wheels",),
    )
    parser = configparser.RawConfigParser()
    parser.read_string(pip_conf(pip, ["/flagperf-pip-wheels-0"], local=local))
    options = {name: value.split() for name, value in parser.items("global")}
    assert options == {
        "index-url": ["https://u:p%40ss@host/simple"],
        "extra-index-url": [*(["file:///srv/simple"] if local else []), "https://more/simple"],
        "find-links": ["https://a/", "https://b/", "/flagperf-pip-wheels-0"],
        "cert": [f"{PIP_FOLDER}/ca.crt"],
    }


def test_without_settings_nothing_is_handed_over(bench: Bench) -> None:
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", "test ! -e /etc/pip.conf\n")
    asyncio.run(bench.build())
    assert pip_mounts(bench.site, bench.pip) == ()
    assert list(bench.work.iterdir()) == []


def test_every_mount_of_a_build_is_read_only(bench: Bench, tmp_path: Path) -> None:
    bench.tree.write(f"{DOCKER}/pytorch_install.sh", "true\n")
    pip = PipSettings({"timeout": "5"}, None, (tmp_path,))
    base, install, *_ = bench.image.layers
    argvs = layer_argvs(
        bench.store.engine, bench.site, install, base, bench.image, pip_mounts(bench.site, pip)
    )
    (start,) = [argv for argv in argvs if "run" in argv]
    mounts = [word for word in start if word.startswith("--mount=type=bind")]
    assert len(mounts) == 5
    assert (
        f"--mount=type=bind,source={bench.site.tree}/{DOCKER},target=/workspace/docker_image,readonly"
        in mounts
    )
    assert all(mount.endswith(",readonly") for mount in mounts)


EXTENSION = """\
from setuptools import setup
import os
assert os.environ["ACME_HOME"] == "/opt/acme" and os.environ["EXTENSION_SOURCE_DIR"] == os.getcwd()
setup(name="flagperf-test-extension", version="1.0", py_modules=["flagperf_test_extension"])
"""


def test_a_vendors_extension_is_built_into_the_image(bench: Bench) -> None:
    bench.tree.write("acme/toy-pytorch/csrc/setup.py", EXTENSION)
    bench.tree.write("acme/toy-pytorch/csrc/flagperf_test_extension.py", "x = 1\n")
    bench.tree.write(f"{VENDOR_CASE}/environment_variables.sh", "export ACME_HOME=/opt/acme\n")
    asyncio.run(bench.build())
    code = "import flagperf_test_extension; print(flagperf_test_extension.x)"
    assert bench.ask("run", "--rm", bench.image.tag, "python3", "-c", code) == "1"


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_a_comma_in_a_path_is_part_of_the_path(kind: str, tmp_path: Path) -> None:
    """The tree, the private folder with pip's settings and a folder of wheels are mounted from such paths."""
    engine = engine_with(BASE_IMAGE, kind)
    wheel(tmp_path / "wheels, all", "flagperf_test_offline")
    with make_bench(tmp_path / 'a, "b"', engine) as bench:
        bench.tree.write("benchmarks/toy/pytorch/requirements.txt", "flagperf-test-offline\n")
        bench.pip = PipSettings({"no-index": "true"}, None, (tmp_path / "wheels, all",))
        asyncio.run(bench.build())
        assert (
            bench.ask("run", "--rm", bench.image.tag, "python3", "-c", "import flagperf_test_offline") == ""
        )


def test_the_monitors_requirements_reach_an_image_whose_python_refuses_pip(
    bench: Bench, tmp_path: Path
) -> None:
    wheel(tmp_path / "wheels", "flagperf_test_offline")
    refuse = """python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))'"""
    bench.tree.write(
        f"{DOCKER}/Dockerfile", f'FROM {BASE_IMAGE}\nRUN touch "$({refuse})/EXTERNALLY-MANAGED"\n'
    )
    bench.tree.write("utils/monitors/requirements.txt", "flagperf-test-offline\n")
    bench.pip = PipSettings({"no-index": "true"}, None, (tmp_path / "wheels",))
    asyncio.run(bench.build())
    assert bench.ask("run", "--rm", bench.image.tag, "python3", "-c", "import flagperf_test_offline") == ""
