"""A rehearsal of a run: its own preflight and rounds, on hosts that take note and answer as healthy ones would."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from run_benchmarks.display.base import Display
from run_benchmarks.health import check_standing_hosts
from run_benchmarks.images.files import MEASURE, SEE, TAKE
from run_benchmarks.names import Node, RunId, new_run_id
from run_benchmarks.plan.records import Plan
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round import Round
from run_benchmarks.session import open_session
from run_benchmarks.stages.collect_listing import LIST
from run_benchmarks.stages.deploy import IS_THERE, LOOK, MISSING
from run_benchmarks.transports.base import ByteSink, ByteSource, Transport
from utils.pass_on import BOOT
from utils.records import Stage

INTERFACE = "<interface-to-its-peers>"
ROUTES = f"Iface Destination Gateway Flags RefCnt Use Metric Mask\n{INTERFACE} 00000000 0 0 0 0 0 00000000\n"
PORT = 49152  # at which a host serves another
EMPTY_FOLDER = ". 0 \0"
Answer = tuple[int, str, str]  # exit code, standard output, standard error
DONE: Answer = (0, "", "")
EMPTY_ARCHIVE = "\0" * 1024  # of tar


@dataclass(frozen=True)
class Note:
    """A command that a host would get; `stdin`: None for none, empty for a stream that was not read."""

    host: str
    stage: str
    argv: tuple[str, ...]
    stdin: bytes | None


class Rehearsal(Display):
    """The notes of a run, and what its hosts have in common; shows a round as a display would, by its stages."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.now = Stage.PREFLIGHT.value
        self.registry: set[str] = set()

    def open(self, host: str) -> Transport:
        """The transport to a host that takes part."""
        return RehearsedHost(host, self)

    def take_notes(self) -> list[Note]:
        """The notes since the last time."""
        taken, self.notes = self.notes, []
        return taken

    def stage(self, node: Node | None, name: str) -> None:
        """What is noted from now on is of this stage."""
        if node is None:
            self.now = name


class RehearsedHost(Transport):
    """Runs nothing. Answers by what the command is for, with the words that the tools use."""

    def __init__(self, host: str, rehearsal: Rehearsal) -> None:
        super().__init__(host)
        self._rehearsal = rehearsal
        self._images: set[str] = set()
        self._missing: set[str] = set()

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        given = stdin if stdin is None or isinstance(stdin, bytes) else b""
        self._rehearsal.notes.append(Note(self.host, self._rehearsal.now, argv, given))
        code, out, err = self.answer(argv)
        await stdout(out.encode())
        return code, err

    def answer(self, argv: tuple[str, ...]) -> Answer:
        """What a healthy host answers."""
        if argv[0] == "getent":
            return 0, "192.0.2.1 STREAM", ""
        if argv == ("cat", "/proc/net/route"):
            return 0, ROUTES, ""
        if argv[0] == "sh" and argv[2].endswith(LOOK):
            return MISSING, "", ""  # the tree is not there yet
        if IS_THERE in argv:
            return 1, "", ""
        if MEASURE in argv:
            return 0, f"0 {'0' * 64}", ""
        if TAKE in argv:
            self._images.add(argv[5])
            return DONE
        if SEE in argv:
            return 0, "0" * 64 if argv[4] in self._images else "", ""
        if BOOT in argv:
            return 0, f"{PORT}\n", ""
        if LIST in argv:
            return 0, EMPTY_FOLDER, ""
        if "wait" in argv:
            return 0, "0", ""
        return self._of_images(argv)

    def _of_images(self, argv: tuple[str, ...]) -> Answer:
        """A host has no image before it is built, loaded or pulled, a registry none before it is pushed."""
        name, registry = argv[-1], self._rehearsal.registry
        if "inspect" in argv and "image" in argv:
            self._missing.add(name)
            return (0, "sha256:0", "") if name in self._images else (1, "", "no such image")
        if "push" in argv:
            registry.add(name)
        elif "pull" in argv and name not in registry:
            return 1, "", "manifest unknown"
        elif "save" in argv:
            return 0, EMPTY_ARCHIVE, ""
        elif name == "load":
            self._images |= self._missing
        elif {"pull", "build", "commit"}.intersection(argv):
            self._images |= self._missing.intersection(argv)
        return DONE


@dataclass(frozen=True)
class RehearsedRound:
    """A round that was rehearsed; `result` tells whether it would have come to its end."""

    result: RoundResult
    notes: list[Note]


@dataclass(frozen=True)
class RehearsedRun:
    """The notes of a run: of its preflight, and of the next round of each case that has one left."""

    run: RunId
    preflight: list[Note]
    rounds: dict[str, RehearsedRound]


def with_hosts(plan: Plan) -> Plan:
    """The plan, with made-up hosts where a scheduler is to name them."""
    if plan.cluster.hosts or not plan.cluster.scheduler:
        return plan
    most = max((case.settings.nnodes for case in plan.cases), default=1)
    names = tuple(f"granted{number}" for number in range(1, most + 1))
    cases = tuple(replace(case, hosts=names[: case.settings.nnodes]) for case in plan.cases)
    return replace(plan, cases=cases, cluster=replace(plan.cluster, hosts=names))


async def rehearse(plan: Plan) -> RehearsedRun:
    """Run `plan` against hosts that are not there. What rounds write goes to a folder that is gone afterwards."""
    plan = with_hosts(replace(plan, cluster=replace(plan.cluster, meters={})))  # meters are there
    rehearsal, run = Rehearsal(), new_run_id(datetime.now().astimezone())
    with tempfile.TemporaryDirectory(prefix="flagperf-plan-") as folder:
        session = open_session(plan, run, Path(folder), rehearsal, rehearsal.open)
        session = replace(session, pause=_no_pause)
        await check_standing_hosts(session)
        preflight = rehearsal.take_notes()
        rounds = {}
        for case in plan.cases:
            for number in plan.rounds(case)[:1]:
                result = await Round(session, case, number).run()
                rounds[case.settings.name] = RehearsedRound(result, rehearsal.take_notes())
        session.journal.close()
    return RehearsedRun(run, preflight, rounds)


async def _no_pause(seconds: float) -> None:
    """Nobody waits for hosts that are not there."""
