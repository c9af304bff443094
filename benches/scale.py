"""What 1,000 hosts cost the controller: health check, fan-out of a command, deploy check, collection.

    .venv/bin/python benches/scale.py [--hosts 1000]

The hosts are loopback addresses (127.1.x.y), which one process serves (scale_hosts.py): an ssh server with real
log-ins, keys and channels, that gives to all hosts the answers of this machine. The health check is the preflight
itself, of one case on all hosts. Beside it the same checks by `ssh`: a subprocess a host that runs all of them, and a
subprocess a command, as harnesses do that hold no connection; in turn, and 64 at a time; of samples, extrapolated. The
last stage is the floor: log-in and one command by asyncssh alone. No network is on the way: where there is one, `ssh`
in turn waits for each of its round trips.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from benches.scale_bare import log_in_bare  # noqa: E402
from run_benchmarks.hosts.base import Host  # noqa: E402
from run_benchmarks.names import HostPaths  # noqa: E402
from run_benchmarks.plan.load import load_plan  # noqa: E402
from run_benchmarks.plan.records import Plan  # noqa: E402
from run_benchmarks.runtimes import open_runtime  # noqa: E402
from run_benchmarks.stages.checks import Check, Status, with_status  # noqa: E402
from run_benchmarks.stages.collect import collect_folder  # noqa: E402
from run_benchmarks.stages.deploy import deploy_tree  # noqa: E402
from run_benchmarks.stages.fan_out import all_of  # noqa: E402
from run_benchmarks.stages.preflight import preflight  # noqa: E402
from run_benchmarks.stages.tree import tree_of  # noqa: E402
from run_benchmarks.transports.base import Completed  # noqa: E402
from run_benchmarks.transports.local import LocalTransport  # noqa: E402
from run_benchmarks.transports.ssh import SshTransport  # noqa: E402
from run_benchmarks.transports.together import RUN_ALL  # noqa: E402
from tests.ports import free_port  # noqa: E402

SERVER = Path(__file__).with_name("scale_hosts.py")
BLOCK = 250  # hosts of one 127.1.x
CLUSTER = 'HOSTS = {hosts!r}\nSSH_PORT = {port}\nSSH_USER = "root"\nSSH_CONNECT_TIMEOUT = 60\nMASTER_PORT = {master}\n'
TEST = """\
VENDOR = "cpu"
CASES = {{"digits:pytorch:cpu:1:2:1": "{folder}/data"}}
FLAGPERF_PATH = "{folder}/flagperf"
FLAGPERF_LOG_PATH = "{folder}/result"
MIN_FREE_DISK_GIB = 0
"""
LOGS = ("rank0.out.log", "start_pytorch_task.log", "cpu_monitor.log", "mem_monitor.log", "pwr_monitor.log")
LOG_LINES = 2000  # of each, 16 bytes long
AT_ONCE = 64
SAMPLES = {"in_turn": 20, "64": 128}  # hosts


class NotingHost(SshTransport):
    """A host whose commands go one by one, and are noted."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.noted: list[tuple[str, ...]] = []

    def together(self) -> NotingHost:
        return self

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.noted.append(tuple(argv))
        return await super().run(argv, **options)


