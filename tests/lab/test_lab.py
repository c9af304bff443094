"""What a lab host is: a machine of its own, as far as ssh, containers and the network can tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import LabError, images, tiny_image
from tests.lab.fixtures import LabFactory
from tests.lab.lab import CHECKOUT, Lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def image() -> str:
    return tiny_image.build()


@pytest.fixture
def two(lab: LabFactory, image: str) -> Lab:
    return lab(hosts=2, images=[image])


def ssh_complaint(lab: Lab, name: str, patience: int) -> str:
    """What ssh says about a host that it does not get into within `patience` seconds."""
    argv = ["ssh", "-o", f"ConnectTimeout={patience}", "-F", str(lab.ssh_config), name, "true"]
    return subprocess.run(argv, capture_output=True, text=True).stderr


def test_hosts_answer_by_name_and_know_each_other(two: Lab) -> None:
    assert [two.ssh(index, "hostname").stdout.strip() for index in (1, 2)] == ["h1", "h2"]
    assert two.host(2).address in two.ssh(1, "getent", "hosts", "h2").stdout
    # Its own name leads to its own address, not to 127.0.0.1, where gloo would wait for its peers in vain.
    assert two.host(1).address in two.ssh(1, "getent", "hosts", "h1").stdout
    greeting = two.ssh(1, "bash", "-c", "exec 3<>/dev/tcp/h2/22; head -c 4 <&3").stdout
    assert greeting == "SSH-"


def test_asyncssh_gets_in_with_the_labs_home_and_verifies_the_host_key(two: Lab) -> None:
    program = """
import asyncio, asyncssh
async def main():
    async with asyncssh.connect("h1") as connection:
        print((await connection.run("hostname")).stdout.strip())
