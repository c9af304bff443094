"""The container that lists an image's software: what it may do, and that it is found where it stays. Real engines."""

from __future__ import annotations

import secrets
import subprocess
from dataclasses import replace

import pytest

from run_benchmarks.images.build import LIST_SOFTWARE, BuildSite, listing_unit
from run_benchmarks.names import LABEL_RUN
from run_benchmarks.runtimes.engine import engine_of
from tests.lab.tiny_image import NAME
from tests.lab.tiny_image import build as build_tiny_image
from tests.run_benchmarks.images.engines import engine_with


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_what_lists_the_software_may_do_nothing_else_and_bears_its_runs_name(kind: str) -> None:
    command = engine_with(build_tiny_image(), kind)
    engine, run = engine_of(command), f"test-{secrets.token_hex(4)}"
    unit = listing_unit(
        BuildSite("/tree", "/srv/flagperf", run, f"flagperf-{run}", True), NAME, LIST_SOFTWARE
    )
    unit = replace(unit, argv=("sh", "-c", "cat /proc/self/status; ls /sys/class/net"))

    def ask(*argv: str) -> list[str]:
        return subprocess.run(argv, capture_output=True, check=True, text=True).stdout.splitlines()

    try:
        lines = ask(*engine.run_to_end(unit))
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert (int(status["CapEff"], 16), int(status["CapBnd"], 16), status["NoNewPrivs"]) == (0, 0, "1")
        assert [line for line in lines if ":" not in line] == ["lo"]
        left = ask(command, "ps", "-a", f"--filter=label={LABEL_RUN}={run}", "--format={{.Names}}")
        assert left == [unit.name], "where it is not removed, the run's clean-up finds it"
    finally:
        ask(*engine.remove([unit.name]))
