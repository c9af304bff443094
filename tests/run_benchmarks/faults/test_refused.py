"""What is wrong before a run begins: it is refused before anything is launched, host and remedy are named."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.access import make_key
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Ended, containers
from tests.run_benchmarks.faults.pairs import CASE, Pair
from tests.run_benchmarks.faults.seen import Seen, fault

DATA = "/srv/faulty-data"
# The lab shares this machine's clock: what a host's own clock would say, its `date` says.
LATE_DATE = '#!/bin/sh\nexec /bin/date --date="1 hour ago" "$@"\n'
DATE = "/usr/local/bin/date"
LISTENER = (
    "import socket, time; s = socket.create_server(('', 29501)); print('there', flush=True); time.sleep(600)"
)


def refused(pair: Pair, seen: Seen) -> Ended:
    """A run that ends before anything is launched."""
    seen.made()
    ended = pair.bench.run()
    seen.run(ended.folder)
    assert ended.code == 3 and "Traceback" not in ended.output, ended.output
    assert [containers(pair.lab, host) for host in (1, 2)] == ["", ""]
    return ended


@fault("wrong-key")
def test_no_host_takes_the_users_key(pair: Pair, home: Path, seen: Seen) -> None:
    pair.configure(1)
    for path in (home / ".ssh").glob("id_*"):
        path.unlink()
    make_key(home / ".ssh" / "id_ed25519", "another")
    ended = refused(pair, seen)
    assert "no key was accepted" in ended.output and "ssh-copy-id" in ended.output


@fault("wrong-user")
def test_the_user_may_not_log_in(pair: Pair, seen: Seen) -> None:
    pair.configure(1)
    pair.bench.cluster(HOSTS=["h1", "h2"], SSH_USER="nobody")
    assert "does not let the user 'nobody' in" in refused(pair, seen).output


@fault("changed-key")
def test_a_hosts_key_has_changed(pair: Pair, home: Path, seen: Seen) -> None:
    pair.configure(1)
    known = home / ".ssh" / "known_hosts"
    first, second = known.read_text().splitlines()
    names, key = second.split()[0], first.split()[1:3]
    known.write_text(f"{first}\n{names} {' '.join(key)}\n")
    assert "ITS HOST KEY HAS CHANGED" in refused(pair, seen).output


@pytest.fixture
def late(two_hosts: Lab) -> Iterator[None]:
    """A second host whose clock is an hour behind."""
    two_hosts.ssh(2, "sh", "-c", f"cat >{DATE} && chmod +x {DATE}", stdin=LATE_DATE)
    yield
    two_hosts.ssh(2, "rm", DATE)


@fault("clock")
@pytest.mark.usefixtures("late")
def test_a_clock_is_off_by_an_hour(pair: Pair, seen: Seen) -> None:
    pair.configure(1)
    ended = refused(pair, seen)
    late = re.search(r"h2: clock: (3,600|3,599)\.\d+ s behind the controller", ended.output)
    assert late and "set the clock of h2" in ended.output, ended.output


@fault("port")
def test_the_port_of_the_ranks_is_taken(pair: Pair, seen: Seen) -> None:
    pair.configure(1)
    argv = pair.lab.ssh_argv(1, ["python3", "-c", LISTENER])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout and listener.stdout.readline() == "there\n"
            output = refused(pair, seen).output
            assert re.search(r"29501 is in use by python3 \(pid \d+\)", output), output
            assert "end that on h1, or set another MASTER_PORT" in output
        finally:
            pair.lab.ssh(1, "pkill", "-f", "create_server")


@pytest.mark.parametrize(
    "alter",
    [
        pytest.param("echo x >>{}", marks=fault("data-longer")),
        pytest.param("rm {}", marks=fault("data-lost")),
        pytest.param(
            "f={}; printf x | dd of=$f bs=1 seek=$(($(stat -c %s $f) / 2)) conv=notrunc",
            marks=fault("data-other"),
        ),
    ],
)
def test_data_are_altered_on_one_node(alter: str, pair: Pair, seen: Seen) -> None:
    for host in (1, 2):
        pair.lab.ssh(host, "sh", "-c", f"rm -rf {DATA} && cp -R {pair.data} {DATA}")
    pair.lab.ssh(2, "sh", "-c", alter.format(f"$(ls {DATA}/2048_shards_uncompressed/* | head -n 1)"))
    pair.configure(1, CASES={CASE: DATA})
    assert DATA in refused(pair, seen).output


@fault("image")
def test_a_host_has_another_image_by_the_name(pair: Pair, image: str, seen: Seen) -> None:
    pair.configure(1)
    own = pair.lab.ssh(2, "docker", "image", "inspect", "--format", "{{.Id}}", image).stdout.strip()
    made = f"c=$(docker create {image} true) && docker commit $c {image} && docker rm $c"
    pair.lab.ssh(2, "sh", "-c", made)
    try:
        seen.made()
        ended = pair.bench.run()
        seen.run(ended.folder)
        failure = pair.assert_in_order(ended)["failure"]
        assert "h1" in failure["message"] + failure["evidence"] and own.partition(":")[2][:12] in str(failure)
    finally:
        pair.lab.ssh(2, "docker", "tag", own, image)
