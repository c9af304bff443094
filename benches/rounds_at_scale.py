"""What a whole round costs the controller on 8, 64 and 256 simulated hosts, with a task that ends at once.

    .venv/bin/python benches/rounds_at_scale.py [--hosts 8 64 256] [--rounds 3]

The rounds are the product's own, from acquiring the hosts to the verdict, by real ssh to loopback addresses (127.1.x.y)
that one process serves (rounds_hosts.py). Log-ins, keys and channels are real; what hosts answer is what a rehearsal's
do, but for their folders: these hold what the real monitor wrote here and, of rank 0, the log of a training that
reached its target, and are listed, sent, checked and judged as ever. All that takes time is the harness, and one
process's work for all hosts, whose CPU time is a column of its own. NOT measured: container engines, images,
networks, bringing the code (it is there, as in each round but the first), starting a process on a host, training, and
the preflight (scale.py measures it).

Beside it, in the same run: the same commands by an `ssh` subprocess each, SAMPLE at a time, as harnesses do that hold
no connection, extrapolated from so many hosts; and the 70 s that FlagPerf's published runner waits in any round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from benches import scale  # noqa: E402
from run_benchmarks.display.base import Display  # noqa: E402
from run_benchmarks.names import new_run_id  # noqa: E402
from run_benchmarks.plan.records import CasePlan, Plan  # noqa: E402
from run_benchmarks.round import Round  # noqa: E402
from run_benchmarks.session import Session, open_session  # noqa: E402
from run_benchmarks.transports.base import Completed  # noqa: E402
from run_benchmarks.transports.ssh import SshTransport  # noqa: E402
from tests.ports import free_port  # noqa: E402
from tests.run_benchmarks.builders import (  # noqa: E402
    END_MS,
    FINISHED,
    training_events,
    write_rank_log,
)
from utils.records import Verdict  # noqa: E402

HOSTS = (8, 64, 256)
SERVER = Path(__file__).with_name("rounds_hosts.py")
FIXED_WAITS_OF_FLAGPERF_S = 70.0
MONITOR_S = 4
# The tests' training of 15 s, made so short that it fits into any round.
FASTER = 100
TIMES = ("e2e_time", "init_time", "raw_train_time", "no_eval_time", "pure_compute_time", "time_to_target")
SAMPLE = 16  # hosts, whose commands go by ssh


class Noting(SshTransport):
    """A host whose commands are noted."""

    noted: list[tuple[str, ...]]

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        self.noted.append(tuple(argv))
        return await super().run(argv, **options)


def make_folders(nodes: Path) -> None:
    """What hosts have in their nodes' folders, less the log of rank 0."""
    for name in ("first", "other"):
        folder = nodes / name
        folder.mkdir(parents=True)
        (folder / "start_pytorch_task.log").write_text("a line of a log\n" * 20)
        words = ("--log-dir", str(folder), "--vendor-dir", "cpu", "--sources", "cpu=1,mem=1")
        argv = ("timeout", str(MONITOR_S), sys.executable, "-m", "utils.monitors", *words)
        subprocess.run(argv, cwd=ROOT / "training", stdout=subprocess.DEVNULL, check=False)


def write_first_log(folder: Path, case: CasePlan) -> None:
    """The log of a training that ends now and reached the case's target."""
    now, target = int(time.time() * 1000), case.parameters["target_accuracy"]
    times = {name: value / FASTER for name, value in FINISHED.items() if name in TIMES}
    reached = {"metric": "accuracy", "final_accuracy": target, "target": target, "precision": "fp32"}
    events = training_events(**times, **reached)
    moved = [replace(event, time_ms=now + int((event.time_ms - END_MS) / FASTER)) for event in events]
    write_rank_log(folder, moved)


