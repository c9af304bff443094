"""The container runtime: its command lines, and what they really do in this machine's engines."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.plan.handover import PROXIES
from run_benchmarks.runtimes import open_runtime, submounts
from run_benchmarks.runtimes.base import Mount, Unit
from run_benchmarks.runtimes.engine import Engine, Podman, engine_of, mount_targets
from run_benchmarks.runtimes.submounts import with_submounts
from run_benchmarks.transports.base import CommandError, Completed, Transport
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.transports import AnsweringHost
from tests.lab import tiny_image
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.runtimes.conftest import Bench, bench_of, need_engine, settings
from utils.errors import FlagPerfError

DOCKER = Engine("docker")
UNIT = Unit(
    name="flagperf-run1-case-round1-node0-task",
    labels={"flagperf.run": "run1", "flagperf.role": "task"},
    image="flagperf/cpu-pytorch:abc",
    argv=("bash", "-c", 'exec "$@"', "task", "python3"),
    env={"PYTHONUNBUFFERED": "1"},
    mounts=(Mount("/srv/tree", "/flagperf"), Mount("/srv/logs, all", "/logs", read_only=False)),
    options=("--gpus", "all"),
    shm_size="32G",
    workdir="/flagperf",
    capabilities=("SYS_NICE",),
    host_network=True,
)


def test_start_argv_is_a_command_that_can_be_typed() -> None:
    assert DOCKER.start(UNIT) == (
        *("docker", "run", "--pull=never", "--name=flagperf-run1-case-round1-node0-task"),
        *("--label=flagperf.run=run1", "--label=flagperf.role=task"),
        "--mount=type=bind,source=/srv/tree,target=/flagperf,readonly",
        '--mount=type=bind,"source=/srv/logs, all",target=/logs',
        *("--workdir=/flagperf", "--detach"),
        *("--net=host", "--uts=host", "--ipc=private", "--init"),
        *("--cap-drop=ALL", "--cap-add=SYS_NICE", "--security-opt=no-new-privileges"),
        *("--ulimit=memlock=-1", "--ulimit=stack=67108864"),
        *("--log-driver=json-file", "--log-opt=max-size=16m"),
        "--shm-size=32G",
        *(f"--env={name}=" for name in sorted(PROXIES)),
        "--env=PYTHONUNBUFFERED=1",
        *("--gpus", "all", "--entrypoint=bash", "flagperf/cpu-pytorch:abc"),
        *("-c", 'exec "$@"', "task", "python3"),
    )


def test_podman_is_recognised_by_its_name_wherever_it_lies() -> None:
    for command in ("podman", "/usr/local/bin/podman"):
        assert isinstance(engine_of(command), Podman)
    assert not isinstance(engine_of("docker"), Podman)


@pytest.mark.parametrize(
    ("stderr", "remedy"),
    [
        ("Error: container-init binary not found on the host: stat /x/catatonit", "install catatonit on h1"),
        ("Error: no subuid ranges found for user", "--add-subuids"),
        ('exec: "newuidmap": executable file not found in $PATH', "install uidmap on h1"),
        ("Error: statfs /dev/mqueue: no such file or directory", "mount -t mqueue"),
        ("Error: something else, permission denied", ""),
    ],
)
def test_what_podman_lacks_on_a_host_is_named(stderr: str, remedy: str) -> None:
    failed = Completed("h1", ("podman", "info"), 125, "", stderr)
    assert remedy in engine_of("podman").remedy(failed)
    assert bool(engine_of("podman").remedy(failed)) == bool(remedy)


@pytest.mark.parametrize("options", [("--privileged",), ("--cap-add=ALL",), ("--cap-add", "all")])
def test_a_vendors_options_for_all_capabilities_win(options: tuple[str, ...], tmp_path: Path) -> None:
    """Podman takes dropping all and adding all for an error. Docker refuses to give what a sandbox has not itself."""
    assert not [
        word for word in DOCKER.start(replace(UNIT, options=options))[:-4] if word.startswith("--cap-d")
    ]
    for podman in bench_of("podman", tmp_path):
        unit = podman.unit("cat /proc/self/status", capabilities=("SYS_NICE",), options=options)
        ended, output = podman.end_of(unit)
        assert ended == 0
        assert status_of(output)["CapEff"] == status_of(Path("/proc/self/status").read_text())["CapBnd"]


@pytest.mark.parametrize("options", [("--net=host",), ("--network", "host"), ("--pid=host", "--ipc=host")])
def test_a_vendors_namespaces_win(options: tuple[str, ...], containers: Bench) -> None:
    """Given twice, Docker would take the network for an error."""
    unit = containers.unit("cd /proc/self/ns; ls -l net pid ipc", options=options)
    ended, output = containers.end_of(unit)
    assert ended == 0
    for name in ("net", "pid", "ipc"):
        asked = any(f"--{name}" in option or (name == "net" and option == "--network") for option in options)
        assert (str(Path(f"/proc/self/ns/{name}").readlink()) in output) == asked


def status_of(output: str) -> dict[str, str]:
    """A process's status, as /proc tells it."""
    return {name: value.strip() for name, _, value in (line.partition(":") for line in output.splitlines())}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["--shm-size=32G"]),
        (("--shm-size", "1g"), ["--shm-size=1g"]),
        (("--ipc=host",), ["--mount=type=tmpfs,target=/dev/shm,tmpfs-size=32G,tmpfs-mode=1777"]),
        (
            ("--ipc", "host", "--shm-size=2g"),
            ["--mount=type=tmpfs,target=/dev/shm,tmpfs-size=2g,tmpfs-mode=1777"],
        ),
        (("-v", "/dev/shm:/dev/shm"), []),
        (("--tmpfs=/dev/shm:size=1g",), []),
    ],
)
def test_shared_memory_under_the_users_options(options: tuple[str, ...], expected: list[str]) -> None:
    argv = DOCKER.start(Unit("u", {}, "i", ("a",), options=options, shm_size="32G"))
    before_options = argv[: len(argv) - len(options) - 2]
    assert [word for word in before_options if "shm" in word] == expected


