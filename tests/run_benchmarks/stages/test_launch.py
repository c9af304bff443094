"""What is started on a node: the units as the runtime gets them, and the shell that starts the ranks."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.frameworks import open_framework
from run_benchmarks.names import RunId, host_paths, nodes_of
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.results.search.places import Places
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Unit
from run_benchmarks.stages.launch import TASK_SHELL, WRITABLE_SHELL, Launch
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from utils.case_form import ROLES_TOKEN, SEARCH_ROLES
from utils.checkpoints import CHECKPOINT_DIR
from utils.monitors.registry import LEAST_INTERVAL_S, SOURCES
from utils.roles import token_of, worker_token

RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")
TWO_NODES = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = make_tree(tmp_path)
    paths = 'FLAGPERF_PATH_HOST = "/home/fp"\nFLAGPERF_PATH_CONTAINER = "/workspace/fp"\n'
    conf = TWO_NODES.replace('FLAGPERF_PATH = "/home/flagperf/training"\n', paths)
    tree.configure(test_conf=conf + 'FLAGPERF_LOG_PATH_CONTAINER = "/workspace/fp/result/"\n')
    return tree


def launch_of(plan: Plan, image: str = "flagperf/acme-pytorch:tag") -> Launch:
    paths = host_paths(plan.run, RUN, "0123")
    framework = open_framework(plan.cases[0].settings.framework)
    return Launch(plan, RUN, paths, open_runtime(plan.run), framework, image, plan.cases[0].hosts)


def task_of(plan: Plan, rank: int = 1, interface: str = "ib0") -> Unit:
    return launch_of(plan).task(nodes_of(plan.cases[0], 1)[rank], interface)


@pytest.mark.parametrize("runtime", ["docker", "process"])
def test_secrets_go_to_the_tasks_container_alone(runtime: str, tree: Tree) -> None:
    path = tree.config / "test_conf.py"
    options = "--gpus all -e LICENSE_KEY='a b' --env=NCCL_DEBUG=INFO"
    path.write_text(path.read_text() + f'RUNTIME = "{runtime}"\nACCE_CONTAINER_OPT = "{options}"\n')
    plan = tree.load()
    task, monitor = task_of(plan), launch_of(plan).monitor(nodes_of(plan.cases[0], 1)[0])
    assert task.secrets == ({"LICENSE_KEY": "a b"} if runtime == "docker" else {})
    assert monitor.secrets == {}
    assert task.options == monitor.options == ("--gpus", "all", "--env=NCCL_DEBUG=INFO")
    assert "a b" not in repr((task, monitor))


@pytest.mark.parametrize("runtime", ["docker", "process"])
def test_a_search_is_started_by_its_own_launcher_with_the_runs_token(runtime: str, tree: Tree) -> None:
    path = tree.config / "test_conf.py"
    path.write_text(path.read_text() + f'RUNTIME = "{runtime}"\nCHECKPOINT_PATH = "/data/checkpoints"\n')
    plan = tree.load()
    parameters = {**plan.cases[0].parameters, "ranks_per_worker": 1}
    case = replace(plan.cases[0], roles=SEARCH_ROLES, parameters=parameters)
    launch = replace(launch_of(replace(plan, cases=(case,))), token="s3cret-of-the-run")
    first, second = (launch.task(node, "") for node in nodes_of(case, 1))
    assert first.secrets == {ROLES_TOKEN: "s3cret-of-the-run"}, "where the controller is"
    workers = Places.of(case).of_node
    own = {worker: worker_token("s3cret-of-the-run", worker) for worker in range(2 * workers)}
    assert {token_of(first.secrets[ROLES_TOKEN], worker) for worker in range(workers)} == {*own.values()} - {
        own[worker] for worker in range(workers, 2 * workers)
    }
    given = second.secrets[ROLES_TOKEN]
    assert [token_of(given, worker) for worker in range(workers, 2 * workers)] == [*own.values()][workers:]
    assert token_of(given, 0) != own[0], "it cannot speak for a worker of another node"
    for task in (first, second):
        begin = task.argv.index("-m") + 1
        assert task.argv[begin : begin + 3] == ("utils.roles", "--ranks-per-worker", "1")
        assert case.chip and json.loads(option(task, "--peaks")) == case.chip.peak_flops != {}
        assert "s3cret" not in repr((task, launch)) and own[workers] not in repr((task, launch))
    assert first.env[CHECKPOINT_DIR].startswith("/data/checkpoints/")
    assert launch_of(plan).task(nodes_of(plan.cases[0], 1)[0], "").secrets == {}


def option(unit: Unit, name: str) -> str:
    """The value of an option of the launched command."""
    return unit.argv[unit.argv.index(name) + 1]


def test_a_task_gets_the_launch_contract(tree: Tree) -> None:
    unit = task_of(tree.load())
    training = "/workspace/fp"
    node = "/workspace/fp/result"
    launcher = {
        "--nnodes": "2",
        "--node-rank": "1",
        "--nproc": "1",
        "--master-addr": "node1",
        "--master-port": "29501",
        "--log-dir": node,
    }
    script = {
        "--data_dir": "/data/toy",
        "--extern_config_dir": f"{training}/acme/toy-pytorch/config",
        "--extern_config_file": "config_X1x2x1.py",
        "--vendor": "acme",
        "--extern_module_dir": f"{training}/acme/toy-pytorch/extern",
        "--case_dir": f"{training}/benchmarks/toy/pytorch",
    }
    assert {name: option(unit, name) for name in launcher | script} == launcher | script
    assert f"{training}/benchmarks/driver/run_pretraining.py" in unit.argv
    assert "--enable_extern_config" in unit.argv
    assert unit.argv[:3] == ("bash", "-c", TASK_SHELL)
    assert unit.argv[4] == f"{node}/start_pytorch_task.log"
    assert unit.workdir == unit.tree == training
    assert unit.env == {
        "PYTHONUNBUFFERED": "1",
        "ACME_VISIBLE_DEVICES": "0",
        "GLOO_SOCKET_IFNAME": "ib0",
        "TORCH_FR_DUMP_TEMP_FILE": f"{node}/flight_recorder_rank",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{node}/flight_recorder_rank",
        "FLAGPERF_ROUND": "1",
    }


def test_a_task_may_write_to_its_nodes_own_folder_alone(tree: Tree) -> None:
    mounts = {mount.inside: (mount.host, mount.read_only) for mount in task_of(tree.load()).mounts}
    runs = "/home/fp/.flagperf/runs/run20260102030405-abcdef/run20260102030405"
    assert mounts == {
        "/workspace/fp": ("/home/fp/.flagperf/tree-0123", True),
        "/workspace/fp/result": (f"{runs}/toy:pytorch:X1:2:1:1/round1/node2_noderank1", False),
        "/data/toy": ("/data/toy", True),
    }


@pytest.mark.parametrize(
    ("runtime", "scratch"),
    [
        ("docker", "/tmp/flagperf-scratch"),
        (
            "process",
            f"/home/fp/.flagperf/units/flagperf-{RUN.uid}-toy-pytorch-X1-2-1-1-round1-node1-task/scratch",
        ),
    ],
)
def test_a_case_that_may_write_gets_copies(runtime: str, scratch: str, tree: Tree) -> None:
    path = tree.config / "test_conf.py"
    path.write_text(path.read_text() + f'RUNTIME = "{runtime}"\nCASE_WRITABLE = True\n')
    plain = task_of(tree.load())
    assert WRITABLE_SHELL not in plain.argv, "the shared driver writes nowhere"
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    unit = task_of(tree.load())
    code, data = f"{scratch}/training", f"{scratch}/data"
    assert option(unit, "--data_dir") == data
    assert option(unit, "--extern_config_dir") == f"{code}/acme/toy-pytorch/config"
    assert f"{code}/benchmarks/toy/pytorch/run_pretraining.py" in unit.argv
    begin = unit.argv.index(WRITABLE_SHELL)
    assert unit.argv[begin + 2 : begin + 6] == (plain.workdir, code, "/data/toy", data)
    assert (unit.env, unit.workdir, unit.mounts) == (plain.env, plain.workdir, plain.mounts), (
        "the launcher is what nobody may write to"
    )


def test_what_a_case_writes_beside_its_code_and_data_goes_into_the_copies(tmp_path: Path) -> None:
    for name in ("tree/benchmarks/case.py", "data/train/points.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("as it was")
    copies = [tmp_path / name for name in ("tree", "scratch/code", "data", "scratch/data")]
    case = 'cd "$1" && cat benchmarks/case.py "$2/train/points.txt" && echo >benchmarks/out && echo >"$2/train/index"'
    case += " && echo changed >benchmarks/case.py"
    words = ("sh", "-c", case, "sh", str(copies[1]), str(copies[3]))
    done = subprocess.run(
        ["sh", "-c", WRITABLE_SHELL, "sh", *map(str, copies), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "as it wasas it was"
    below = [path for folder in ("tree", "data") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert [path.read_text() for path in below] == ["as it was"] * 2
    assert (tmp_path / "scratch/data/train/index").is_file()


def test_checkpoints_are_told_by_environment_and_mounted_for_global_rank_0_only(tree: Tree) -> None:
    plan = tree.load()
    (case,) = plan.cases
    case = replace(case, parameters={**case.parameters, "save_steps": 10})
    run = replace(plan.run, checkpoint_path="/data/ck")
    plan = replace(plan, run=run, cases=(case,), continue_from="run20250101000000")
    first, second = task_of(plan, 0), task_of(plan, 1)
    variables = {
        "FLAGPERF_CHECKPOINT_DIR": "/data/ck/run20260102030405-abcdef/toy:pytorch:X1:2:1:1/round1",
        "FLAGPERF_CONTINUE_FROM": "/data/ck/run20250101000000/toy:pytorch:X1:2:1:1/round1",
        "FLAGPERF_MAY_BEGIN_ANEW": "1",
    }
    for unit in (first, second):
        assert {name: unit.env[name] for name in variables} == variables
    mounts = {mount.inside: (mount.host, mount.read_only) for mount in first.mounts}
    own, earlier = variables["FLAGPERF_CHECKPOINT_DIR"], variables["FLAGPERF_CONTINUE_FROM"]
    assert mounts[own] == (own, False) and mounts[earlier] == (earlier, True)
    assert [path for path in mounts if path.startswith("/data/ck")] == [own, earlier]
    assert not [mount for mount in second.mounts if mount.host.startswith("/data/ck")]
    assert first.argv[first.argv.index("--case_dir") :] == second.argv[second.argv.index("--case_dir") :]


def test_a_case_that_saves_nothing_sees_no_checkpoints(tree: Tree) -> None:
    plan = tree.load()
    unit = task_of(replace(plan, run=replace(plan.run, checkpoint_path="/data/ck")), 0)
    assert [name for name in unit.env if name.startswith("FLAGPERF_")] == ["FLAGPERF_ROUND"]
    assert not [mount for mount in unit.mounts if mount.host.startswith("/data/ck")]


def test_a_case_with_its_own_script_gets_no_case_dir(tree: Tree) -> None:
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    unit = task_of(tree.load())
    assert "/workspace/fp/benchmarks/toy/pytorch/run_pretraining.py" in unit.argv
    assert "--case_dir" not in unit.argv


def test_one_node_needs_no_interface_and_several_processes_see_as_many_devices(tmp_path: Path) -> None:
    plan = make_tree(tmp_path).load()
    unit = launch_of(plan).task(nodes_of(plan.cases[0], 1)[0], "")
    assert "GLOO_SOCKET_IFNAME" not in unit.env
    assert unit.env["ACME_VISIBLE_DEVICES"] == "0,1"
    assert option(unit, "--nproc") == "2"


def test_ranks_use_the_first_of_the_devices_that_were_granted(tmp_path: Path) -> None:
    plan = make_tree(tmp_path).load()
    unit = launch_of(plan).task(nodes_of(plan.cases[0], 1)[0], "", ["3", "5", "7"])
    assert unit.env["ACME_VISIBLE_DEVICES"] == "3,5"


def test_units_are_named_and_labelled_by_run_case_round_and_node(tree: Tree) -> None:
    plan = tree.load()
    node = nodes_of(plan.cases[0], 3)[1]
    launch = launch_of(plan)
    task, monitor = launch.task(node, ""), launch.monitor(node)
    assert task.name == "flagperf-run20260102030405-abcdef-toy-pytorch-X1-2-1-1-round3-node1-task"
    assert monitor.name == task.name.replace("task", "monitor")
    assert task.labels == {
        "flagperf.run": RUN.uid,
        "flagperf.case": "toy:pytorch:X1:2:1:1",
        "flagperf.round": "3",
        "flagperf.node_rank": "1",
        "flagperf.role": "task",
    }
    assert monitor.labels == {**task.labels, "flagperf.role": "monitor"}


def test_the_monitor_sees_what_it_samples_and_no_more_of_the_host(tree: Tree) -> None:
    plan = tree.load()
    monitor = launch_of(plan).monitor(nodes_of(plan.cases[0], 1)[0])
    assert monitor.capabilities == () and not monitor.host_network
    assert monitor.options == plan.cases[0].container_options != (), (
        "a capability among them is the monitor's too"
    )
    mounts = {mount.host: mount.inside for mount in monitor.mounts if mount.read_only}
    reads = ("/proc/stat", "/proc/meminfo", "/sys/class", "/sys/devices", "/sys/fs/cgroup")
    assert mounts == {
        "/home/fp/.flagperf/tree-0123": "/workspace/fp",
        **{path: f"/host{path}" for path in reads},
    }
    assert option(monitor, "--vendor-dir") == "/workspace/fp/acme"
    assert option(monitor, "--log-dir") == "/workspace/fp/result"
    assert option(monitor, "--sources") == ",".join(
        f"{name}={LEAST_INTERVAL_S.get(name, 1.0)}" for name in SOURCES
    )
    assert (monitor.workdir, monitor.env) == ("/workspace/fp", {}), "the image's PYTHONPATH is left to it"


def test_what_is_sampled_is_the_users_choice(tree: Tree) -> None:
    choice = 'MONITORS = {"cores": False, "rapl": 0.1, "pwr": 10}\nMONITOR_INTERVAL = 2\n'
    tree.configure(test_conf=TEST_CONF + choice)
    plan = tree.load()
    sources = option(launch_of(plan).monitor(nodes_of(plan.cases[0], 1)[0]), "--sources").split(",")
    others = {f"{name}=2.0" for name in SOURCES.keys() - {"cores", "rapl", "pwr", "temperature"}}
    assert set(sources) == {"rapl=0.1", "pwr=10.0", "temperature=5.0"} | others


def test_without_containers_everything_is_where_the_host_has_it(tree: Tree) -> None:
    plan = tree.load()
    plan = replace(plan, run=replace(plan.run, runtime="process", process_python="/opt/venv/bin/python"))
    unit = task_of(plan)
    assert unit.tree == unit.workdir == "/home/fp/.flagperf/tree-0123"
    assert option(unit, "--data_dir") == "/data/toy"
    assert option(unit, "--log-dir").startswith("/home/fp/.flagperf/runs/")
    assert "/opt/venv/bin/python" in unit.argv
    monitor = launch_of(plan).monitor(nodes_of(plan.cases[0], 1)[0])
    assert "/opt/venv/bin/python" in monitor.argv


def test_units_end_by_themselves_some_time_after_the_deadline(tree: Tree) -> None:
    """Their controller may be gone for good."""
    plan = tree.load()
    case: CasePlan = replace(plan.cases[0], deadline_s=7200.5)
    node = nodes_of(case, 1)[0]
    for unit in (launch_of(plan).task(node, ""), launch_of(plan).monitor(node)):
        start = unit.argv.index("timeout")
        assert unit.argv[start : start + 4] == ("timeout", "--signal=TERM", "--kill-after=30", "7320")


NEGATED = "if !(\ntrue # don't care\n); then false; fi"  # no pattern, but a command in a subshell


def _start(folder: Path, environment_file: str, *command: str) -> subprocess.CompletedProcess[str]:
    argv = ["bash", "-c", TASK_SHELL, "task", str(folder / "start.log"), environment_file, *command]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_shell_logs_sources_and_becomes_the_command(tmp_path: Path) -> None:
    environment = tmp_path / "environment variables.sh"
    environment.write_text("export NCCL_IB_HCA='mlx5 0'\n")
    script = 'echo "$NCCL_IB_HCA|$1"; echo oops >&2; exit 7'
    done = _start(tmp_path, str(environment), "sh", "-c", script, "x", "an argument; with $signs")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    assert (tmp_path / "start.log").read_text() == "mlx5 0|an argument; with $signs\noops\n"


@pytest.mark.parametrize("line", ["export A=1(2", "export A='1", "if true; then", ": @(a|b)"])
def test_the_shell_starts_nothing_after_a_file_that_bash_cannot_parse(line: str, tmp_path: Path) -> None:
    """Sourced, it would end there, and the ranks be started without the rest of it."""
    environment = tmp_path / "environment_variables.sh"
    environment.write_text(f"{line}\nexport B=2\n")
    assert _start(tmp_path, str(environment), "echo", "started").returncode == 1
    *_, last = (tmp_path / "start.log").read_text().splitlines()
    assert last == f"{environment}: bash cannot parse it: the ranks are not started"


@pytest.mark.parametrize("line", ["false", "nonesuch", "shopt -s extglob\n: !(a|b)", NEGATED, "return 3"])
def test_the_shell_goes_on_whatever_a_files_commands_end_with(line: str, tmp_path: Path) -> None:
    environment = tmp_path / "environment_variables.sh"
    environment.write_text(f"export A=1\n{line}\n")
    assert _start(tmp_path, str(environment), "sh", "-c", 'echo "A=$A"').returncode == 0
    assert (tmp_path / "start.log").read_text().endswith("A=1\n")


@pytest.mark.parametrize("line", ["true; . {}", "source {}"])
def test_patterns_that_another_sourced_file_switches_on_are_syntax(line: str, tmp_path: Path) -> None:
    others, environment = tmp_path / "others.sh", tmp_path / "environment_variables.sh"
    others.write_text("shopt -s extglob\n")
    environment.write_text(f"{line.format(others)}\ncase x in @(x|y)) export A=1;; esac\n")
    assert _start(tmp_path, str(environment), "sh", "-c", 'echo "A=$A"').returncode == 0
    assert (tmp_path / "start.log").read_text() == "A=1\n"


@pytest.mark.parametrize("line", ["", ": extglob"])
def test_the_shell_parses_the_sourced_file_alone(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image may set BASH_ENV, of which this is not the place to complain."""
    others, environment = tmp_path / "others.sh", tmp_path / "environment_variables.sh"
    others.write_text("if (\n")
    monkeypatch.setenv("BASH_ENV", str(others))
    environment.write_text(f"export A=1\n{line}\n")
    assert _start(tmp_path, str(environment), "true").returncode == 0


@pytest.mark.parametrize(("image", "after"), [("", ""), ("/opt/a:/opt/b", ":/opt/a:/opt/b")])
def test_the_shell_puts_the_code_before_what_the_image_lets_python_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str, after: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", image)
    assert _start(tmp_path, "", "sh", "-c", 'echo "$PYTHONPATH"').returncode == 0
    assert (tmp_path / "start.log").read_text() == f"{tmp_path}{after}\n"


def test_the_shell_reports_the_signal_that_killed_the_command(tmp_path: Path) -> None:
    assert _start(tmp_path, "", "sh", "-c", "kill -9 $$").returncode == -9
