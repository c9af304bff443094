"""Apptainer and Pyxis: what they are asked for is in their documentation, and FAKEs of them run the units of a round.

What every runtime promises is tested in test_units.py, with Apptainer's FAKE among the others.
"""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.names import image_file
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.tool_options import NoSuchOptionError, Wanted, wanted_by
from run_benchmarks.plan.vendors import read_vendor
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Mount, Unit
from run_benchmarks.runtimes.image_file import ImageFileRuntime
from run_benchmarks.transports.base import CommandError, Transport
from run_benchmarks.transports.local import LocalTransport
from tests.fakes import apptainer, srun
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from tests.run_benchmarks.runtimes.conftest import (
    TRAINING,
    Bench,
    apptainer_bench,
    removed_afterwards,
    settings,
)
from utils.errors import FlagPerfError

TAG = "flagperf/acme-pytorch:0123456789ab"
SECRET = 'it`s $SECRET, "really"'
TASK = Unit(
    name="flagperf-run1-task",
    labels={"flagperf.run": "run1"},
    image=TAG,
    argv=("bash", "-c", "true"),
    env={"PYTHONUNBUFFERED": "1"},
    secrets={"TOKEN": SECRET},
    mounts=(
        Mount("/srv/flagperf/tree-1", "/code"),
        Mount("/srv/flagperf/runs/1", "/logs", read_only=False),
        Mount("/data", "/data"),
    ),
    options=("--gpus", "all", "--device=/dev/ib0", "-v", "/opt/x:/opt/x:ro", "--group-add=video"),
    shm_size="32G",
    tree="/code",
    workdir="/code",
    capabilities=("SYS_NICE",),
    host_network=True,
)


def boxed(kind: str, unit: Unit) -> tuple[tuple[str, ...], dict[str, str]]:
    """What the process runtime would start for a unit, and its variables."""
    runtime = open_runtime(settings(Path("/srv/flagperf"), runtime=kind))
    assert isinstance(runtime, ImageFileRuntime)
    started: list[Unit] = []

    class Noted(LocalTransport):
        async def run(self, argv: Any, **options: Any) -> Any:
            started.append(options.get("variables"))
            started.append(argv)
            return await super().run(("true",))

    asyncio.run(runtime.start(Noted("h1"), unit))
    variables, argv = started[-2:]
    assert isinstance(argv, tuple) and isinstance(variables, dict)
    return argv[argv.index("--") + 1 :], variables


def test_what_apptainer_is_asked_for() -> None:
    argv, variables = boxed("apptainer", TASK)
    image = image_file("/srv/flagperf/.flagperf", TAG, ".sif")
    workdir = "/srv/flagperf/.flagperf/units/flagperf-run1-task/workdir"
    assert argv == (
        *("sh", "-c", 'mkdir -p -m 700 "$0" && exec "$@"', workdir),
        *(
            "apptainer",
            "exec",
            "--containall",
            "--no-home",
            "--no-privs",
            "--no-eval",
            f"--workdir={workdir}",
            "--nv",
        ),
        "--mount=type=bind,source=/srv/flagperf/tree-1,destination=/code,ro",
        "--mount=type=bind,source=/srv/flagperf/runs/1,destination=/logs",
        "--mount=type=bind,source=/data,destination=/data,ro",
        "--mount=type=bind,source=/opt/x,destination=/opt/x,ro",
        "--mount=type=bind,source=/dev/ib0,destination=/dev/ib0",
        *("--pwd=/code", image, "bash", "-c", "true"),
    )
    handed = {name.removeprefix("APPTAINERENV_"): value for name, value in variables.items()}
    assert handed["TOKEN"] == SECRET and handed["PYTHONUNBUFFERED"] == "1"
    assert handed["FLAGPERF_UNIT"] == "flagperf-run1-task" and handed["FLAGPERF_RUN"] == "run1"


def test_a_unit_without_network_has_none_by_apptainer() -> None:
    argv, _ = boxed("apptainer", replace(TASK, host_network=False))
    assert {"--net", "--network=none"} < set(argv)


