"""A host, or its engine, goes while a round is built, trained or collected."""

from __future__ import annotations

import pytest

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import containers
from tests.run_benchmarks.faults.pairs import Pair
from tests.run_benchmarks.faults.seen import Seen, fault

ENDLESS = 10**6
# The engine is started again as it was.
RESTART_ENGINE = """\
pid=$(pgrep -x dockerd) && tr "\\0" "\\n" </proc/$pid/cmdline >/run/dockerd.argv
kill -9 "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
sleep 3
rm -f /run/docker.pid
mapfile -t argv </run/dockerd.argv
setsid "${argv[@]}" </dev/null >>/var/log/dockerd.log 2>&1 &
until docker version >/dev/null 2>&1; do sleep 0.1; done
"""


def task_on(lab: Lab, host: int) -> str:
    (name,) = [name for name in containers(lab, host).split() if "task" in name]
    return name


@fault("engine")
def test_the_engine_is_killed_and_started_again(pair: Pair, seen: Seen) -> None:
    pair.configure(ENDLESS)
    with pair.training() as process:
        seen.made()
        pair.lab.ssh(2, "bash", "-c", RESTART_ENGINE)
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    failure = pair.assert_in_order(ended)["failure"]
    assert "on h2 why: `journalctl -u docker" in failure["remedy"], failure


@fault("removed")
def test_a_container_is_removed_by_hand(pair: Pair, seen: Seen) -> None:
    pair.configure(ENDLESS)
    with pair.training() as process:
        pair.lab.ssh(2, "docker", "rm", "-f", task_on(pair.lab, 2))
        seen.made()
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    failure = pair.assert_in_order(ended)["failure"]
    assert "on h2 when, and what else: `docker events" in failure["remedy"], failure


@fault("dead-in-build")
def test_a_host_dies_while_it_builds(pair: Pair, seen: Seen) -> None:
    pair.configure(1)
    dockerfile = pair.bench.training / "cpu" / "docker_image" / "pytorch" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "\nRUN echo it takes long; sleep 600\n")
    process = pair.bench.start()
    with pair.going_on(process):
        pair.wait_for_file(process, "image_build_h1.log", "it takes long")
        pair.lab.kill(1)
        seen.made()
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    pair.assert_in_order(ended, 2)


@pytest.mark.parametrize(
    "host",
    [pytest.param(2, marks=fault("dead-in-collect")), pytest.param(1, marks=fault("dead-in-collect-first"))],
)
def test_a_host_dies_while_its_logs_are_collected(host: int, pair: Pair, seen: Seen) -> None:
    """Rank 0's events were followed while it trained: what was measured is not lost."""
    pair.configure(30)
    with pair.at_stage("collect") as process:
        pair.lab.kill(host)
        seen.made()
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    result = pair.assert_in_order(ended, 3 - host)
    (note,) = (note for note in result["notes"] if f"h{host}: the logs were not collected" in note)
    assert f"they still lie on h{host} in " in note and "sh -c" not in note
