"""What a case's code tries from its container, and what a monitor could do: real units in this machine's engines."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.frameworks import open_framework
from run_benchmarks.names import HostPaths, Node, RunId, host_paths, nodes_of
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Unit
from run_benchmarks.stages.checkpoints import checkpoint_folders, make_checkpoint_folders
from run_benchmarks.stages.launch import TASK_CAPABILITIES, Launch
from run_benchmarks.stages.run_folder import make_node_folder
from tests.lab import tiny_image
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree
from tests.run_benchmarks.runtimes.conftest import Bench
from tests.run_benchmarks.runtimes.test_containers import status_of

RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")
# The numbers of capabilities(7).
CAPABILITY_BITS = {"DAC_OVERRIDE": 1, "SYS_NICE": 23}
OTHER_USER = 12345


class Confined:
    """The units of a round on this machine, as a plan makes them; in place of their programs they run scripts."""

    def __init__(self, containers: Bench) -> None:
        self.bench = containers
        tree = make_tree(containers.folder)
        self.data = containers.folder / "data"
        self.data.mkdir()
        paths = f'FLAGPERF_PATH_HOST = "{containers.folder}/fp"\nFLAGPERF_PATH_CONTAINER = "/code"\n'
        conf = TEST_CONF.replace('FLAGPERF_PATH = "/home/flagperf/training"\n', paths)
        conf = conf.replace("/data/toy", str(self.data)).replace('"32G"', '"64m"')
        tree.configure(test_conf=conf + 'FLAGPERF_LOG_PATH_CONTAINER = "/logs"\n')
        self.plan: Plan = tree.load()
        self.paths: HostPaths = host_paths(self.plan.run, RUN, "0123")
        self.node: Node = nodes_of(self.plan.cases[0], 1)[0]
        Path(self.paths.tree).mkdir(parents=True)
        self.bench.use(lambda transport: make_node_folder(transport, self.paths, self.node))

    @property
    def folder(self) -> Path:
        """The node's folder on the host."""
        return Path(self.paths.node(self.node))

    @property
    def launch(self) -> Launch:
        framework = open_framework(self.plan.cases[0].settings.framework)
        runtime = open_runtime(self.plan.run)
        return Launch(self.plan, RUN, self.paths, runtime, framework, tiny_image.NAME, ("localhost",))

    def task(self, script: str, *args: str) -> tuple[int, str]:
        """The exit code and the output of a script in the place of the launcher."""
        return self._end_of(self.launch.task(self.node, ""), script, args)

    def monitor(self, script: str, *args: str) -> tuple[int, str]:
        """The same in the place of the monitors."""
        return self._end_of(self.launch.monitor(self.node), script, args)

    def _end_of(self, unit: Unit, script: str, args: tuple[str, ...]) -> tuple[int, str]:
        argv = ("sh", "-c", script, "script", *args)
        labels = {**unit.labels, "flagperf.run": self.bench.run}
        name = f"{self.bench.run}-{unit.labels['flagperf.role']}"
        return self.bench.end_of(replace(unit, name=name, labels=labels, argv=argv, options=()))


@pytest.fixture
def confined(containers: Bench) -> Confined:
    return Confined(containers)


@pytest.fixture(params=["task", "monitor"])
def unit(request: pytest.FixtureRequest, confined: Confined) -> Callable[..., tuple[int, str]]:
    """Either unit of a round."""
    run: Callable[..., tuple[int, str]] = getattr(confined, request.param)
    return run


def logs_inside(confined: Confined) -> str:
    return confined.plan.run.log_path_container


def test_a_task_cannot_replace_its_folder(confined: Confined) -> None:
    """`env script` of a case: `d=$(dirname "$1")`, where $1 is the task's log."""
    (confined.data / "secret").write_text("the host's own")
    script = 'mv "$1" "$1.x"; ln -sfn "$2" "$1"; echo mine >"$1/rank0.out.log"; ls -a "$1"'
    _, output = confined.task(
        script, logs_inside(confined), confined.plan.cases[0].settings.data_dir_container
    )
    assert "busy" in output
    assert confined.folder.is_dir() and not confined.folder.is_symlink()
    assert (confined.folder / "rank0.out.log").read_text() == "mine\n"


def test_a_task_reaches_no_other_folder_of_the_run(confined: Confined) -> None:
    script = 'cd "$1/.." && echo x >planted; ls -a "$1"/..; ls "$1"'
    confined.task(script, logs_inside(confined))
    files = [path for path in Path(confined.paths.run).rglob("*") if not path.is_dir()]
    assert files == []


def test_a_task_cannot_write_the_code_that_it_runs_from(confined: Confined) -> None:
    ended, output = confined.task('echo x >"$1/planted" || exit 7', confined.plan.run.flagperf_path_container)
    assert ended == 7 and "Read-only" in output