def test_a_path_of_any_form_is_one_mount_of_apptainer() -> None:
    odd = Mount('/data/a,b "c"', "/in:side")
    argv, _ = boxed("apptainer", replace(TASK, mounts=(odd,), options=()))
    assert '--mount=type=bind,"source=/data/a,b ""c""",destination=/in:side,ro' in argv


def test_what_pyxis_is_asked_for() -> None:
    argv, variables = boxed("pyxis", TASK)
    image = image_file("/srv/flagperf/.flagperf", TAG, ".sqsh")
    names = "HOME,NVIDIA_VISIBLE_DEVICES,NVIDIA_DRIVER_CAPABILITIES,PYTHONUNBUFFERED,TOKEN,FLAGPERF_UNIT,FLAGPERF_RUN"
    assert (
        argv[:2] == ("sh", "-c")
        and 'exec srun --jobid="$SLURM_JOB_ID" --nodelist="$SLURMD_NODENAME" "$@"' in argv[2]
    )
    assert argv[3:] == (
        *(
            "/srv/flagperf/.flagperf/units/flagperf-run1-task",
            "0",
            "--overlap",
            "--nodes=1",
            "--ntasks=1",
            "--cpu-bind=none",
            "--mpi=none",
            "--quiet",
        ),
        *(f"--export=PATH,{names}", f"--container-env={names}", f"--container-image={image}"),
        *("--no-container-mount-home", "--no-container-remap-root", "--no-container-entrypoint"),
        "--container-readonly",
        "--container-mounts=/srv/flagperf/tree-1:/code:ro,/srv/flagperf/runs/1:/logs,/data:/data:ro,/opt/x:/opt/x:ro",
        *("--container-workdir=/code", "bash", "-c", "true"),
    )
    assert variables["TOKEN"] == SECRET and variables["NVIDIA_VISIBLE_DEVICES"] == "all"


def test_a_folder_that_pyxis_cannot_name_gets_a_link() -> None:
    """As the log folder of each case whose name is its key."""
    logs, data = Mount("/runs/bert:pytorch:A:1:8:1", "/logs", read_only=False), Mount("/a,b", "/data")
    argv, _ = boxed("pyxis", replace(TASK, mounts=(logs, data), options=()))
    folder = "/srv/flagperf/.flagperf/units/flagperf-run1-task"
    assert argv[3:7] == (folder, "2", "/runs/bert:pytorch:A:1:8:1", "/a,b")
    assert f"--container-mounts={folder}/mount2:/logs,{folder}/mount1:/data:ro" in argv


def test_what_pyxis_cannot_show_under_its_name_is_an_error() -> None:
    with pytest.raises(FlagPerfError, match="with which Pyxis can mount nothing"):
        boxed("pyxis", replace(TASK, mounts=(Mount("/data", "/data/a b"),)))


def test_who_starts_a_unit_is_none_of_its_processes() -> None:
    """A unit that ends at once ends all that have its mark."""
    for kind in ("apptainer", "pyxis"):
        _, variables = boxed(kind, TASK)
        assert not {"FLAGPERF_UNIT", "FLAGPERF_RUN"} & set(variables)


@pytest.mark.parametrize("kind", ["apptainer", "pyxis"])
def test_no_value_of_a_variable_is_an_argument(kind: str) -> None:
    argv, _ = boxed(kind, replace(TASK, secrets={"TOKEN": "tell-nobody"}))
    assert not any("tell-nobody" in word for word in argv)


def test_what_options_ask_for() -> None:
    options = (
        "--gpus=all",
        "--device",
        "/dev/kfd",
        "--volume=/a:/b",
        "-e",
        "X=1=2",
        "--security-opt=seccomp=unconfined",
    )
    assert wanted_by(options) == Wanted(True, ("/dev/kfd",), (("/a", "/b", False),), (("X", "1=2"),))
    assert wanted_by(()) == Wanted()