def test_path_inside() -> None:
    runtime = open_runtime(settings(Path("/srv")))
    mounts = (Mount("/srv", "/host"), Mount("/srv/tree/", "/flagperf"))
    assert runtime.path_inside(mounts, "/srv/tree/utils") == "/flagperf/utils"
    assert runtime.path_inside(mounts, "/srv/tree") == "/flagperf"
    assert runtime.path_inside(mounts, "/srv/treetop") == "/host/treetop"
    with pytest.raises(FlagPerfError, match="no mount shows /data"):
        runtime.path_inside(mounts, "/data")


def mounted_shm(output: str) -> str:
    return next(line for line in output.splitlines() if line.split()[1] == "/dev/shm")


@pytest.mark.parametrize("options", [(), ("--ipc=host",)])
def test_shm_size_has_its_effect(options: tuple[str, ...], containers: Bench) -> None:
    """With --ipc=host an engine ignores --shm-size without a word; the size that is asked for must be there."""
    unit = containers.unit("cat /proc/mounts", shm_size="96m", options=options)
    ended, output = containers.end_of(unit)
    assert ended == 0
    assert "size=98304k" in mounted_shm(output)
    assert "mode=" not in mounted_shm(output) or "mode=1777" in mounted_shm(output)


def test_the_engines_own_proxy_is_no_units(containers: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker gives containers the proxies of its config.json, Podman those of its environment, passwords and all."""
    config = {"proxies": {"default": {"httpProxy": "http://a:pw@b:1", "httpsProxy": "http://a:pw@b:1"}}}
    (containers.folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("DOCKER_CONFIG", str(containers.folder))
    for name in ("http_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://a:pw@b:1")
    script = 'echo "$http_proxy,$HTTP_PROXY,$https_proxy,$HTTPS_PROXY"'
    unit = containers.unit(script, options=("-e", "https_proxy=http://its-own:1"))
    assert containers.end_of(unit) == (0, ",,http://its-own:1,")


def test_the_main_process_gets_its_signals(containers: Bench) -> None:
    """As process 1 of its namespace, without an init, a program without handlers would not see SIGTERM."""

    async def scenario(transport: Transport) -> int:
        unit = containers.unit("", argv=("sleep", "1000"))
        await containers.runtime.start(transport, unit)
        await containers.runtime.stop(transport, unit.name, 50)
        return await containers.runtime.wait(transport, unit.name)

    assert containers.use(scenario) == 143


def test_mounts_are_read_only_unless_said(containers: Bench) -> None:
    (containers.folder / "in").mkdir()
    (containers.folder / "out, all").mkdir()
    mounts = (
        Mount(str(containers.folder / "in"), "/in"),
        Mount(str(containers.folder / "out, all"), "/out", read_only=False),
    )
    unit = containers.unit("echo x >/out/file; echo x >/in/file || exit 7", mounts=mounts)
    assert containers.end_of(unit)[0] == 7
    assert (containers.folder / "out, all" / "file").read_text() == "x\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_what_is_mounted_below_a_read_only_folder_is_read_only(containers: Bench) -> None:
    """A recursive bind mount is read-only at its top alone; an NFS mount below a folder of data is common."""
    data = containers.folder / "data"
    places = [data / "nfs", data / "nfs" / "deep", data / "a, b", data / "users"]
    with mounted(places):
        (containers.folder / "link").symlink_to("data")
        unit = containers.unit(
            'for f; do echo x >"/in/$f/planted" && echo "$f"; done; exit 0',
            *("nfs", "nfs/deep", "a, b", "users"),
            mounts=(Mount(str(containers.folder / "link"), "/in"),),
            options=("-v", f"{data}/users:/in/users"),
        )
        code, output = containers.end_of(unit)
        assert (code, output.splitlines()[-1]) == (0, "users"), output
        assert [place.name for place in places if (place / "planted").exists()] == ["users"]


@contextmanager
def mounted(places: Sequence[Path]) -> Iterator[None]:
    """A file system in memory at each of these."""
    with ExitStack() as stack:
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
            stack.callback(subprocess.run, ["umount", str(place)], check=True)
        yield


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_what_no_container_could_reach_needs_no_mount_of_its_own(containers: Bench) -> None:
    """A mount below one that came later."""
    data = containers.folder / "data"
    with mounted([data / "x" / "y", data / "x"]):
        unit = containers.unit("ls /in; echo x >/in/x/planted || exit 7", mounts=(Mount(str(data), "/in"),))
        code, output = containers.end_of(unit)
        assert code == 7 and "x" in output.splitlines(), output


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_another_users_fuse_below_a_read_only_folder_is_refused(containers: Bench) -> None:
    """Not even root may look at it, so that no engine could make it read-only."""
    data = containers.folder / "data"
    data.mkdir()
    unit = containers.unit("true", mounts=(Mount(str(data), "/in"),))
    with fuse_of_another_user(data / "fuse"), pytest.raises(FlagPerfError, match="user ID 12345"):
        containers.end_of(unit)


MOUNTINFO = """\
22 1 8:1 / / rw - ext4 /dev/sda rw
23 22 0:5 / /data/a\\040b rw - nfs server:/x rw
24 22 0:6 / /data/closed/x rw - nfs server:/y rw
26 22 0:8 / /data/lent rw - fuse.sshfs them@h: rw,user_id=1001,group_id=1001,allow_other
27 23 0:9 / /data/a\\040b/deep rw - tmpfs none rw
28 22 0:10 / /data/over/below rw - tmpfs none rw
29 28 0:11 / /data/over/below/deep rw - tmpfs none rw
30 22 0:12 / /data/over rw - tmpfs none rw
"""


@pytest.mark.parametrize(
    ("engine", "rootless", "reached"),
    [
        ("docker", 0, {"a b", "a b/deep", "closed/x", "lent", "over"}),
        ("docker", 1, {"a b/deep"}),
        ("podman", 1, {"a b/deep"}),
    ],
)
def test_what_containers_reach_is_roots_or_a_users(engine: str, rootless: int, reached: set[str]) -> None:
    """FAKE: the host's mounts, whether the engine is root's, and what its user sees of them."""
    host = AnsweringHost({
        "mountinfo": (0, f"/data\0{MOUNTINFO}", ""),
        engine_of(engine).IS_ROOTS: (rootless, "", ""),
        "stat": (0, "no\nno\nno\nyes\nno\n", ""),
    })  # fmt: skip
    made = asyncio.run(with_submounts(host, engine_of(engine), [Mount("/data", "/in")]))
    assert {mount.inside.removeprefix("/in/") for mount in made[1:]} == reached
    assert all(mount.read_only and mount.host == f"/data{mount.inside[3:]}" for mount in made)


THEIRS = "25 22 0:7 / /data/theirs rw shared:7 - fuse.sshfs them@h: rw,user_id=1001,group_id=1001\n"


def test_what_fuse_keeps_from_root_is_refused_by_name() -> None:
    """FAKE: the host's mounts. An image of which the `USER` is 1001 could write to it."""
    host = AnsweringHost({
        "mountinfo": (0, f"/data\0{MOUNTINFO}{THEIRS}", ""),
        DOCKER.IS_ROOTS: (0, "", ""),
    })  # fmt: skip
    with pytest.raises(FlagPerfError, match=r"/data/theirs \(user ID 1001\)") as caught:
        asyncio.run(with_submounts(host, DOCKER, [Mount("/data", "/in")]))
    assert "allow_other" in caught.value.remedy


def lines_of_mounts(count: int) -> str:
    return "".join(f"{30 + number} 22 0:9 / /data/{number} rw - tmpfs none rw\n" for number in range(count))


def test_more_mounts_than_a_container_can_be_given_are_refused() -> None:
    """FAKE: the host's mounts. What it says of other folders counts for nothing."""
    others = lines_of_mounts(submounts.MOST_BELOW + 1).replace("/data/", "/other/")
    host = AnsweringHost(
        {"mountinfo": (0, f"/data\0{others}{lines_of_mounts(9)}", ""), DOCKER.IS_ROOTS: (0, "", "")}
    )
    assert len(asyncio.run(with_submounts(host, DOCKER, [Mount("/data", "/in")]))) == 1 + 9
    host.answers["mountinfo"] = (0, f"/data\0{lines_of_mounts(submounts.MOST_BELOW + 1)}", "")
    with pytest.raises(FlagPerfError, match="below /data lie more than") as caught:
        asyncio.run(with_submounts(host, DOCKER, [Mount("/data", "/in")]))
    assert caught.value.where == "node1" and "findmnt" in caught.value.remedy


def test_of_a_host_that_prints_mounts_without_end_no_more_is_held_than_a_list_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endless = "head -c 5000000 /dev/zero | tr '\\0' x"
    monkeypatch.setattr(submounts, "LIST", endless)
    with pytest.raises(FlagPerfError, match=f"more than the {submounts.LONGEST_LISTING} characters"):
        asyncio.run(with_submounts(LocalTransport("node1"), DOCKER, [Mount("/data", "/in")]))


@contextmanager
def fuse_of_another_user(place: Path) -> Iterator[None]:
    """Without a server: who may not look at it is refused before one is asked."""
    place.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=12345,group_id=12345"
    try:
        argv = ["mount", "--internal-only", "--types=fuse", "none", str(place), "-o", options]
        subprocess.run(argv, check=True, pass_fds=[device])
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)
        os.close(device)


