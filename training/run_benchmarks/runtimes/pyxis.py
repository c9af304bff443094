"""Pyxis: a unit's command in a SquashFS file, as a step of the Slurm job that the node is of."""

from __future__ import annotations

from collections.abc import Mapping

from run_benchmarks.plan.tool_options import ODD, Wanted
from run_benchmarks.runtimes.base import Mount, Unit
from run_benchmarks.runtimes.image_file import ImageFileRuntime, marks_of
from run_benchmarks.transports.base import CommandError, Transport
from utils.errors import FlagPerfError

# The step is one of the job that this command is in, on its node. Of Slurm's variables those stay that say which Slurm
# and which job: others are options of the step that this command is. $0: the unit's folder, $1: how many paths follow;
# each gets a link there, of a name that Pyxis can mount.
STEP = (
    'n=$1; shift; while [ "$n" -gt 0 ]; do ln -s "$1" "$0/mount$n"; n=$((n - 1)); shift; done; '
    'for name in $(env | sed -n "s/^\\(SLURM_[A-Z0-9_]*\\)=.*/\\1/p"); do case $name in '
    'SLURM_CONF|SLURM_CONF_SERVER|SLURM_JWT|SLURM_JOB_ID) ;; *) unset "$name" ;; esac; done; '
    'exec srun --jobid="$SLURM_JOB_ID" --nodelist="$SLURMD_NODENAME" "$@"'
)
ONE = ("--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none", "--quiet")
CONFINED = (
    "--no-container-mount-home",
    "--no-container-remap-root",
    "--no-container-entrypoint",
    "--container-readonly",
)
# What Enroot's hook for NVIDIA's devices reads.
GPUS = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
HOME = {"HOME": "/tmp"}  # noqa: S108 - the container's own, which nobody else writes to
# Whether this is a step of a job, and srun knows containers, by the newest of the options.
HAS_PYXIS = '[ "$SLURM_JOB_ID$SLURMD_NODENAME" ] && srun --help | grep -e --container-env= && srun --version'


class PyxisRuntime(ImageFileRuntime):
    """`srun --container-image` of the image's SquashFS file."""

    name = "pyxis"
    SUFFIX = ".sqsh"

    def boxed(self, unit: Unit, wanted: Wanted, folder: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """`srun ...`, to which variables are named; it takes their values from its own."""
        variables = {**HOME, **(GPUS if wanted.gpus else {}), **unit.secrets}
        # a mark that the command that starts the unit had would let it be taken for one of the unit's processes
        names = ",".join((*variables, *marks_of(unit)))
        odd = [mount.host for mount in unit.mounts if ODD.search(mount.host)]
        links = {host: f"{folder}/mount{len(odd) - number}" for number, host in enumerate(odd)}
        words = (
            *ONE,
            f"--export=PATH,{names}",  # slurmd finds programs by it; in the container the image's own holds
            f"--container-env={names}",
            f"--container-image={self.image_path(unit.image)}",
            *CONFINED,
            f"--container-mounts={','.join(_bind(mount, links) for mount in unit.mounts)}",
            *((f"--container-workdir={unit.workdir}",) if unit.workdir else ()),
        )
        return ("sh", "-c", STEP, folder, str(len(odd)), *odd, *words, *unit.argv), variables

    async def _tool_version(self, transport: Transport) -> str:
        said = await self._in_time(transport, ("sh", "-c", HAS_PYXIS))
        if not (said.ok and said.stdout.strip()):
            remedy = (
                f"{transport.host} must be a node of a Slurm job (HOSTS = slurm(...) in cluster_conf.py), with Pyxis: "
                "`srun --help` there shows --container-env"
            )
            raise CommandError(said, remedy)
        return f"Pyxis of {said.stdout.strip().splitlines()[-1]}"


def _bind(mount: Mount, links: Mapping[str, str]) -> str:
    """A mount as Pyxis reads it; FlagPerfError where it would read another one."""
    if ODD.search(mount.inside):
        message = (
            f"{mount.inside!r} has a colon, a comma or a blank in it, with which Pyxis can mount nothing"
        )
        raise FlagPerfError(message, remedy="mount it elsewhere on the host, or choose another RUNTIME")
    return f"{links.get(mount.host, mount.host)}:{mount.inside}{':ro' if mount.read_only else ''}"