@pytest.mark.parametrize(
    ("mode", "is_read_only"),
    [("ro,z", True), ("z,ro", True), ("ro,rslave", True), ("Z", False), ("rw", False), ("rshared,rw", False)],
)
def test_what_is_to_be_read_alone_is_not_mounted_to_be_written(mode: str, is_read_only: bool) -> None:
    assert wanted_by((f"--volume=/a:/b:{mode}",)).folders == (("/a", "/b", is_read_only),)


@pytest.mark.parametrize(
    ("mode", "word"), [("ro,nocopy", "nocopy"), ("RO", "RO"), ("rw,ro", "ro,rw"), ("", "")]
)
def test_a_mode_of_a_volume_that_says_something_else_is_named(mode: str, word: str) -> None:
    with pytest.raises(NoSuchOptionError, match=f"'{word}' of --volume"):
        wanted_by((f"--volume=/a:/b:{mode}",))


@pytest.mark.parametrize(
    "option",
    [
        "--privileged",
        "--cap-add=SYS_PTRACE",
        "--runtime=x",
        "--gpus=2",
        "--device=/a:/b",
        "--volume=name:/b",
        "--env=X",
    ],
)
def test_what_only_an_engine_can_do_is_named(option: str) -> None:
    with pytest.raises(NoSuchOptionError, match=option.partition("=")[0]):
        wanted_by((option,))


def test_which_vendors_need_a_line_of_their_own() -> None:
    """docs/cluster.md names them."""
    refused = set()
    for path in sorted(TRAINING.glob("*/vendor.py")):
        vendor = read_vendor(path.parent.name, TRAINING, "", "", Problems())
        assert vendor is not None
        try:
            wanted_by(vendor.options_for(2))
        except NoSuchOptionError:
            refused.add(vendor.name)
    assert refused == {"ascend", "hygon", "iluvatar", "intel", "mthreads"}


class TestPlan:
    """What is refused before anything is launched."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Tree:
        tree = make_tree(tmp_path)
        tree.configure(cluster_conf="HOSTS = slurm()\n")
        return tree

    def problem(self, tree: Tree, more: str, text: str = TEST_CONF) -> str:
        tree.configure(test_conf=f"{text}{more}")
        (problem,) = tree.problems()[1]  # one, and no other
        return f"{problem.name}: {problem.message}; {problem.remedy}"

    @pytest.mark.parametrize("kind", ["apptainer", "pyxis"])
    def test_options_of_engines(self, kind: str, tree: Tree) -> None:
        said = self.problem(tree, f'RUNTIME = "{kind}"\nACCE_CONTAINER_OPT = "--privileged"\n')
        assert "ACCE_CONTAINER_OPT: --privileged is a container engine's" in said and "--device" in said

    @pytest.mark.parametrize("kind", ["apptainer", "pyxis"])
    def test_images_that_each_node_builds(self, kind: str, tree: Tree) -> None:
        said = self.problem(
            tree, f'RUNTIME = "{kind}"\nIMAGE_DISTRIBUTION = "build"\nACCE_CONTAINER_OPT = ""\n'
        )
        assert said.startswith("IMAGE_DISTRIBUTION: is for container engines")

    def test_paths_that_pyxis_cannot_name(self, tree: Tree) -> None:
        text = TEST_CONF.replace("/data/toy", "/data/a,b")
        said = self.problem(tree, 'RUNTIME = "pyxis"\nACCE_CONTAINER_OPT = ""\n', text)
        assert "'/data/a,b' has a colon, a comma or a blank" in said

    def test_checkpoints_that_pyxis_cannot_name(self, tree: Tree) -> None:
        said = self.problem(tree, 'RUNTIME = "pyxis"\nACCE_CONTAINER_OPT = ""\nCHECKPOINT_PATH = "/ckpt"\n')
        assert "CHECKPOINT_PATH: has folders that are named like cases" in said and "toy:pytorch" in said

    def test_pyxis_without_slurm(self, tree: Tree) -> None:
        tree.configure(cluster_conf='HOSTS = ["h1"]\n')
        said = self.problem(tree, 'RUNTIME = "pyxis"\nACCE_CONTAINER_OPT = ""\n')
        assert "RUNTIME: is a part of Slurm" in said and "slurm(...)" in said

    def test_what_can_be_done_is_a_plan(self, tree: Tree) -> None:
        tree.configure(test_conf=f'{TEST_CONF}RUNTIME = "apptainer"\nACCE_CONTAINER_OPT = "--gpus all"\n')
        run = tree.load().run
        assert (run.runtime, run.uses_images, run.uses_engine) == ("apptainer", True, False)


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Apptainer's FAKE."""
    yield from apptainer_bench(tmp_path, monkeypatch)


