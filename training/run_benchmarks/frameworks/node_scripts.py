"""Scripts that are started once on a node and start its ranks themselves: the contracts of FlagPerf's large models.

What each gets is what FlagPerf's own starters give it (FlagOpen/FlagPerf, training/run_benchmarks/<framework>/). It
runs in its case's folder, and its output is that of the node's only rank to the launcher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from run_benchmarks.frameworks.base import Framework, LaunchJob
from run_benchmarks.frameworks.pytorch import PyTorch

DEEPSPEED_CONFIG = "ds_config.json"
HOSTS_PORT = 2222  # that TensorFlow's workers listen at
# $1: the interpreter. What a script calls by name (torchrun, python3) is what lies beside that, where it has a path.
BESIDE = '{ case $1 in /*) PATH=${1%/*}:$PATH;; esac; } && exec "$@"'
# $1: the folder, then the command.
IN_FOLDER = f'cd "$1" && shift && {BESIDE}'
# $2: the vendor's folder; $3: where the settings of the case and the vendor go, as one. Of net.sh counts one line.
WITH_SETTINGS = (
    'cd "$1" && net="$(head -n 1 "$2/net.sh")" && eval "$net" && '
    f'"$4" -m utils.merged_json {DEEPSPEED_CONFIG} "$2/{DEEPSPEED_CONFIG}" "$3" && shift 3 && {BESIDE}'
)


class NodeScript(Framework):
    """Knows no device of its own: what its script imports says that."""

    required_modules: tuple[str, ...] = ()
    lost_peer = PyTorch.lost_peer
    appendix = PyTorch.appendix
    without_finished = (
        "public FlagPerf's scripts for it report none: they print rates that nobody can check, also where the training "
        "inside has failed (docs/existing-cases.md)"
    )
    device_types = ()
    backends: Mapping[str, tuple[str, ...]] = {}

    def ranks_of_node(self, nproc: int) -> int:
        """One: the script itself."""
        return 1

    def script_argv(self, job: LaunchJob, node_rank: int) -> tuple[str, ...]:
        """The script in its folder, with its options."""
        options = (f"--{name}={value}" for name, value in self.options(job, node_rank).items())
        script = PurePosixPath(job.script[0])
        return ("sh", "-c", IN_FOLDER, "sh", str(script.parent), job.python, "-u", script.name, *options)

    def options(self, job: LaunchJob, node_rank: int) -> Mapping[str, str]:
        """Names and values of what the script gets."""
        return {**self._place(job, node_rank), **self._case(job)}

    def _place(self, job: LaunchJob, node_rank: int) -> Mapping[str, str]:
        return {
            "nproc_per_node": str(job.nproc),
            "nnodes": str(job.nnodes),
            "node_rank": str(node_rank),
            "master_addr": job.master_addr,
            "master_port": str(job.master_port),
        }

    def _case(self, job: LaunchJob) -> Mapping[str, str]:
        case = job.contract
        return {
            "vendor": case.vendor,
            "data_dir": case.data_dir,
            "log_dir": job.log_dir,
            "flagperf_config_file": f"{case.config_dir}/{case.config_file}",
        }


class Megatron(NodeScript):
    """Megatron-LM by a script that starts torchrun."""

    name = "megatron"


class MegatronDeepSpeed(NodeScript):
    """Megatron-DeepSpeed likewise."""

    name = "megatron-deepspeed"


class FlagScale(NodeScript):
    """FlagScale's runner, which reaches the other hosts by itself."""

    name = "flagscale"

    def _place(self, job: LaunchJob, node_rank: int) -> Mapping[str, str]:
        hosts = job.hosts or (job.master_addr,)
        return {
            "world_size": str(job.nproc * job.nnodes),
            "hosts": ",".join(hosts),
            "host_addr": hosts[node_rank],
        }


class DeepSpeed(NodeScript):
    """DeepSpeed under torchrun, with the settings of the case and the vendor merged."""

    name = "deepspeed"
    required_modules: tuple[str, ...] = ("deepspeed",)

    def script_argv(self, job: LaunchJob, node_rank: int) -> tuple[str, ...]:
        script, settings = PurePosixPath(job.script[0]), f"{job.log_dir}/{DEEPSPEED_CONFIG}"
        first = ("sh", "-c", WITH_SETTINGS, "sh", str(script.parent), job.contract.config_dir, settings)
        return (
            *first,
            *self._command(job, node_rank, script.name),
            *self._arguments(job, node_rank, settings),
        )

    def _command(self, job: LaunchJob, node_rank: int, script: str) -> Iterator[str]:
        yield from (job.python, "-m", "torch.distributed.run")
        yield from (f"--{name}={value}" for name, value in self._place(job, node_rank).items())
        yield script

    def _arguments(self, job: LaunchJob, node_rank: int, settings: str) -> Iterator[str]:
        case = job.contract
        yield from ("--flagperf_config", f"{case.config_dir}/{case.config_file}")
        yield from ("--node_rank", str(node_rank))
        yield from ("--nproc_per_node", str(job.nproc), "--nnodes", str(job.nnodes))
        yield from self._settings(settings)
        yield from ("--data_dir", case.data_dir)

    def _settings(self, path: str) -> tuple[str, ...]:
        return ("--deepspeed", "--deepspeed_config", path)


class DeepSpeedTorch(DeepSpeed):
    """A script that starts DeepSpeed itself."""

    name = "deepspeed-torch"

    def _command(self, job: LaunchJob, node_rank: int, script: str) -> Iterator[str]:
        yield from (job.python, script)

    def _settings(self, path: str) -> tuple[str, ...]:
        return ("--deepspeed", path)


class TensorFlow(Framework):
    """TensorFlow 2, one process a node, which knows the others by its environment."""

    name = "tensorflow2"
    required_modules = ("tensorflow",)
    lost_peer = ()
    device_types = ()
    backends: Mapping[str, tuple[str, ...]] = {}

    def ranks_of_node(self, nproc: int) -> int:
        """One, which has all devices of the node."""
        return 1

    def rank_variables(self, job: LaunchJob, node_rank: int) -> Mapping[str, str]:
        """What the case's driver reads."""
        hosts = job.hosts or (job.master_addr,)
        return {
            "FLAGPERF_NNODES": str(job.nnodes),
            "FLAGPERF_NPROC": str(job.nproc),
            "FLAGPERF_BASE_PORT": str(job.master_port),
            "FLAGPERF_NODE_RANK": str(node_rank),
            "FLAGPERF_HOSTS": ",".join(hosts),
            "FLAGPERF_HOSTS_PORTS": str(HOSTS_PORT),
        }