asyncio.run(main())
"""
    known_hosts = two.home / ".ssh/known_hosts"
    keys = known_hosts.read_text()
    environment = {**os.environ, **two.env}
    argv = [sys.executable, "-c", program]
    assert subprocess.run(argv, env=environment, capture_output=True, text=True).stdout == "h1\n"
    try:
        known_hosts.write_text(keys.replace(f"h1,{two.host(1).address}", "h9,10.77.99.9"))
        refused = subprocess.run(argv, env=environment, capture_output=True, text=True)
    finally:
        known_hosts.write_text(keys)
    assert "HostKeyNotVerifiable" in refused.stderr


def test_host_sees_no_checkout_and_no_home_and_changes_nothing_here(two: Lab) -> None:
    for hidden in (CHECKOUT, two.place.folder):
        assert two.ssh(1, "test", "-e", str(hidden), check=False).returncode == 1
    assert two.ssh(1, "ls", "-A", "/root").stdout.split() == [".ssh"]
    hosts_file = Path("/etc/hosts").read_text()
    for place in ("/etc", "/root", "/tmp", "/usr/local/bin", "/run", "/dev/shm"):
        two.ssh(1, "touch", f"{place}/written-by-h1")
        assert not Path(place, "written-by-h1").exists()
        assert two.ssh(2, "test", "-e", f"{place}/written-by-h1", check=False).returncode == 1
    two.ssh(1, "sh", "-c", "echo 10.0.0.1 elsewhere >> /etc/hosts")
    assert Path("/etc/hosts").read_text() == hosts_file


def test_engines_are_separate(two: Lab, image: str) -> None:
    two.ssh(1, "docker", "run", "--detach", "--name", "only-on-h1", image, "sleep", "60")
    assert "only-on-h1" in two.ssh(1, "docker", "ps").stdout
    assert "only-on-h1" not in two.ssh(2, "docker", "ps", "--all").stdout
    here = subprocess.run(["docker", "ps", "--all"], capture_output=True, text=True, check=True)
    assert "only-on-h1" not in here.stdout


def test_container_in_the_hosts_network_has_the_hosts_address(two: Lab, image: str) -> None:
    command = [image, "ip", "-brief", "-4", "addr"]
    address = two.host(2).address
    assert f"{address}/24" in two.ssh(2, "docker", "run", "--rm", "--net=host", *command).stdout
    assert address not in two.ssh(2, "docker", "run", "--rm", *command).stdout


def test_killed_host_refuses_and_comes_back_with_its_disk(two: Lab, image: str) -> None:
    two.ssh(1, "sh", "-c", "echo kept > /etc/kept")
    two.ssh(1, "docker", "run", "--detach", "--name", "victim", image, "sleep", "60")
    two.kill(1)
    assert "Connection refused" in ssh_complaint(two, "h1", patience=30)
    assert two.ssh(2, "hostname").stdout == "h2\n"
    two.start(1)
    assert two.ssh(1, "cat", "/etc/kept").stdout == "kept\n"
    assert two.ssh(1, "docker", "inspect", "--format", "{{.State.Running}}", "victim").stdout == "false\n"
    assert two.ssh(1, "docker", "run", "--rm", image, "hostname").stdout


def test_cut_host_is_out_of_reach_until_healed(two: Lab) -> None:
    two.cut(2)
    said = ssh_complaint(two, "h2", patience=1)
    assert "timed out" in said or "No route to host" in said
    assert two.ssh(1, "hostname").stdout == "h1\n"
    two.heal(2)
    assert two.ssh(2, "hostname").stdout == "h2\n"


def test_frozen_host_accepts_and_says_nothing(two: Lab, image: str) -> None:
    two.ssh(1, "docker", "run", "--detach", "--name", "frozen-too", image, "sleep", "60")
    two.freeze(1)
    # The connection stands, the banner does not come: ssh's words for it.
    assert "banner exchange" in ssh_complaint(two, "h1", patience=1)
    states = {
        Path(f"/proc/{pid}/status").read_text().split("State:")[1][1] for pid in two.host(1).cgroup.pids()
    }
    assert "R" not in states
    two.thaw(1)
    assert "frozen-too" in two.ssh(1, "docker", "ps").stdout


def test_slow_host_exceeds_its_rate_both_ways(two: Lab) -> None:
    two.slow(2, "4mbit")
    two.ssh(2, "dd", "if=/dev/zero", "bs=100k", "count=4", "status=none")
    two.ssh(2, "sh", "-c", "cat > /dev/null", stdin="\0" * 400_000)
    statistics = two.ssh(2, "tc", "-s", "qdisc", "show", "dev", "eth0").stdout
    here = subprocess.run(
        ["tc", "-s", "qdisc", "show", "dev", two.place.cable(2)], capture_output=True, text=True
    ).stdout
    for text in (statistics, here):
        assert "rate 4Mbit" in text
        assert "overlimits 0 " not in text
    two.unslow(2)
    assert "tbf" not in two.ssh(2, "tc", "qdisc", "show", "dev", "eth0").stdout


def test_cpu_limit_throttles_the_host(two: Lab) -> None:
    two.cpu(1, 5)
    two.ssh(1, "sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
    group = two.host(1).cgroup
    files = [group.root / tree / group.name / "cpu.stat" for tree in ("cpu", ".")]
    statistics = next(file.read_text() for file in files if file.exists())
    two.cpu(1, None)
    assert "nr_throttled 0" not in statistics


def test_image_is_shared_without_a_copy(two: Lab, image: str) -> None:
    mine = images.find([image])[0].id
    for index in (1, 2):
        assert (
            two.ssh(index, "docker", "image", "inspect", "--format", "{{.Id}}", image).stdout.strip() == mine
        )
        store = two.host(index).folder / "docker/overlay2"
        assert sum(file.stat().st_size for file in store.rglob("*/diff/**/*")) == 0
    # A layer can be read and built upon, not changed.
    dockerfile = f"FROM {image}\nRUN echo built > /built\n"
    two.ssh(1, "docker", "build", "--quiet", "--tag", "upon:it", "-", stdin=dockerfile)
    assert two.ssh(1, "docker", "run", "--rm", "upon:it", "cat", "/built").stdout == "built\n"
    touch = "touch $(ls -d /var/lib/docker/overlay2/*/diff/bin | head -n 1)/new"
    assert "Read-only" in two.ssh(1, "sh", "-c", touch, check=False).stderr


def test_image_is_streamed_where_layers_cannot_be_shared(
    lab: LabFactory, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "store", lambda: None)
    one = lab(hosts=1, images=[image], fresh=True)
    assert one.ssh(1, "docker", "run", "--rm", image, "cat", "/proc/sys/kernel/hostname").stdout
    lab.close()


def test_shared_folder_is_seen_and_read_only(lab: LabFactory, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("from the machine")
    one = lab(hosts=1, share=[tmp_path])
    assert one.ssh(1, "cat", f"{tmp_path}/data").stdout == "from the machine"
    assert "Read-only" in one.ssh(1, "touch", f"{tmp_path}/new", check=False).stderr
    lab.close()


def test_what_is_wrong_is_named(two: Lab) -> None:
    with pytest.raises(LabError, match="hosts 1 to 2"):
        two.kill(3)
    with pytest.raises(LabError, match="h1: false ended with 1"):
        two.ssh(1, "false")
    with pytest.raises(LabError, match="running already"):
        two.start(1)
    with pytest.raises(LabError, match="no-such-image"):
        images.find(["no-such-image:at-all"])