def test_what_is_mounted_is_read_only_and_the_host_is_not_seen(boxes: Bench) -> None:
    for name in ("code", "logs"):
        (boxes.folder / name).mkdir()
    mounts = (
        Mount(str(boxes.folder / "code"), "/code"),
        Mount(str(boxes.folder / "logs"), "/logs", read_only=False),
    )
    script = (
        "echo x >/logs/written; echo x >/code/written && exit 1; mkdir -p /tmp/flagperf-scratch || exit 2; "
        'echo "$HOST_SECRET|$(ls /proc | grep -c "^[0-9]")"; sed 1,2d /proc/net/dev | cut -d: -f1'
    )
    os.environ["HOST_SECRET"] = "of the controller"
    try:
        code, output = boxes.end_of(boxes.unit(script, mounts=mounts))
    finally:
        del os.environ["HOST_SECRET"]
    assert code == 0, output
    assert (boxes.folder / "logs" / "written").read_text() == "x\n"
    assert list((boxes.folder / "code").iterdir()) == []
    lines = output.splitlines()
    environment, processes = next(line for line in lines if "|" in line).split("|")
    assert environment == "" and int(processes) < 10, "its own processes alone"
    assert lines[-1].strip() == "lo", "it has asked for no network"


def test_what_a_container_writes_to_tmp_goes_with_the_unit(boxes: Bench) -> None:
    unit = boxes.unit("exec sleep 600")

    async def scenario(transport: Transport) -> None:
        await boxes.runtime.start(transport, unit)
        folder = boxes.folder / ".flagperf" / "units" / unit.name
        while not (folder / "workdir").is_dir():  # the unit makes it, once it has started
            await asyncio.sleep(0.02)
        assert await boxes.runtime.remove_all(transport, boxes.run) == (unit.name,)
        assert not folder.exists()

    boxes.use(scenario)


def test_an_image_that_is_not_there_is_an_end_with_a_reason(boxes: Bench) -> None:
    unit = boxes.unit("true", image="flagperf/none:0123456789ab")
    assert boxes.code_of(unit) == 255
    assert "could not open image" in boxes.use(lambda t: boxes.runtime.last_output(t, unit.name))


def test_nothing_is_run_beside_a_unit(boxes: Bench) -> None:
    with pytest.raises(FlagPerfError, match="nothing can be run beside"):
        boxes.use(lambda t: boxes.runtime.run_inside(t, "unit", b"", timeout=5))


@pytest.mark.parametrize(
    ("said", "is_right"), [("apptainer version 1.1.0", True), ("apptainer version 1.0.3", False), ("", False)]
)
def test_an_apptainer_that_is_too_old(said: str, is_right: bool, boxes: Bench) -> None:
    program = boxes.folder / "bin" / "apptainer"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    if is_right:
        assert boxes.use(boxes.runtime.version).startswith("apptainer version 1.1.0, python 3")
    else:
        with pytest.raises(CommandError) as caught:
            boxes.use(boxes.runtime.version)
        assert "install Apptainer 1.1 or newer" in caught.value.remedy


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Pyxis's FAKE, in what would be a step of a job."""
    monkeypatch.setenv("PATH", f"{srun.install(tmp_path / 'bin')}:{os.environ['PATH']}")
    given = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1", "SLURM_NTASKS": "4", "SLURM_CPU_BIND": "quiet"}
    for name, value in {**given, "FAKE_SRUN_LOG": str(tmp_path / "asked")}.items():
        monkeypatch.setenv(name, value)
    runtime = open_runtime(settings(tmp_path, runtime="pyxis"))
    assert isinstance(runtime, ImageFileRuntime)
    image = Path(runtime.image_path(TAG))
    image.parent.mkdir(parents=True)
    image.touch()
    yield from removed_afterwards(Bench(runtime, f"test-{uuid.uuid4().hex[:12]}", tmp_path))