def test_targets_of_a_users_mounts() -> None:
    options = ("-v", "/a:/b/:ro", "--volume=/c", "--tmpfs", "/d:size=1g", "--mount=type=bind,src=/e,dst=/f")
    assert mount_targets(options) == {"/b", "/c", "/d", "/f"}


def test_a_mount_whose_host_path_is_missing_is_an_error(containers: Bench) -> None:
    unit = containers.unit("true", mounts=(Mount(str(containers.folder / "missing"), "/in"),))
    with pytest.raises(CommandError, match=r"does not exist|no such file"):
        containers.end_of(unit)
    assert not (containers.folder / "missing").exists()
    assert containers.use(lambda t: containers.runtime.remove_all(t, containers.run)) in ((), (unit.name,))
    assert containers.use(lambda t: containers.runtime.list_units(t, containers.run)) == ()


@pytest.fixture
def image_with_entrypoint(containers: Bench) -> Iterator[str]:
    name = "flagperf-test:entrypoint"
    build = f'FROM {tiny_image.NAME}\nENTRYPOINT ["/bin/cat"]\nCMD ["/etc/passwd"]\n'
    subprocess.run(
        [*containers.engine, "build", "-qt", name, "-"], input=build.encode(), check=True, capture_output=True
    )
    yield name
    subprocess.run([*containers.engine, "rmi", "--force", name], check=True, capture_output=True)


