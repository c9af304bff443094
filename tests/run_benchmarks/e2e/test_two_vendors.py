"""One run measures the chips of two vendors, each on its own real host and in its own image."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import QUICK, Bench, containers

CPU, TWIN = "bert:pytorch:cpu:1:1:1", "twin:bert:pytorch:T1:1:1:1"


def _second_vendor(run: Bench) -> None:
    """`twin`, which trains BERT as the first vendor does."""
    twin = run.second_vendor()
    shutil.copytree(run.training / "cpu" / "bert-pytorch", twin / "bert-pytorch")
    config = twin / "bert-pytorch" / "config"
    (config / "config_cpux1x1.py").rename(config / "config_T1x1x1.py")


def test_each_vendors_case_runs_on_its_own_host(
    two_hosts: Lab, bench: Callable[..., Bench], data: Path, image: str
) -> None:
    run = bench(["h1", "h2"], **two_hosts.env)
    run.vendor_config("cpux1x1", QUICK)
    _second_vendor(run)
    run.cluster(HOSTS={"cpu": ["h1"], "twin": ["h2"]})
    run.test(
        CASES={CPU: str(data), TWIN.replace(":", "/", 1): str(data)},
        VENDORS={"twin": {"IMAGE_BUILD_ARGS": {"BASE_IMAGE": image}, "ACCE_CONTAINER_OPT": "--env TWIN=yes"}},
    )

    ended = run.run()

    assert ended.code == 0, ended.output
    assert [(r["case"], r["verdict"], r["hosts"]) for r in ended.rounds()] == [
        (CPU, "CONVERGED", ["h1"]),
        (TWIN, "CONVERGED", ["h2"]),
    ]
    assert ended.folder is not None
    cpu, twin = json.loads((ended.folder / "plan.json").read_text())["cases"]
    assert (cpu["container_options"], twin["container_options"]) == ([], ["--env", "TWIN=yes"])
    # The twin's chip has a peak, and so an MFU; `cpu` has none.
    mfu = [result["figures"]["MFU"]["value"] for result in ended.rounds()]
    assert mfu[0] is None and mfu[1] > 0
    table = (ended.folder / "summary.md").read_text()
    assert CPU in table and TWIN in table
    assert (ended.folder / TWIN / "round1" / "h2_noderank0" / "rank0.out.log").is_file()
    built = [two_hosts.ssh(host, "docker", "images", "flagperf/twin-*", "-q").stdout for host in (1, 2)]
    assert built[0] == "" and built[1] != "", "the twin's image is built where it runs"
    assert [containers(two_hosts, host) for host in (1, 2)] == ["", ""]
