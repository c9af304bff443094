"""What runs on a node: the task unit that trains and the monitor unit that samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from run_benchmarks.frameworks.base import NODE_LAUNCHER, ROLES_LAUNCHER, Contract, Framework, LaunchJob
from run_benchmarks.names import HostPaths, Node, RunId, unit_labels, unit_name
from run_benchmarks.plan.monitors import intervals_of
from run_benchmarks.plan.records import CasePlan, Plan, RunSettings
from run_benchmarks.plan.search_limits import RANKS_PER_WORKER
from run_benchmarks.runtimes.base import Mount, Runtime, Unit
from run_benchmarks.stages.checkpoints import checkpoint_folders
from run_benchmarks.stages.process_setup import in_setup
from utils.case_form import ROLES_TOKEN
from utils.checkpoints import CHECKPOINT_DIR, CONTINUE_FROM, MAY_BEGIN_ANEW
from utils.node import start_log_name
from utils.parameters import ROUND
from utils.roles import tokens_of_node

# $1: the log, $2: a file to source or nothing, then the command. Of a file that this bash cannot parse (the plan asked
# another one) it would pass over the rest without a word; patterns of extglob are syntax where the file, or one that it
# sources, switches them on. What its commands end with means nothing. The unit's main process becomes the command, so
# its exit code is the unit's. Its working folder is the tree: Python looks there before where the image says (CANN's
# compiler is found by the PYTHONPATH of its image).
TASK_SHELL = (
    'exec >>"$1" 2>&1; export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"; '
    'if [ -n "$2" ]; then text=$(<"$2") switch="extglob|(^|[[:space:];&|])(\\.|source)[[:blank:]]"; '
    'if [[ $text =~ $switch ]]; then BASH_ENV= "$BASH" -O extglob -n "$2"; else BASH_ENV= "$BASH" -n "$2"; fi || '
    '{ echo "$2: bash cannot parse it: the ranks are not started"; exit 1; }; . "$2"; fi; shift 2; exec "$@"'
)
# $1: the tree, $2: a copy of it, $3: the data, $4: its folders with links to its files, then the command. Whatever is
# written goes with the container, or with the run's folder.
WRITABLE_SHELL = 'mkdir -p "$2" "$4" && cp -R "$1/." "$2" && cp -Rs "$3/." "$4" && shift 4 && exec "$@"'
# The capabilities of a task's root, and why; a monitor has none. What a vendor's chips need stands in its vendor.py.
TASK_CAPABILITIES = {
    "DAC_OVERRIDE": "the data and CHECKPOINT_PATH are the ssh user's, and may be closed to everybody else",
    "SYS_NICE": "the engines' seccomp profiles tie memory policies to it (mbind, set_mempolicy: NUMA placement)",
}
# What the monitor reads of the host: the engine shows another /proc and hides parts of /sys (powercap among them). No
# more than this: the rest of /sys is the kernel's, the drivers' and the firmware's own.
MONITOR_READS = {
    "/proc/stat": "CPU use",
    "/proc/meminfo": "memory use",
    "/sys/class": "power meters, sensors, disks and networks: links into the next",
    "/sys/devices": "these themselves",
    "/sys/fs/cgroup": "the accounts of the task's control group",
}
# A unit whose controller is gone for good must end all the same: `timeout` allows it this much longer.
DEADLINE_MARGIN_S = 120


@dataclass(frozen=True)
class Launch:
    """What a round's units have in common.

    addresses: of the nodes, by rank: how they reach each other. token: by which the processes of a case with roles know
    each other.
    """

    plan: Plan
    run: RunId
    paths: HostPaths
    runtime: Runtime
    framework: Framework
    image: str
    addresses: tuple[str, ...]
    token: str = field(default="", repr=False)

    def task(self, node: Node, interface: str, granted: Sequence[str] = ()) -> Unit:
        """The unit whose main process starts the node's ranks and ends with them.

        Args:
            interface: by which the node reaches its peers; empty for none.
            granted: the devices that a scheduler has granted there, at least one a rank; empty where none does.
        """
        case, inside = node.case, _Inside(self, node)
        environment_file = inside.tree(case.files.environment_script) if case.files.environment_script else ""
        log = f"{inside.node}/{start_log_name(case.settings.framework_name)}"
        job = self._job(inside, case)
        argv = (
            *in_setup(self.plan.run),
            "bash",
            "-c",
            TASK_SHELL,
            "task",
            log,
            environment_file,
            *inside.copying,
            *_ended_in_time(case),
        )
        options, secrets = self._options(case)
        return Unit(
            name=unit_name(self.run, node, "task"),
            labels=unit_labels(self.run, node, "task"),
            image=self.image,
            argv=(*argv, *self.framework.launch_argv(job, node.rank)),
            env={
                **self._environment(inside, case, interface, granted),
                ROUND: str(node.round),
                **self._restart(node),
            },
            secrets={**secrets, **self._role_tokens(node)},
            mounts=(*inside.mounts, *self._checkpoints(node)),
            options=options,
            shm_size=self.plan.run.shm_size,
            tree=inside.tree(""),
            workdir=inside.tree(""),
            capabilities=tuple(TASK_CAPABILITIES),
            host_network=True,  # nodes reach each other's ranks at any port, by RDMA too
        )

    def _role_tokens(self, node: Node) -> dict[str, str]:
        if not node.case.roles:
            return {}
        nproc = node.case.settings.nproc
        workers = nproc // (_ranks_per_worker(node.case) or nproc)
        return {ROLES_TOKEN: tokens_of_node(self.token, node.rank, workers)}

    def monitor(self, node: Node) -> Unit:
        """The unit that samples the node, outside the training processes."""
        inside = _Inside(self, node)
        intervals = intervals_of(self.plan.run.monitors, self.plan.run.monitor_interval_s)
        sources = ",".join(f"{name}={interval}" for name, interval in intervals.items())
        vendor_dir = inside.tree(node.case.vendor.name)
        options = ("--log-dir", inside.node, "--vendor-dir", vendor_dir, "--sources", sources)
        return Unit(
            name=unit_name(self.run, node, "monitor"),
            labels=unit_labels(self.run, node, "monitor"),
            image=self.image,
            argv=(
                *in_setup(self.plan.run),
                *_ended_in_time(node.case),
                self.runtime.python,
                "-m",
                "utils.monitors",
                *options,
            ),
            mounts=(*inside.mounts[:2], *(Mount(path, f"/host{path}") for path in MONITOR_READS)),
            options=self._options(node.case)[0],  # no source of it needs a secret
            tree=inside.tree(""),
            workdir=inside.tree(""),  # where `python -m` looks first
        )

    def _options(self, case: CasePlan) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """What the engine gets for the case's containers, and the variables among it that are secret."""
        options, secrets = self.plan.secrets.split_options(case.container_options)
        return options, secrets if self.plan.run.uses_images else {}

    def _job(self, inside: _Inside, case: CasePlan) -> LaunchJob:
        files = case.files
        contract = {
            "--data_dir": inside.data,
            "--extern_config_dir": inside.code(files.config_dir),
            "--extern_config_file": files.config_file,
            **({"--vendor": case.vendor.name} if files.takes_vendor else {}),
        }
        args = [word for name, value in contract.items() for word in (name, value)]
        args += ["--enable_extern_config", "--extern_module_dir", inside.code(files.extern_dir)]
        script_args = [inside.tree(word) if word == files.case_dir else word for word in files.script_args]
        return LaunchJob(
            nnodes=case.settings.nnodes,
            nproc=case.settings.nproc,
            master_addr=self.addresses[0] if len(self.addresses) > 1 else "127.0.0.1",
            master_port=self.plan.cluster.master_port,
            log_dir=inside.node,
            script=(inside.code(files.script), *script_args, *args),
            python=self.runtime.python,
            hosts=self.addresses,
            contract=Contract(
                case.vendor.name, inside.data, inside.code(files.config_dir), files.config_file
            ),
            launcher=_launcher(case),
        )

    def _environment(
        self, inside: _Inside, case: CasePlan, interface: str, granted: Sequence[str]
    ) -> Mapping[str, str]:
        environment = {"PYTHONUNBUFFERED": "1", **self.framework.unit_variables(inside.node)}
        visible = case.visible_devices_env
        if visible:
            devices = granted or [str(number) for number in range(case.settings.nproc)]
            environment[visible] = ",".join(devices[: case.settings.nproc])
        if interface:
            environment["GLOO_SOCKET_IFNAME"] = interface
        return environment

    def _restart(self, node: Node) -> Mapping[str, str]:
        """Where the ranks save and load checkpoints: by environment, for the arguments are the launch contract's."""
        own, earlier = checkpoint_folders(self.plan, self.run, node)
        environment = {CHECKPOINT_DIR: own} if own else {}
        if earlier:
            environment[CONTINUE_FROM] = earlier
            # the preflight saw a checkpoint of this case, and named the rounds that lack one
            environment[MAY_BEGIN_ANEW] = "1"
        return environment

    def _checkpoints(self, node: Node) -> tuple[Mount, ...]:
        """This round's folder and the earlier one, only on the host of global rank 0: no other has them."""
        own, earlier = checkpoint_folders(self.plan, self.run, node) if node.rank == 0 else ("", "")
        mounts = (Mount(own, own, read_only=False), Mount(earlier, earlier))
        return tuple(mount for mount in mounts if mount.host)