def test_a_task_writes_to_its_own_rounds_checkpoints_alone(confined: Confined) -> None:
    """What it leaves there, and be it a program of root's with the mode 4755, nobody else on the host gets at."""
    users, other = confined.bench.folder / "ck", confined.bench.folder / "ck" / "run2" / "theirs"
    (case,) = confined.plan.cases
    case = replace(case, parameters={**case.parameters, "save_steps": 10})
    run = replace(confined.plan.run, checkpoint_path=str(users))
    confined.plan = replace(confined.plan, run=run, cases=(case,), continue_from="run1")
    confined.node = nodes_of(case, 1)[0]
    own, earlier = map(Path, checkpoint_folders(confined.plan, RUN, confined.node))
    for folder in (other, earlier):
        folder.mkdir(parents=True)
        (folder / "step1.ckpt").write_text("saved")
    confined.bench.use(
        lambda transport: make_checkpoint_folders(transport, confined.plan, RUN, confined.node)
    )
    script = (
        'cat /bin/sh >"$1/rootsh" && [ "$(cat "$2/step1.ckpt")" = saved ] || exit 5; ls "$3/run2" && exit 6; '
        'echo x >"$2/step1.ckpt" && exit 7; echo x >"$3/planted"; exit 0'
    )
    ended, output = confined.task(script, str(own), str(earlier), str(users))
    assert ended == 0, output
    assert sorted(path.name for path in users.iterdir()) == ["run1", "run2", RUN.uid]
    assert (own / "rootsh").is_file()
    assert (users / RUN.uid).stat().st_mode & 0o7777 == 0o700
    assert [(path / "step1.ckpt").read_text() for path in (other, earlier)] == ["saved", "saved"]


def test_what_each_unit_may_do(confined: Confined) -> None:
    bits = sum(1 << CAPABILITY_BITS[name] for name in TASK_CAPABILITIES)
    for run, capabilities in ((confined.task, bits), (confined.monitor, 0)):
        status = status_of(run("cat /proc/self/status")[1])
        sets = {name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")}
        assert sets == dict.fromkeys(sets, capabilities)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_no_unit_does_what_an_administrator_of_the_host_does(unit: Callable[..., tuple[int, str]]) -> None:
    attempts = ["kill -0 $1", "ls -d /proc/$1", "mount -t tmpfs none /dev/shm"]
    attempts += ["mknod /tmp-disk b 8 0", "ip link set lo down"]
    script = "".join(f"if {attempt}; then echo 'it may {attempt}'; fi; " for attempt in attempts)
    ended, output = unit(script, str(os.getpid()))
    assert ended == 0 and "it may" not in output, output


def test_no_unit_is_in_these_namespaces_of_the_host(unit: Callable[..., tuple[int, str]]) -> None:
    places = [f"/proc/self/ns/{kind}" for kind in ("pid", "ipc", "mnt")]
    _, output = unit(f"ls -l {' '.join(places)}")
    assert output.count(" -> ") == len(places)
    assert [place for place in places if str(Path(place).readlink()) in output] == []


def test_a_task_is_on_the_hosts_network_by_its_name_and_a_monitor_on_none(confined: Confined) -> None:
    host = str(Path("/proc/self/ns/net").readlink())
    script = "ls -l /proc/self/ns/net; cat /proc/sys/kernel/hostname; ls /sys/class/net"
    task, monitor = confined.task(script)[1], confined.monitor(script)[1]
    assert host in task and socket.gethostname() in task
    assert host not in monitor and monitor.split()[-1] == "lo"


def test_a_monitor_sees_what_it_samples_and_changes_nothing(confined: Confined) -> None:
    """A read-only mount of all of /sys leaves what is mounted below it writable: control groups."""
    script = (
        "cat /host/proc/stat /host/proc/meminfo >/dev/null || exit 5; "
        "ls -d /host/sys/class/hwmon/ /host/sys/devices/system >/dev/null; "
        "ls /host/sys/kernel /host/proc/1 && exit 6; "
        '[ "$(ls /host/sys/fs)" = cgroup ] || exit 7; '
        "echo 1 >/host/sys/devices/system/cpu/uevent && exit 8; "
        "for group in /host/sys/fs/cgroup /host/sys/fs/cgroup/*; do "
        "[ ! -d $group ] || ! mkdir $group/flagperf-test || { rmdir $group/flagperf-test; exit 9; }; done; exit 0"
    )
    ended, output = confined.monitor(script)
    assert ended == 0, output


def test_a_monitor_writes_its_logs(confined: Confined) -> None:
    ended, output = confined.monitor('echo ok >"$1/cpu_monitor.log"', logs_inside(confined))
    assert (ended, (confined.folder / "cpu_monitor.log").read_text()) == (0, "ok\n"), output


def test_a_monitor_reads_what_only_root_may_read(confined: Confined) -> None:
    """RAPL's counters are files of root's with the mode 0400: their owner needs no capability."""
    counter = confined.folder / "energy_uj"
    counter.write_text("123456\n")
    counter.chmod(0o400)
    assert confined.monitor('cat "$1/energy_uj"', logs_inside(confined)) == (0, "123456")


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_folders_of_an_ordinary_ssh_user_can_be_used(confined: Confined) -> None:
    """The engine runs as root there, and its containers' root is not the user whose folders they are."""
    (confined.data / "set").write_text("samples\n")
    for path in (confined.data / "set", confined.data, confined.folder):
        os.chown(path, OTHER_USER, OTHER_USER)
    (confined.data / "set").chmod(0o600)
    confined.data.chmod(0o700)
    data = confined.plan.cases[0].settings.data_dir_container
    ended, output = confined.task('cat "$2/set" && echo ok >"$1/log"', logs_inside(confined), data)
    assert (ended, output) == (0, "samples")
    ended, output = confined.monitor('echo ok >"$1/cpu_monitor.log"', logs_inside(confined))
    assert ended == 0, output
