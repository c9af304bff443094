"""The accounts of soak.py: what a controller holds after each round, and what rounds leave on hosts and disks."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from soak_faults import Planned, command_lines, marked, root_of, work_of
from soak_task import STEPS

from run_benchmarks.names import ROUND_FOLDER
from tests.lab.host import Host

# Rounds of a controller's life that are not judged: modules are imported, connections made, and the heap takes longer.
WARM_UP, WARM_UP_OF_HEAP = 3, 10
FEWEST = 6  # rounds of a life, beyond these, that say something of a trend
# Beyond the rounds' results, which a run keeps for its summary, with what each node is made of.
MOST_KIB_PER_ROUND = 48.0
MOST_MORE = 2  # descriptors, from the first rounds of a life to its last
PARTIAL = re.compile(r"(^|/)\.|\.(partial|tmp|part)$")
ROUND = re.compile(r"-round(\d+)-node")
WORD = re.compile(r"^step (\d+) of rank", re.MULTILINE)
# The engine makes it once, for its first container in the host's own network.
ENGINES_OWN = "/run/docker/netns/default"
# What a round that failed, or that was taken up, has beside what all have; below a node's folder, or the round's.
OF_FAILURES = ("task_output.log", "stacks.log", "failure.txt")


@dataclass(frozen=True)
class Sample:
    """A controller at the end of a round; `life` counts those that were taken up. RSS in KiB.

    descriptors, children: the fewest during the round, for commands come and go.
    """

    round: int
    life: int
    rss_kib: int
    descriptors: int
    children: int


def held_by(pid: int) -> tuple[int, int, int]:
    """RSS in KiB, open descriptors and children of a process.

    Raises:
        OSError, ValueError: it has ended.
    """
    process = Path(f"/proc/{pid}")
    rss = re.search(r"^VmRSS:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
    if rss is None:
        raise ValueError(f"process {pid} has ended")
    descriptors = len(list((process / "fd").iterdir()))
    children = sum(len(path.read_text().split()) for path in process.glob("task/*/children"))
    return int(rss[1]), descriptors, children


def lives(samples: Sequence[Sample], warm_up: int) -> list[list[Sample]]:
    """The samples of each controller that lived long enough, without its first `warm_up` ones."""
    numbers = sorted({sample.life for sample in samples})
    own = [[sample for sample in samples if sample.life == number][warm_up:] for number in numbers]
    return [life for life in own if len(life) >= FEWEST]


def kib_per_round(samples: Sequence[Sample]) -> float | None:
    """By how much the RSS grows a round (Theil and Sen's slope, within lives); None: no life was long enough."""
    slopes = [
        (late.rss_kib - early.rss_kib) / (late.round - early.round)
        for life in lives(samples, WARM_UP_OF_HEAP)
        for early, late in combinations(life, 2)
    ]
    return statistics.median(slopes) if slopes else None


def more_descriptors(samples: Sequence[Sample]) -> int:
    """The most that a life's last rounds hold beyond its first ones."""

    def median(some: Sequence[Sample]) -> float:
        return statistics.median(sample.descriptors for sample in some)

    return max((int(median(life[-3:]) - median(life[:3])) for life in lives(samples, WARM_UP)), default=0)


def leaks(samples: Sequence[Sample], result_kib: float) -> list[str]:
    """What the controllers hold more and more of, in words; `result_kib`: the size of a round's result."""
    slope, more = kib_per_round(samples), more_descriptors(samples)
    found = []
    if slope is not None and slope - result_kib > MOST_KIB_PER_ROUND:
        found.append(f"the controller's RSS grows by {slope:.0f} KiB a round")
    if more > MOST_MORE:
        found.append(f"the controller holds {more} descriptors more than in its first rounds")
    if children := [sample for sample in samples if sample.children]:
        found.append(f"the controller has {children[-1].children} children in round {children[-1].round}")
    return found


def of_rounds(work: Path, pids: Sequence[int], rounds: int) -> set[str]:
    """What rounds 1 to `rounds`, which have ended, have left in a host's work folder and among its processes."""
    units = [(path.name, f"unit {path.name}") for path in work.glob("units/*")]
    processes = [(unit, f"process {pid} of {unit}") for pid, unit in marked(pids)]
    folders = [
        (f"-{path.name}-node", f"folder {path.relative_to(work)}") for path in work.glob("runs/*/*/*/round*")
    ]
    return {text for name, text in (*units, *processes, *folders) if _number(name) <= rounds}


def _number(name: str) -> int:
    match = ROUND.search(name)
    return int(match[1]) if match else 0


def containers_left(names: Sequence[str], rounds: int) -> set[str]:
    """Those containers that are of rounds 1 to `rounds`."""
    return {f"container {name}" for name in names if _number(name) <= rounds}


@dataclass(frozen=True)
class Inventory:
    """What there is on a host before a run and, if nothing is left, after it.

    processes: how many of each name, but for ssh's sessions. temporary: the names in /tmp.
    """

    processes: Mapping[str, int]
    mounts: frozenset[str]
    temporary: frozenset[str]


def inventory(host: Host) -> Inventory:
    """Of a host, now."""
    lines = [line.split(" ")[0] for _, line in command_lines(host) if not line.startswith("sshd: root")]
    root = root_of(host)
    mounts = [line.split()[4] for line in (root.parent / "mountinfo").read_text().splitlines()]
    return Inventory(
        Counter(lines), frozenset(mounts), frozenset(path.name for path in (root / "tmp").iterdir())
    )


def left_after(host: Host, before: Inventory) -> set[str]:
    """What is on a host after the run, beside what was there before it and the code that it keeps."""
    after, work = inventory(host), work_of(host)
    processes = Counter(after.processes) - Counter(before.processes)
    files = [path.relative_to(work) for path in work.rglob("*") if not path.is_dir()]
    return {
        *(f"process {name} ({number} times)" for name, number in processes.items()),
        *(f"mount {mount}" for mount in after.mounts - before.mounts - {ENGINES_OWN}),
        *(f"file /tmp/{name}" for name in after.temporary - before.temporary),
        *(f"file {path}" for path in files if not path.parts[0].startswith("tree-")),
    }


def strange_files(run: Path) -> set[str]:
    """Files of a run's folder that should not be there, or that a round lacks; most rounds say which a round has."""
    partial = {
        str(path.relative_to(run)) for path in run.rglob("*") if PARTIAL.search(str(path.relative_to(run)))
    }
    rounds = {path: _files(path) for path in round_folders(run)}
    if not rounds:
        return partial | {"no round has a folder"}
    usual = Counter(rounds.values()).most_common(1)[0][0]
    for path, files in rounds.items():
        partial |= {f"{path.name}/{name}" for name in files - usual if Path(name).name not in OF_FAILURES}
        partial |= {f"{path.name}/{name} is missing" for name in usual - files}
    return partial


def round_folders(run: Path) -> list[Path]:
    """Those of a run's rounds, without those of attempts that do not count."""
    return [path for path in sorted(run.glob("*/round*")) if ROUND_FOLDER.fullmatch(path.name)]


def _files(folder: Path) -> frozenset[str]:
    return frozenset(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def ended_as(result: Mapping[str, Any]) -> str:
    """A round's verdict, and the class of its failure."""
    failure = result.get("failure") or {}
    return " ".join(filter(None, (result["verdict"], failure.get("class"))))


def wrong(result: Mapping[str, Any], plan: Planned | None, folder: Path) -> Iterator[str]:
    """What is not right about how a round ended, whose fault was `plan`, and whose files lie in `folder`."""
    seen = ended_as(result)
    right = plan.fault.right if plan else {"CONVERGED"}
    if seen not in right:
        yield f"it ended as {seen}, not as {' or '.join(sorted(right))}"
    failure = result.get("failure")
    if failure and plan and failure["host"] != f"h{plan.host}":
        yield f"host {failure['host']!r} is blamed, not h{plan.host}"
    if seen == "CONVERGED":
        yield from _gaps(folder)


def _gaps(folder: Path) -> Iterator[str]:
    """Words of a converged round that are not in its ranks' logs."""
    logs = sorted(folder.glob("*_noderank*/rank*.out.log"))
    if len(logs) != 2:
        yield f"there are {len(logs)} logs of ranks"
    for log in logs:
        heard = [int(step) for step in WORD.findall(log.read_text(errors="replace"))]
        if heard != [*range(1, STEPS + 1)]:
            yield f"{log.name} has {len(heard)} of {STEPS} steps"


def loaded(path: Path) -> dict[str, Any]:
    """A JSON file's object."""
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def quiet(look: Callable[[], set[str]], looks: int, pause: Callable[[], None]) -> set[str]:
    """What every one of some looks sees: a process that was killed takes a moment to go."""
    seen = look()
    for _ in range(looks - 1):
        if not seen:
            return seen
        pause()
        seen &= look()
    return seen