def process_time_of(number: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Clock:
    """Measures one stage after the other, and prints a line of the table for each."""

    def __init__(self, server: int, hosts: int) -> None:
        self._server, self._hosts = server, hosts
        self.walls: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what happens within: its wall time, and processor time of the controller and of the server."""
        begin = self._now()
        yield
        wall, here, there = (after - before for before, after in zip(begin, self._now(), strict=True))
        self.walls[name] = wall
        of_host = [1e3 * seconds / self._hosts for seconds in (here, there)]
        print(f"{name:12} {wall:8.2f} {of_host[0]:12.2f} {of_host[1]:13.2f}", flush=True)

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), process_time_of(self._server)


def addresses(count: int) -> list[str]:
    """Those of so many hosts."""
    return [f"127.1.{number // BLOCK}.{number % BLOCK + 1}" for number in range(count)]


def make_keys(folder: Path, names: Sequence[str], port: int) -> None:
    """A user with a key that may log in, who knows all hosts; this process becomes that user."""
    ssh = folder / "home/.ssh"
    ssh.mkdir(parents=True, mode=0o700)
    for key in (ssh / "id_ed25519", folder / "host_key"):
        subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", str(key)], check=True)
    (folder / "authorized_keys").write_text((ssh / "id_ed25519.pub").read_text())
    kind, public, *_ = (folder / "host_key.pub").read_text().split()
    (ssh / "known_hosts").write_text("".join(f"[{name}]:{port} {kind} {public}\n" for name in names))
    os.environ["HOME"] = str(folder / "home")
    os.environ.pop("SSH_AUTH_SOCK", None)


@contextmanager
def serving(folder: Path, names: Sequence[str], port: int, server: Path = SERVER) -> Iterator[int]:
    """The process that serves the hosts, by the program `server`; its number."""
    argv = [sys.executable, str(server), str(folder), str(port), *names]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as serves:
        try:
            assert serves.stdout and serves.stdout.readline() == "ready\n", "the hosts are not served"
            yield serves.pid
        finally:
            serves.kill()


def make_plan(folder: Path, names: Sequence[str], port: int, more: str = "") -> Plan:
    """A plan of one case; its hosts are given to the stages by hand, as no peer is reached by a loopback address.

    Args:
        more: further lines of test_conf.py.
    """
    (folder / "config").mkdir()
    (folder / "data").mkdir()
    cluster = CLUSTER.format(hosts=list(names), port=port, master=free_port())
    (folder / "config/cluster_conf.py").write_text(cluster)
    (folder / "config/test_conf.py").write_text(TEST.format(folder=folder) + more)
    return load_plan(folder / "config", ROOT / "training")


async def deployed(plan: Plan) -> HostPaths:
    """The tree, and a node's logs, where all hosts will have them."""
    tree = tree_of(plan)
    work = f"{plan.run.flagperf_path_host}/.flagperf"
    paths = HostPaths(work, f"{work}/tree-{tree.digest[:16]}", f"{work}/runs/run", f"{work}/runs/run/logs")
    await deploy_tree(LocalTransport(), tree, paths)
    node = Path(paths.logs) / "node"
    node.mkdir(parents=True)
    for name in LOGS:
        (node / name).write_text("a line of a log\n" * LOG_LINES)
    return paths


def assert_healthy(checks: dict[str, list[Check]]) -> None:
    """What is not healthy was not measured."""
    wrong = with_status(checks, Status.WARNING, Status.ERROR)
    if wrong:
        host, check = wrong[0]
        sys.exit(f"{len(wrong)} checks are not ok: {host}: {check.name}: {check.detail} -> {check.remedy}")


async def measure(plan: Plan, folder: Path, clock: Clock) -> list[tuple[str, ...]]:
    """All stages on all hosts, into `clock`; the commands of one host's health check."""
    runtime, case, tree = open_runtime(plan.run), plan.cases[0], tree_of(plan)
    names = plan.cluster.hosts
    hosts = [Host(name, f"node{rank}", SshTransport(name, plan.cluster)) for rank, name in enumerate(names)]
    paths = await deployed(plan)
    noting = NotingHost(names[-1], plan.cluster)
    await preflight(plan, runtime, [Host("last", "last", noting)], [])  # and what is loaded late is loaded
    noting.noted.clear()
    last = Host(names[-1], "last", noting)
    await preflight(plan, runtime, [last], [(case, [*hosts[:-1], last])])
    await noting.close()
    with clock.stage("health"):
        checks = await preflight(plan, runtime, hosts, [(case, hosts)])
    assert_healthy(checks)
    with clock.stage("fan-out"):
        await all_of(hosts, lambda host: host.transport.run(["true"]))
    with clock.stage("deploy check"):
        await all_of(hosts, lambda host: deploy_tree(host.transport, tree, paths))
    with clock.stage("collection"):
        await all_of(
            hosts,
            lambda host: collect_folder(
                host.transport,
                paths.work,
                "runs/run/logs/node",
                folder / "got" / host.name,
                600.0,
                len(hosts),
            ),
        )
    with clock.stage("close"):
        await all_of(hosts, lambda host: host.transport.close())
    with clock.stage("bare log-in"):
        await log_in_bare(names, int(plan.cluster.ssh_port or 0), folder / "home")
    return noting.noted


class Peer:
    """The checks of a host by `ssh` subprocesses."""

    def __init__(self, folder: Path, port: int, commands: Sequence[tuple[str, ...]]) -> None:
        home = folder / "home/.ssh"
        options = (f"UserKnownHostsFile={home}/known_hosts", "BatchMode=yes", "IdentitiesOnly=yes")
        words = [word for option in options for word in ("-o", option)]
        self._ssh = [
            "ssh",
            "-n",
            "-F",
            "none",
            "-i",
            f"{home}/id_ed25519",
            "-p",
            str(port),
            "-l",
            "root",
            *words,
        ]
        self._commands = commands

    def seconds(self, names: Sequence[str], at_once: int, *, is_by_command: bool) -> float:
        """How long one host takes, of `names`."""
        one = (
            "sh",
            "-c",
            RUN_ALL,
            "mark",
            *(word for each in self._commands for word in (str(len(each)), *each)),
        )
        commands = self._commands if is_by_command else [one]

        def check(name: str) -> None:
            for argv in commands:
                done = subprocess.run([*self._ssh, name, shlex.join(argv)], capture_output=True)
                assert done.returncode != 255, done.stderr.decode()

        begin = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(check, names))
        return (time.perf_counter() - begin) / len(names)


def main() -> None:
    """Measure, print the tables and, last, one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, default=1000)
    count = parser.parse_args().hosts
    names = addresses(count)
    with tempfile.TemporaryDirectory(prefix="flagperf-scale-", dir="/var/tmp") as name:
        folder, port = Path(name), free_port()
        make_keys(folder, names, port)
        plan = make_plan(folder, names, port)
        with serving(folder, names, port) as server:
            print(
                f"{count} hosts   wall s  here ms/host there ms/host  (CPU time of the controller, of the server)"
            )
            clock = Clock(server, count)
            commands = asyncio.run(measure(plan, folder, clock))
            rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            health = clock.walls["health"]
            result: dict[str, float] = {"hosts": count, "health_s": round(health, 2)}
            print(f"the checks of all hosts by ssh, {len(commands)} commands a host, from samples:")
            peer = Peer(folder, port, commands)
            for is_by_command in (False, True):
                what = "a subprocess a command" if is_by_command else "a subprocess a host"
                for way, sample in SAMPLES.items():
                    sampled = names[: sample // 4 if is_by_command else sample]
                    at_once = AT_ONCE if way == "64" else 1
                    seconds = count * peer.seconds(sampled, at_once, is_by_command=is_by_command)
                    print(
                        f"  {what}, {way.replace('_', ' '):7} {seconds:9.1f} s   {seconds / health:6.1f} times"
                    )
                    result[f"ratio_{way}" + "_by_command" * is_by_command] = round(seconds / health, 1)
            print(json.dumps({**result, "rss_mb": round(rss_mb)}))


if __name__ == "__main__":
    main()
