"""`run.py doctor` and `cleanup --unused` on two real hosts that are not alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.setup import BASE_IMAGE, TRAINING

OURS, MINE = "flagperf/lab-pytorch:0123456789ab", "flagperf-lab-mine:1"
BUILD = (
    f"echo FROM {BASE_IMAGE} >/tmp/Dockerfile && docker build --quiet --label flagperf.layer=dockerfile "
    f"--tag {OURS} --tag {MINE} /tmp"
)
RUN = (str(TRAINING / "run_benchmarks" / "run.py"),)
# No image can be made older than it is.
A_DAY_LATER = (
    "import sys; from run_benchmarks import unused, verbs; unused.DAY_S = 0; verbs.main(sys.argv[1:])"
)
LIMIT = ("prlimit", "--noheadings", "--output=SOFT", "--nofile")


@pytest.fixture
def unlike(lab: LabFactory) -> Iterator[Lab]:
    """The second host takes smaller packets, and lets a process open fewer files; both have an image of ours."""
    hosts = lab(hosts=2, images=[BASE_IMAGE])
    sshd = hosts.ssh(2, "pgrep", "--oldest", "sshd").stdout.strip()
    soft = hosts.ssh(2, *LIMIT, "--pid", sshd).stdout.strip()
    hosts.ssh(2, "ip", "link", "set", "eth0", "mtu", "1400")
    hosts.ssh(2, "prlimit", "--pid", sshd, "--nofile=768:")
    for index in (1, 2):
        hosts.ssh(index, "sh", "-c", BUILD)
    yield hosts
    hosts.ssh(2, "prlimit", "--pid", sshd, f"--nofile={soft}:")
    hosts.ssh(2, "ip", "link", "set", "eth0", "mtu", "1500")
    for index in (1, 2):
        hosts.ssh(index, "docker", "image", "rm", "--force", OURS, MINE, check=False)


def run(
    hosts: Lab, config: Path, *words: str, program: Sequence[str] = RUN
) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, *program, *words, "--config", str(config)]
    env = {**os.environ, **hosts.env, "PYTHONPATH": str(TRAINING)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_two_hosts_that_are_not_alike(unlike: Lab, tmp_path: Path) -> None:
    (tmp_path / "cluster_conf.py").write_text('HOSTS = ["h1", "h2"]\nMASTER_PORT = "29513"\n')
    (tmp_path / "test_conf.py").write_text(
        'VENDOR = "cpu"\nRUNTIME = "docker"\nCASES = {}\nFLAGPERF_PATH = "/var/tmp/flagperf-doctor"\n'
        f'FLAGPERF_LOG_PATH = "{tmp_path}/result"\n'
    )
    done = run(unlike, tmp_path, "doctor", "--no-cases", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    content = json.loads(done.stdout)
    differing = {(each["check"], each["fact"]): each["answers"] for each in content["differences"]}
    assert differing["mtu", "eth0"] == [
        {"value": "1500", "hosts": ["h1"]},
        {"value": "1400", "hosts": ["h2"]},
    ]
    assert {"value": "768", "hosts": ["h2"]} in differing["limits", "nofile"]
    for host, peer in (("h1", "h2"), ("h2", "h1")):
        checks = content["hosts"][host]
        assert checks["host key"]["facts"]["kind"] == "ssh-ed25519"
        assert checks["container"]["detail"] == f"{OURS} ran for cpu"
        assert f"to {peer}: " in checks["link"]["detail"] and checks["link"]["facts"]["bytes_per_s"] > 0
    keys = {content["hosts"][host]["host key"]["facts"]["fingerprint"] for host in ("h1", "h2")}
    assert len(keys) == 2
    for index in (1, 2):
        assert unlike.ssh(index, "docker", "ps", "--all", "--quiet").stdout == ""
        made = unlike.ssh(index, "ls", "/var/tmp/flagperf-doctor", check=False)
        assert made.returncode != 0, "it left something"
    kept = run(unlike, tmp_path, "cleanup", "--unused", "--yes")
    assert f"image {OURS}" in kept.stdout and "kept: made less than a day ago" in kept.stdout, kept.stderr
    assert "mine" not in kept.stdout
    removed = run(unlike, tmp_path, "cleanup", "--unused", "--yes", program=("-c", A_DAY_LATER))
    assert f"h1: removed {OURS}\n" in removed.stdout and f"h2: removed {OURS}\n" in removed.stdout, (
        removed.stderr
    )
    there = unlike.ssh(1, "docker", "image", "ls", "--format={{.Repository}}:{{.Tag}}").stdout.split()
    assert OURS not in there and MINE in there, "who builds upon an image of ours inherits its label"
