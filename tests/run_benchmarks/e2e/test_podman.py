"""Rounds with Podman on real hosts: as root, and as a user whom the hosts grant nothing but subordinate IDs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.plan.load import load_plan
from tests.lab.fixtures import LabFactory
from tests.lab.images import stream
from tests.lab.lab import Lab
from tests.lab.podman import ADMIT_USER
from tests.run_benchmarks.e2e.harness import QUICK, Bench, Ended, run_folder
from tests.run_benchmarks.e2e.pair import write_pair
from tests.run_benchmarks.e2e.setup import make_image
from tests.run_benchmarks.runtimes.conftest import need_engine

BERT, PAIR = "bert:pytorch:cpu:1:1:1", "pair:pytorch:T1:2:1:1"
WORK = "/var/lib/flagperf-test"
MakeBench = Callable[..., Bench]


class PodmanHosts:
    """Two hosts on which `user` has Podman."""

    def __init__(self, lab: Lab, user: str) -> None:
        self.lab, self.user = lab, user
        for host in (1, 2):
            if user != "root":
                lab.ssh(host, "sh", "-c", ADMIT_USER, "admit", user)
            lab.ssh(host, "sh", "-c", 'rm -rf "$0"; mkdir "$0"; chown "$1" "$0"', WORK, user)

    def load(self, image: str) -> None:
        """Give the first host an image of this machine."""
        stream([image], self.lab.ssh_argv(1, self.podman("load")))

    def podman(self, *argv: str) -> list[str]:
        home = "/root" if self.user == "root" else f"/var/lib/containers/home/{self.user}"
        return ["runuser", "-u", self.user, "--", "env", "-C", "/", f"HOME={home}", "podman", *argv]

    def ask(self, host: int, *argv: str) -> str:
        """What the user's podman prints on a host."""
        return self.lab.ssh(host, *self.podman(*argv)).stdout.strip()

    def assert_nothing_is_left(self, uid: str, hosts: Sequence[int]) -> None:
        for host in hosts:
            assert self.ask(host, "ps", "--all", "--quiet") == ""
            assert run_folder(self.lab, host, uid) == ""


def _result(ended: Ended) -> dict[str, Any]:
    """That of the only round, which converged."""
    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert (result["verdict"], result["failure"]) == ("CONVERGED", None)
    return dict(result)


def _assert_monitored(ended: Ended, ranks: int) -> None:
    assert ended.folder is not None
    logs = sorted(ended.folder.rglob("*noderank*/*.log"))
    for rank in range(ranks):
        names = {path.name for path in logs if path.parent.name.endswith(f"noderank{rank}")}
        assert {"cpu_monitor.log", "mem_monitor.log", f"rank{rank}.out.log"} <= names
    assert all(path.stat().st_size for path in logs if path.name == "cpu_monitor.log")


@pytest.mark.parametrize("user", ["root", "tester"])
def test_podman_runs_a_case_on_two_hosts(
    user: str, lab: LabFactory, bench: MakeBench, data: Path, tmp_path: Path
) -> None:
    need_engine("podman")
    hosts = PodmanHosts(lab(hosts=2), user)
    run = bench(["h1", "h2"], **hosts.lab.env)
    run.second_vendor()
    write_pair(run.training, "twin", "T1")
    settings = {"VENDOR": "twin", "CASES": {PAIR: str(data)}}
    run.test(**settings, PIP_FROM_HOST=True)
    image = make_image(load_plan(run.config, run.training), tmp_path)
    hosts.load(image)
    run.cluster(HOSTS=["h1", "h2"], SSH_USER=user)
    run.test(**settings, CONTAINER_ENGINE="podman")

    ended = run.run()

    result = _result(ended)
    assert f"streaming {image}" in ended.output
    assert len(set(result["images"].values())) == 1  # what was streamed from h1 to h2 is the same
    _assert_monitored(ended, ranks=2)
    hosts.assert_nothing_is_left(ended.uid(), (1, 2))


def test_podman_trains_to_the_target(lab: LabFactory, image: str, bench: MakeBench, data: Path) -> None:
    need_engine("podman")
    hosts = PodmanHosts(lab(hosts=2), "tester")
    hosts.load(image)
    run = bench(["h1"], **hosts.lab.env)
    run.cluster(HOSTS=["h1"], SSH_USER="tester")
    run.vendor_config("cpux1x1", QUICK)
    run.test(CASES={BERT: str(data)}, CONTAINER_ENGINE="podman")

    ended = run.run()

    # so low a target is met by always guessing the commonest token
    doubt, note = _result(ended)["notes"]
    assert "was met before training: a trivial answer's mlm_accuracy is" in doubt
    assert note.startswith('precision = "auto" is ')
    _assert_monitored(ended, ranks=1)
    hosts.assert_nothing_is_left(ended.uid(), (1,))
