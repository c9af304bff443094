"""What the harness itself costs: `round_time` less `e2e_time`, on 1, 2, 4 and 8 lab hosts with the image there.

    .venv/bin/python benches/overhead.py [--rounds 3] [--hosts 1 2 4 8]
    .venv/bin/python benches/overhead.py --slurm [--rounds 3]

As root, in the environment that test.sh makes. Each round is a real one: BERT at the demo's size for some
seconds, one process a host, DDP over gloo between the hosts. The peer in the table is what FlagPerf's
published runner spends in its fixed waits alone. With a task that ends at once, on 256 simulated hosts:
rounds_at_scale.py.
`--slurm`: rounds on the same two hosts by ssh and by Slurm, which gives each a job of its own; its queue is empty. What
Slurm takes more is of all that a round needs, from asking for its hosts to having given them back.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "training")]

from tests.lab.lab import Lab  # noqa: E402
from tests.run_benchmarks.e2e.harness import QUICK, Bench  # noqa: E402
from tests.run_benchmarks.e2e.setup import machine_plan, make_data, make_image  # noqa: E402
from tests.slurm.lab_slurm import slurm_of_lab  # noqa: E402

HOSTS = (1, 2, 4, 8)
STAGES = ("deploy", "image", "launch", "train", "collect")
ALL_STAGES = ("acquire", "preflight", *STAGES, "clean_up")
# A wait after the start of the tasks and polls of their end: 60 s and 10 s.
FIXED_WAITS_OF_FLAGPERF_S = 70.0


def measure(hosts: int, rounds: int, image: str, data: Path, folder: Path) -> list[dict[str, Any]]:
    """The results of `rounds` rounds on `hosts` hosts; one round before them is not counted."""
    with Lab(hosts=hosts, images=[image]) as lab:
        return run_rounds(prepared(hosts, rounds, data, folder / str(hosts), lab.env))


def prepared(hosts: int, rounds: int, data: Path, folder: Path, env: Mapping[str, str]) -> Bench:
    """What runs the rounds, and one before them, on h1 and those after it."""
    bench = Bench(folder, [f"h{number + 1}" for number in range(hosts)], env)
    bench.vendor_config(f"cpux{hosts}x1", QUICK)
    bench.test(CASES={f"bert:pytorch:cpu:{hosts}:1:{rounds + 1}": str(data)})
    return bench


def run_rounds(bench: Bench) -> list[dict[str, Any]]:
    """The results of its rounds but for the first."""
    ended = bench.run()
    if ended.code != 0:
        sys.exit(ended.output)
    return ended.rounds()[1:]


def measure_slurm(rounds: int, image: str, data: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The results of rounds on the same two hosts by `ssh` and by `Slurm`."""
    with slurm_of_lab(folder / "slurm", hosts=2, images=[image]) as slurm:
        env = {**slurm.lab.env, **slurm.variables}
        by_ssh = prepared(2, rounds, data, folder / "ssh", env)
        by_slurm = prepared(2, rounds, data, folder / "by_slurm", env)
        by_slurm.cluster(HOSTS={"slurm": {}})
        return {"ssh": run_rounds(by_ssh), "Slurm": run_rounds(by_slurm)}


def all_but_training(result: dict[str, Any]) -> float:
    """All stages of a round, from asking for its hosts, less `e2e_time`, in seconds."""
    return float(sum(result["times"].values()) - result["figures"]["e2e_time"]["value"])


def compare_slurm(rounds: int, image: str, data: Path, folder: Path) -> None:
    """Print the stages of both, and how much more Slurm takes."""
    measured = measure_slurm(rounds, image, data, folder)
    print(f"by    overhead_s     min     max {' '.join(f'{stage:>9}' for stage in ALL_STAGES)}")
    medians = {}
    for way, results in measured.items():
        spent = [all_but_training(result) for result in results]
        medians[way] = statistics.median(spent)
        stages = [
            statistics.median(result["times"].get(stage, 0.0) for result in results) for stage in ALL_STAGES
        ]
        parts = " ".join(f"{value:9.2f}" for value in stages)
        print(f"{way:5} {medians[way]:10.2f} {min(spent):7.2f} {max(spent):7.2f} {parts}")
    print(json.dumps({"slurm_extra_s": round(medians["Slurm"] - medians["ssh"], 3)}))


def overhead(result: dict[str, Any]) -> float:
    """`round_time` less `e2e_time`, in seconds."""
    figures = result["figures"]
    return float(figures["round_time"]["value"] - figures["e2e_time"]["value"])


def row(hosts: int, results: Sequence[dict[str, Any]]) -> str:
    """A line of the table: medians over the rounds."""
    spent = [overhead(result) for result in results]
    stages = [statistics.median(result["times"][stage] for result in results) for stage in STAGES]
    e2e = statistics.median(result["figures"]["e2e_time"]["value"] for result in results)
    parts = " ".join(f"{value:8.2f}" for value in stages)
    return (
        f"{hosts:5} {statistics.median(spent):10.2f} {min(spent):7.2f} {max(spent):7.2f} {e2e:8.2f} {parts}"
    )


def main() -> None:
    """Measure, print the table and, last, one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3, help="rounds counted per number of hosts (3)")
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS, help="how many at a time (1 2 4 8)")
    parser.add_argument("--slurm", action="store_true", help="two hosts, by ssh and by Slurm")
    options = parser.parse_args()
    rounds, sizes = options.rounds, sorted(options.hosts)
    medians: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="flagperf-overhead-", dir="/var/tmp") as name:
        folder = Path(name)
        data = make_data()
        image = make_image(machine_plan(folder / "config", data), folder)
        if options.slurm:
            compare_slurm(rounds, image, data, folder)
            return
        heading = " ".join(f"{stage:>8}" for stage in STAGES)
        print(f"hosts overhead_s     min     max    e2e_s {heading}")
        for hosts in sizes:
            results = measure(hosts, rounds, image, data, folder)
            medians[hosts] = statistics.median(overhead(result) for result in results)
            print(row(hosts, results), flush=True)
    least, most = sizes[0], sizes[-1]
    growth = (medians[most] - medians[least]) / max(1, most - least)
    shown = 2 if 2 in medians else least
    print(f"ratio to FlagPerf's fixed waits alone: {FIXED_WAITS_OF_FLAGPERF_S / medians[shown]:.1f}")
    print(
        json.dumps(
            {
                "overhead_s": round(medians[shown], 3),
                "by_hosts": {str(hosts): round(value, 3) for hosts, value in medians.items()},
                "growth_s_per_host": round(growth, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