def test_a_node_that_says_nothing_of_pyxis_has_none(tmp_path: Path) -> None:
    """FAKE: the node."""
    runtime, node = (
        open_runtime(settings(tmp_path, runtime="pyxis")),
        AnsweringHost({"srun --help": (0, "", "")}),
    )
    with pytest.raises(CommandError) as caught:
        asyncio.run(runtime.version(node))
    assert "with Pyxis" in caught.value.remedy


def test_a_unit_is_a_step_of_its_job_on_its_node(steps: Bench, tmp_path: Path) -> None:
    secrets = {"TOKEN": SECRET}
    unit = steps.unit('echo "$TOKEN|$HOME|$SLURM_NTASKS"', image=TAG, secrets=secrets)

    async def scenario(transport: Transport) -> str:
        await steps.runtime.start(transport, unit)
        assert await steps.runtime.wait(transport, unit.name) == 0
        return await steps.runtime.last_output(transport, unit.name)

    assert steps.use(scenario) == f"{SECRET}|/tmp|"
    asked = json.loads((tmp_path / "asked").read_text())
    assert (asked["options"]["--jobid"], asked["options"]["--nodelist"]) == ("7", "n1")
    assert asked["left"] == ["SLURMD_NODENAME", "SLURM_JOB_ID"], "what else Slurm had set are options of srun"


def test_steps_are_listed_and_removed_by_their_run(steps: Bench) -> None:
    async def scenario(transport: Transport) -> None:
        first, second = (steps.unit("sleep 600 & wait", image=TAG, name=name) for name in "ab")
        await asyncio.gather(*(steps.runtime.start(transport, unit) for unit in (first, second)))
        listed = await steps.runtime.list_units(transport, steps.run)
        assert {unit.name: unit.running for unit in listed} == {first.name: True, second.name: True}
        await steps.runtime.stop(transport, first.name, 0)
        assert await steps.runtime.wait(transport, first.name) == 137
        assert sorted(await steps.runtime.remove_all(transport, steps.run)) == [first.name, second.name]
        assert await steps.runtime.list_units(transport, steps.run) == ()

    steps.use(scenario)


def test_where_there_is_no_step_or_no_pyxis_the_preflight_says_so(
    steps: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert steps.use(steps.runtime.version).startswith(f"Pyxis of {srun.VERSION}, python 3")
    (tmp_path / "bin" / "srun").write_text("#!/bin/sh\necho '--nodes'\n")
    with pytest.raises(CommandError) as caught:
        steps.use(steps.runtime.version)
    assert "`srun --help` there shows --container-env" in caught.value.remedy
    srun.install(tmp_path / "bin")
    monkeypatch.delenv("SLURM_JOB_ID")
    monkeypatch.delenv("SLURMD_NODENAME")
    with pytest.raises(CommandError):
        steps.use(steps.runtime.version)


def test_what_is_asked_for_is_documented() -> None:
    """The options that the FAKEs take are those of the documentation; what else is asked for they refuse."""
    for kind, program, flags, values in (
        ("apptainer", "apptainer", apptainer.FLAGS, apptainer.VALUES),
        ("pyxis", "--overlap", srun.FLAGS, srun.VALUES),
    ):
        argv, _ = boxed(kind, TASK)
        options = [word for word in argv[argv.index(program) :] if word.startswith("--")]
        assert {word.partition("=")[0] for word in options} <= flags | values