def log_dir_inside(run: RunSettings, paths: HostPaths, runtime: Runtime, node: Node) -> str:
    """The node's folder, as its units see it."""
    return runtime.path_inside([_log_mount(run, paths, node)], paths.node(node))


def _log_mount(run: RunSettings, paths: HostPaths, node: Node) -> Mount:
    """The node's own folder and no more: what is mounted cannot be moved, and its parent is out of reach."""
    return Mount(paths.node(node), run.log_path_container.rstrip("/"), read_only=False)


def _ended_in_time(case: CasePlan) -> tuple[str, ...]:
    limit = str(int(case.deadline_s) + DEADLINE_MARGIN_S)
    return ("timeout", "--signal=TERM", "--kill-after=30", limit)


class _Inside:
    """Where a node's unit sees what: through mounts in a container, unchanged in a process."""

    def __init__(self, launch: Launch, node: Node) -> None:
        run = launch.plan.run
        case = node.case.settings
        self._runtime = launch.runtime
        self._tree = launch.paths.tree
        self.mounts = (
            Mount(launch.paths.tree, run.flagperf_path_container.rstrip("/")),
            _log_mount(run, launch.paths, node),
            Mount(case.data_dir_host, case.data_dir_container),
        )
        self.node = self._see(launch.paths.node(node))
        self.data = self._see(case.data_dir_host)
        self.code: Callable[[str], str] = self.tree
        self.copying: tuple[str, ...] = ()
        if node.case.writable:
            self._copy(launch.runtime.scratch(unit_name(launch.run, node, "task")))

    def _copy(self, scratch: str) -> None:
        """Let the case work in copies. The launcher and its modules are still those that nobody may write to."""
        code, data = f"{scratch}/training", f"{scratch}/data"
        self.copying = ("sh", "-c", WRITABLE_SHELL, "sh", self.tree(""), code, self.data, data)
        self.code = lambda relative: f"{code}/{relative}"
        self.data = data

    def _see(self, host_path: str) -> str:
        return self._runtime.path_inside(self.mounts, host_path)

    def tree(self, relative: str) -> str:
        return self._see(f"{self._tree}/{relative}" if relative else self._tree)


def _launcher(case: CasePlan) -> tuple[str, ...]:
    """Of the ranks of a node; of a search also of its controller, and of workers of so many ranks as the case says.

    The controller refuses what is faster than the chips: one such epoch, and nothing would count of the round.
    """
    if not case.roles:
        return (NODE_LAUNCHER,)
    peaks = json.dumps(case.chip.peak_flops if case.chip else {})
    return (ROLES_LAUNCHER, "--ranks-per-worker", str(_ranks_per_worker(case)), "--peaks", peaks)


def _ranks_per_worker(case: CasePlan) -> int:
    """0: all of a node."""
    return int(case.parameters.get(RANKS_PER_WORKER) or 0)