def test_an_images_own_entrypoint_does_not_matter(image_with_entrypoint: str, containers: Bench) -> None:
    assert containers.end_of(containers.unit("echo mine", image=image_with_entrypoint)) == (0, "mine")


def test_an_image_that_is_not_there(containers: Bench) -> None:
    """No registry is asked for it: under the same name it may have anybody's."""
    with pytest.raises(CommandError, match=r"flagperf-test/missing") as raised:
        containers.end_of(containers.unit("true", image="localhost:1/flagperf-test/missing:1"))
    assert "brings the image anew" in raised.value.remedy


def test_a_container_that_could_not_start_is_cleaned_up(containers: Bench) -> None:
    """Docker keeps a container whose device is missing, in the state Created; Podman makes none."""
    unit = containers.unit("true", options=("--device=/dev/no-such-device",))
    with pytest.raises(CommandError, match="no-such-device"):
        containers.end_of(unit)
    removed = containers.use(lambda t: containers.runtime.remove_all(t, containers.run))
    assert removed == (() if containers.engine[-1].endswith("podman") else (unit.name,))
    assert containers.use(lambda t: containers.runtime.list_units(t, containers.run)) == ()


def test_containers_that_vanish_meanwhile(containers: Bench) -> None:
    async def scenario(transport: Transport) -> None:
        units = [containers.unit("sleep 100", name=name) for name in "abcd"]
        for unit in units:
            await containers.runtime.start(transport, unit)
        vanish = (transport.run([*containers.engine, "rm", "-f", unit.name]) for unit in units[:2])
        await asyncio.gather(containers.runtime.remove_all(transport, containers.run), *vanish)
        assert await containers.runtime.list_units(transport, containers.run) == ()

    containers.use(scenario)


