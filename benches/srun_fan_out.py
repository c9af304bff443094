"""What one command on each of 64 nodes of a Slurm job takes: by an srun each, one srun, or steps that wait for it.

    .venv/bin/python benches/srun_fan_out.py [--nodes 64] [--times 5]

As root, in the environment that test.sh makes. The nodes are slurmd side by side on this machine, so all of them share
its cores: on real nodes what is theirs runs at once, and what is left is this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "training")]

from run_benchmarks.transports.base import checked  # noqa: E402
from run_benchmarks.transports.local import LocalTransport  # noqa: E402
from run_benchmarks.transports.srun import SrunTransport  # noqa: E402
from tests.slurm.slurm import Slurm  # noqa: E402

COMMAND = ("hostname",)


async def an_srun_each(job: str, nodes: list[str]) -> None:
    """As many steps as nodes, all begun at once."""
    here, options = LocalTransport(), ("--overlap", f"--jobid={job}", "--nodes=1", "--ntasks=1", "--quiet")
    await asyncio.gather(
        *(checked(here, ["srun", *options, f"--nodelist={node}", *COMMAND]) for node in nodes)
    )


async def one_srun(job: str, nodes: list[str]) -> None:
    """One step with a task on each node."""
    options = ("--overlap", f"--jobid={job}", f"--nodes={len(nodes)}", "--ntasks-per-node=1", "--label")
    await checked(LocalTransport(), ["srun", *options, "--quiet", *COMMAND])


async def measure(job: str, nodes: list[str], times: int) -> dict[str, list[float]]:
    """Seconds of each way, `times` times; the steps that wait are begun by the first, which counts apart."""
    transports = [SrunTransport(job, node) for node in nodes]

    async def waiting_steps() -> None:
        await asyncio.gather(*(checked(transport, COMMAND) for transport in transports))

    taken = {
        "steps that wait, begun": await timed(waiting_steps, 1),
        "steps that wait": await timed(waiting_steps, times),
        "an srun each": await timed(lambda: an_srun_each(job, nodes), times),
        "one srun": await timed(lambda: one_srun(job, nodes), times),
    }
    await asyncio.gather(*(transport.close() for transport in transports))
    return taken


async def timed(work: Callable[[], Awaitable[None]], times: int) -> list[float]:
    """Seconds that it took."""
    seconds = []
    for _ in range(times):
        begin = time.monotonic()
        await work()
        seconds.append(time.monotonic() - begin)
    return seconds


def main() -> None:
    """Measure, print the table and, last, one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=64, help="simulated nodes (64)")
    parser.add_argument("--times", type=int, default=5, help="measurements of each way (5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flagperf-srun-") as folder:
        slurm = Slurm(Path(folder) / "slurm", nodes=options.nodes)
        try:
            slurm.up()
            os.environ.update(slurm.variables)
            job = slurm.allocate(f"--nodes={options.nodes}", "--exclusive")
            taken = asyncio.run(measure(str(job), slurm.names, options.times))
        finally:
            slurm.down()
    print(f"{options.nodes} nodes              median s     min     max")
    for way, seconds in taken.items():
        print(f"{way:24} {statistics.median(seconds):6.2f} {min(seconds):7.2f} {max(seconds):7.2f}")
    print(json.dumps({way: round(statistics.median(seconds), 3) for way, seconds in taken.items()}))


if __name__ == "__main__":
    main()
