"""A real Slurm on this machine: munge, slurmctld and a slurmd a node, with ports, keys and configuration of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.ports import free_port

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
TOOLS = ("munged", "slurmctld", "slurmd", "srun", "unshare", "setpriv")
# Whatever ends the process that started it, also SIGKILL, ends a daemon with all that it started: the signal reaches
# unshare, whose child is the first process of a namespace of its own.
WITH_OWNER = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
# Not slurmd itself as the first process: its steps lose their parents, and somebody must see them end.
NODE = 'hostname "$1" && slurmd -D -N "$1" -f "$2"; exit $?'
READY_S = 60.0
FREEZER = Path("/sys/fs/cgroup/freezer")  # the groups by which Slurm tracks processes, of version 1
# What is told to end has two seconds; a node that does not answer is down a quarter of a minute later.
SETTINGS = """\
ClusterName=flagperf
SlurmctldHost={hostname}({address})
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/{tracking}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
SlurmdTimeout={slurmd_timeout}
MessageTimeout=5
TCPTimeout=1
KillWait=2
ReturnToService=2
MpiDefault=none
GresTypes=gpu
"""
PARTITIONS = """\
PartitionName=batch Default=YES Nodes=ALL MaxTime=INFINITE PriorityTier=10
PartitionName=spare Nodes=ALL MaxTime=INFINITE PriorityTier=1
PartitionName=short Nodes=ALL MaxTime=1 PriorityTier=10
"""


def why_no_slurm() -> str | None:
    """The reason why there can be no Slurm on this machine, with the remedy; None: there can."""
    if os.geteuid() != 0:
        return "namespaces need root (run the tests as root)"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SBIN) is None]
    if missing:
        return f"{', '.join(missing)} not found (apt-get install slurm-wlm munge util-linux)"
    return None


@dataclass
class Slurm:
    """A cluster of `nodes` nodes, `n1` and so on, each with `gpus` devices that are none.

    Partitions: `batch`, the default; `spare`, whose jobs are cancelled for those of `batch`; `short`, whose jobs may
    take a minute. A node has its own processes and host name; files and network are this machine's.

    settings: further lines of slurm.conf. prefix: of the nodes' names. control_groups: Slurm tracks a step's processes
    by one, as most sites have it, and not by descent; the prefix must be this cluster's own then, for nodes of one name
    share a group.
    """

    folder: Path
    nodes: int = 3
    gpus: int = 2
    cpus: int = 4
    slurmd_timeout: int = 5
    settings: Sequence[str] = ()
    prefix: str = "n"
    control_groups: bool = False
    _daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [f"{self.prefix}{number}" for number in range(1, self.nodes + 1)]

    @property
    def address(self) -> str:
        """Of this machine, as the nodes reach it."""
        return "127.0.0.1"

    def address_of(self, node: str) -> str:
        """Of a node, as this machine reaches it."""
        return "127.0.0.1"

    @property
    def configuration(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def variables(self) -> dict[str, str]:
        """What a process's environment must have, so that Slurm's commands speak to this one."""
        return {"SLURM_CONF": str(self.configuration)}

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of such a process: this one's, in which no other Slurm is named."""
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))
        }
        return {**own, "PATH": SBIN, **self.variables}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Up as long as the context lasts."""
        try:
            self.up()
            yield
        finally:
            self.down()

    def up(self) -> None:
        """Start all of it, and wait until every node can be used; about a second.

        Raises:
            RuntimeError: a daemon ended, or a node is not idle after READY_S; with their logs.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._configure()
        self._start_munge()
        self.start_controller()
        for name in self.names:
            self.start_node(name, wait=False)
        self.wait_for(dict.fromkeys(self.names, "idle"))

    def down(self) -> None:
        """End all of it, with everything that runs in its jobs."""
        for name in list(self._daemons):
            self._kill(name)
        for name in self.names if self.control_groups else ():
            subprocess.run(
                ["find", f"{FREEZER}/slurm_{name}", "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]
            )

    def reset(self) -> None:
        """Start again what was killed, and cancel every job."""
        if "slurmctld" not in self._daemons:
            self.start_controller()
        for name in self.names:
            if name not in self._daemons:
                self.start_node(name, wait=False)
        wait_until(lambda: bool(self.states()), self._logs, self._dead)
        self.run("scancel", "--user=root")
        self.wait_for_no_job()
        self.wait_for(dict.fromkeys(self.names, "idle"))

    def start_controller(self) -> None:
        """Start slurmctld, which finds the jobs that it had."""
        self._start("slurmctld", ["slurmctld", "-D", "-f", str(self.configuration)])

    def stop_controller(self) -> None:
        """End slurmctld, which writes down what it knows first; jobs go on."""
        self._kill("slurmctld", signal.SIGTERM)

    def start_node(self, name: str, *, wait: bool = True) -> None:
        """Start a node's slurmd; its earlier jobs are gone."""
        self._start(name, ["--uts", "sh", "-c", NODE, "node", name, str(self.configuration)])
        if wait:
            self.wait_for({name: "idle"})

    def kill_node(self, name: str) -> None:
        """Take a node's power away: every process of it dies at once. Slurm notices within a quarter of a minute."""
        self._kill(name)

    def run(self, *argv: str, timeout: float = 30.0) -> str:
        """What a command, such as `sbatch`, prints; it has to succeed."""
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"{argv}: exit code {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def submit(self, script: str, *options: str) -> int:
        """Send a batch job of these lines; its ID."""
        argv = ["sbatch", "--parsable", "--output=/dev/null", *options]
        done = subprocess.run(
            argv, env=self.environment, input=f"#!/bin/sh\n{script}\n", capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"{argv}: exit code {done.returncode}: {done.stderr}")
        return int(done.stdout)

    def allocate(self, *options: str) -> int:
        """A job that holds its nodes and does nothing, once it runs; its ID."""
        job = self.submit("sleep infinity", *options)
        self.wait_for_job(job, "RUNNING")
        return job

    def job(self, job: int) -> dict[str, str]:
        """What `scontrol` says of a job, by its own names."""
        words = self.run("scontrol", "show", "job", "--oneliner", str(job)).split()
        return {key: value for key, _, value in (word.partition("=") for word in words)}

    def jobs(self) -> dict[int, str]:
        """Jobs that wait, run or end, with their states."""
        lines = self.run("squeue", "--noheader", "--format=%A %T").splitlines()
        return {int(job): state for job, state in (line.split() for line in lines)}

    def wait_for_job(self, job: int, state: str) -> None:
        """Wait until a job has this state, such as RUNNING."""
        wait_until(lambda: self.job(job)["JobState"] == state, lambda: f"job {job}: {self.job(job)}")

    def wait_for_no_job(self) -> None:
        """Wait until no job waits, runs or ends."""
        wait_until(lambda: not self.jobs(), lambda: f"jobs: {self.jobs()}")

    def wait_for(self, states: Mapping[str, str]) -> None:
        """Wait until each of these nodes has its state, such as "idle" or "down*"."""
        wait_until(lambda: states.items() <= self.states().items(), self._logs, self._dead)

    def states(self) -> dict[str, str]:
        """Each node's state, as sinfo writes it; none while slurmctld does not answer."""
        argv = ["sinfo", "--noheader", "--Node", "--format=%N %T"]
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True)
        return dict(line.split() for line in done.stdout.splitlines()) if done.returncode == 0 else {}

    def _configure(self) -> None:
        devices = [self.folder / f"gpu{number}" for number in range(self.gpus)]
        for device in devices:  # of the kind that slurmd wants; it opens none
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        files = "".join(f"Name=gpu File={device}\n" for device in devices)
        (self.folder / "gres.conf").write_text(f"AutoDetect=off\n{files}")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        for name in ("state", *(f"spool-{node}" for node in self.names)):
            (self.folder / name).mkdir(exist_ok=True)
        gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        nodes = "".join(
            f"NodeName={name} NodeAddr={self.address_of(name)} Port={free_port()} CPUs={self.cpus} "
            f"RealMemory=1000{gres}\n"
            for name in self.names
        )
        settings = SETTINGS.format(
            folder=self.folder,
            hostname=socket.gethostname(),
            address=self.address,
            port=free_port(),
            slurmd_timeout=self.slurmd_timeout,
            tracking="cgroup" if self.control_groups else "linuxproc",
        )
        further = "".join(f"{line}\n" for line in self.settings)
        self.configuration.write_text(settings + further + nodes + PARTITIONS)

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {"key-file": key.name, "socket": "munge.socket", "pid-file": "munge.pid"}
        files |= {"log-file": "munge.log", "seed-file": "munge.seed"}
        options = [f"--{option}={self.folder / name}" for option, name in files.items()]
        self._start("munged", ["munged", "--foreground", "--force", *options])  # --force: /tmp is anybody's
        wait_until((self.folder / "munge.socket").exists, self._logs, self._dead)

    def _start(self, name: str, argv: Sequence[str]) -> None:
        with self._output(name) as output:
            self._daemons[name] = subprocess.Popen(
                [*WITH_OWNER, *argv],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the terminal is for the tests, not for the nodes
            )

    def _kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        daemon = self._daemons.pop(name)
        # unshare's child, not unshare, which then sees it end: nobody else might, and a zombie would stay
        for child in Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split():
            os.kill(int(child), number)
        daemon.wait()

    def _output(self, name: str) -> IO[bytes]:
        return (self.folder / f"{name}.out").open("ab")

    def _dead(self) -> bool:
        return any(daemon.poll() is not None for daemon in self._daemons.values())

    def _logs(self) -> str:
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(f"{file.name}:\n{file.read_text(errors='replace')[-2000:]}" for file in files)


def wait_until(
    holds: Callable[[], bool], what: Callable[[], str], is_over: Callable[[], bool] = lambda: False
) -> None:
    deadline = time.monotonic() + READY_S
    while not holds():
        if is_over() or time.monotonic() > deadline:
            raise RuntimeError(f"Slurm: waited in vain; {what()}")
        time.sleep(0.05)