def test_an_engine_that_does_not_run(tmp_path: Path) -> None:
    engine = _engine(tmp_path, f'exec env DOCKER_HOST=unix://{tmp_path}/no.sock docker "$@"')
    bench = Bench(open_runtime(settings(tmp_path, container_engine=engine)), "none", tmp_path)
    need_client()
    with pytest.raises(CommandError) as caught:
        bench.use(bench.runtime.version)
    assert "systemctl start docker" in caught.value.remedy


@pytest.mark.parametrize(
    "line",
    [
        "[1,2]",
        '["/x",true,{"flagperf.run":5}]',
        '["/x",true,[]]',
        '["/x",true,["run1"]]',
        '["/x","true",null]',
        pytest.param("[" * 10**5, id="deep"),
    ],
)
def test_an_engine_that_describes_a_container_oddly(line: str, tmp_path: Path) -> None:
    """It ended `cleanup` for all hosts. The engine is a FAKE."""
    some_id = "ab" * 32
    engine = _engine(tmp_path, f'case "$1" in ps) echo {some_id};; inspect) echo {shlex.quote(line)};; esac')
    bench = Bench(open_runtime(settings(tmp_path, container_engine=engine)), "none", tmp_path)
    with pytest.raises(FlagPerfError, match="describes a container as"):
        bench.use(bench.runtime.list_units)


def test_what_is_no_id_becomes_no_word_of_a_command(tmp_path: Path) -> None:
    """The engine is a FAKE."""
    engine = _engine(tmp_path, f'case "$1" in ps) echo --all;; *) touch {tmp_path}/done;; esac')
    bench = Bench(open_runtime(settings(tmp_path, container_engine=engine)), "none", tmp_path)
    with pytest.raises(CommandError) as caught:
        bench.use(lambda transport: bench.runtime.remove_all(transport, "run20261128000000-abcdef"))
    assert "no container's ID" in caught.value.remedy and not (tmp_path / "done").exists()