async def measure(plan: Plan, folder: Path, rounds: int, server: int) -> dict[str, Any]:
    """Figures of the rounds on all hosts of `plan`, one before them not counted."""
    names = plan.cluster.hosts
    case = plan.cases[0]
    case = replace(case, hosts=names, settings=replace(case.settings, nnodes=len(names)))
    plan, noted = replace(plan, cases=(case,)), []
    (folder / "result").mkdir()

    def opened(name: str) -> SshTransport:
        host = (Noting if name == names[-1] else SshTransport)(name, plan.cluster)
        if isinstance(host, Noting):
            host.noted = noted
        return host

    run = new_run_id(datetime.now().astimezone())
    session = open_session(plan, run, folder / "result", Display(), opened)
    measured = []
    for number in range(1, rounds + 2):
        noted.clear()
        write_first_log(folder / "nodes/first", case)
        measured.append(await _round(session, case, number, server))
    await asyncio.gather(*(host.transport.close() for host in session.allocator.standing))
    session.journal.close()
    middle = {key: statistics.median(each[key] for each in measured[1:]) for key in measured[0]}
    return {**middle, "commands": noted}


async def _round(session: Session, case: CasePlan, number: int, server: int) -> dict[str, float]:
    begin, cpu, there = time.perf_counter(), time.process_time(), scale.process_time_of(server)
    result = await Round(session, case, number).run()
    wall, spent = time.perf_counter() - begin, time.process_time() - cpu
    of_hosts = scale.process_time_of(server) - there
    if result.verdict is not Verdict.CONVERGED:
        sys.exit(f"round {number}: {result.verdict.value}: {result.failure} {result.notes[:3]}")
    count = len(case.hosts)
    cost = {"round_s": wall, "cpu_ms": 1e3 * spent / count, "hosts_cpu_ms": 1e3 * of_hosts / count}
    return {**cost, **result.times}


def of_one_size(count: int, rounds: int) -> dict[str, Any]:
    """The figures on `count` hosts."""
    names = scale.addresses(count)
    with tempfile.TemporaryDirectory(prefix="flagperf-rounds-", dir="/var/tmp") as name:
        folder, port = Path(name), free_port()
        scale.make_keys(folder, names, port)
        make_folders(folder / "nodes")
        plan = scale.make_plan(folder, names, port, 'RUNTIME = "process"\n')
        with scale.serving(folder, names, port, SERVER) as server:
            figures = asyncio.run(measure(plan, folder, rounds, server))
            figures["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            commands = figures.pop("commands")
            sample = names[-SAMPLE:]
            peer = scale.Peer(folder, port, commands)
            figures["ssh_s"] = count * peer.seconds(sample, SAMPLE, is_by_command=True)
        return {**figures, "hosts": count, "commands": len(commands)}


def main() -> None:
    """Measure each number of hosts in a process of its own, print the table and, last, one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS, help="how many at a time (8 64 256)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds counted per number of hosts (3)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = sorted(options.hosts)
    if options.one:
        print(json.dumps(of_one_size(sizes[0], options.rounds)))
        return
    print("       CPU ms a host and round:")
    print("hosts  round s  controller  hosts    MiB  commands a host  by ssh s  times  fixed waits, times")
    measured = []
    for count in sizes:
        argv = (sys.executable, __file__, "--one", "--hosts", str(count), "--rounds", str(options.rounds))
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, env=os.environ, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        measured.append(figures)
        print(row(figures), flush=True)
    least, most = measured[0], measured[-1]
    growth = (most["round_s"] - least["round_s"]) / max(1, most["hosts"] - least["hosts"])
    print(json.dumps({"growth_ms_per_host": round(1e3 * growth, 2), "by_hosts": measured}))


def row(figures: dict[str, Any]) -> str:
    """A line of the table."""
    seconds, by_ssh = figures["round_s"], figures["ssh_s"]
    cpu = f"{figures['cpu_ms']:11.1f} {figures['hosts_cpu_ms']:6.1f}"
    return (
        f"{figures['hosts']:5} {seconds:8.2f} {cpu} {figures['mib']:6.0f} {figures['commands']:16} {by_ssh:9.1f} "
        f"{by_ssh / seconds:6.1f} {FIXED_WAITS_OF_FLAGPERF_S / seconds:19.1f}"
    )


if __name__ == "__main__":
    main()