def test_a_containers_id_among_other_words_is_one(tmp_path: Path, log_lines: LogLines) -> None:
    """As of a wrapper, or a shell, that prints something behind each command. The engine is a FAKE."""
    some_id, gone = "ab" * 32, tmp_path / "gone"
    listed = f'[ -e {gone} ] || printf "%s\\n" {some_id} --all BYE'
    script = f'case "$1" in ps) {listed};; rm) echo "$@" >{gone};; esac'
    bench = Bench(
        open_runtime(settings(tmp_path, container_engine=_engine(tmp_path, script))), "none", tmp_path
    )
    bench.use(lambda transport: bench.runtime.remove_all(transport, "run20261128000000-abcdef"))
    assert gone.read_text().split()[1:] == ["--force", "--volumes", some_id]
    assert "prints what is no container's ID, and is passed over: --all BYE" in log_lines.text


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_user_who_may_not_use_the_engine(tmp_path: Path) -> None:
    need_engine()
    engine = _engine(tmp_path, 'exec setpriv --reuid=65534 --regid=65534 --clear-groups docker "$@"')
    bench = Bench(open_runtime(settings(tmp_path, container_engine=engine)), "none", tmp_path)
    with pytest.raises(CommandError) as caught:
        bench.use(bench.runtime.version)
    assert "usermod -aG docker" in caught.value.remedy


# The engine's words where it may not raise limits, as Docker 20.10 said them in a sandbox without SYS_RESOURCE.
LIMITS_REFUSED = (
    "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: error setting rlimits for ready process: "
    "error setting rlimit type 8: operation not permitted: unknown"
)
# A stand-in for such an engine: it refuses raised limits, leaves the container as the real one does, and is the
# real one otherwise.
LIMITED_ENGINE = """\
case "$*" in
  *--ulimit=*)
    for word; do
      shift
      case "$word" in run) set -- "$@" create ;; --detach | --ulimit=*) ;; *) set -- "$@" "$word" ;; esac
    done
    {engine} "$@"
    echo "{message}" >&2
    exit 125 ;;
esac
exec {engine} "$@"
"""


def test_labels_of_an_image_without_bounds_hide_no_unit(containers: Bench) -> None:
    """More of them than is held of a command's output; given to the container, as those of an image would be."""
    labels = containers.folder / "labels"
    labels.write_text("".join(f"label{number}={'x' * 40_000}\n" for number in range(30)))
    options = (f"--label-file={labels}", "--label=flagperf.case=" + "x" * 100_000)

    async def scenario(transport: Transport) -> dict[str, str]:
        for name, given in (("flood", options), ("other", ())):
            await containers.runtime.start(transport, containers.unit("exit 0", name=name, options=given))
        units = await containers.runtime.list_units(transport, containers.run)
        return {unit.name: unit.labels["flagperf.role"] for unit in units}

    assert containers.use(scenario) == {f"{containers.run}-{name}": name for name in ("flood", "other")}


def test_an_engine_that_may_not_raise_limits(containers: Bench, log_lines: LogLines) -> None:
    script = LIMITED_ENGINE.replace("{message}", LIMITS_REFUSED)
    engine = _engine(containers.folder, script.replace("{engine}", shlex.join(containers.engine)))
    runtime = open_runtime(settings(containers.folder, container_engine=engine))
    bench = Bench(runtime, containers.run, containers.folder)
    assert bench.end_of(bench.unit("exit 3", name="a"))[0] == 3
    assert bench.end_of(bench.unit("exit 4", name="b"))[0] == 4
    assert log_lines.text.count("may not raise") == 1


def test_podmans_limit_of_processes_is_raised_like_the_others() -> None:
    """By itself it has one, 2048 threads, of which an honest task's loaders die; rootless it may not be raised."""
    podman = engine_of("podman")
    assert "--pids-limit=-1" in podman.start(UNIT)
    assert not [word for word in podman.start(UNIT, raise_limits=False) if "limit" in word]
    assert not [word for word in DOCKER.start(UNIT) if "pids" in word]
    refused = (
        "crun: the requested cgroup controller `pids` is not available: OCI runtime error",
        "Error: cannot set limits without cgroups: OCI runtime error",
        "Error: invalid configuration, cannot specify resource limits without cgroups v2 and --cgroup-manager=systemd",
        LIMITS_REFUSED,
    )
    for message, is_of_limits in (
        *((message, True) for message in refused),
        ("no such image: rapids", False),
    ):
        assert podman.refuses_limits(Completed("h1", (), 125, "", message)) == is_of_limits


def _engine(folder: Path, script: str) -> str:
    """A command that stands in for the engine's own: a shell script."""
    path = folder / "engine"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def need_client() -> None:
    if shutil.which("docker") is None:
        pytest.skip("no docker command on this machine")
