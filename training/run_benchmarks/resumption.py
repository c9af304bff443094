"""How far a run came whose controller died, by its folder: what one that takes it up must know.

The folder may be anybody's, and torn: each part is read by a model, and what decides what is done on hosts (the plan)
is not read from it at all.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from run_benchmarks.commands import run_command
from run_benchmarks.journal import Journal, kept_folders
from run_benchmarks.names import JOURNAL, RUN_NAME, RUN_UID, RunId
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.reading import parsed
from run_benchmarks.results.controller import DIED, LostController, lost_controller
from run_benchmarks.results.folder import RoundKey, RunFolder, as_list, observation_of, open_folder, section
from run_benchmarks.results.load import results_in
from run_benchmarks.results.round_result import Observation, RoundResult
from run_benchmarks.stages.checks import Check
from utils.errors import FlagPerfError
from utils.records import Stage


@dataclass(frozen=True)
class RoundSoFar:
    """A round that was begun and has no result.

    stage: the last that the journal names. seen: what was known when it came to the stage `entered`, at `seen_at`
    (seconds since the epoch). None where it came to none at which a round can be entered: then it begins anew.
    attempt: the one that failed before, where its folder was not set aside yet. controller: what became of it.
    """

    key: RoundKey
    stage: str
    seen: Observation | None = None
    seen_at: float = 0.0
    entered: Stage | None = None
    attempt: RoundResult | None = None
    controller: LostController = field(default=LostController(DIED, 0.0), compare=False)

    def __str__(self) -> str:
        """What becomes of it, and why."""
        done = "taken up" if self.seen else "begun anew"
        return f"{done} at the stage {self.stage}, for {self.controller.fate}"

    def unwatched_s(self, elapsed_s: float | None = None) -> float:
        """For how long it has had no controller, at most.

        Args:
            elapsed_s: how long ago it was `seen`, None where only this machine's clock tells.
        """
        elapsed_s = time.time() - self.seen_at if elapsed_s is None else elapsed_s
        return max(0.0, elapsed_s - max(0.0, self.controller.last_sign - self.seen_at))


@dataclass(frozen=True)
class Resumption:
    """A run as far as it came; its journal is ours now.

    digest, tree: of the plan and of the code that it was begun with. ended: the rounds that need nothing more.
    unwritten: those of them whose results could not be written; in `results` they are judged now.
    unfinished: those that were begun besides; several where a full disk kept them from ending.
    kept: node folders that stay on their hosts, as not all that lies in them was collected. replaced: as in Session.
    controller: what became of the one before.
    """

    journal: Journal
    run: RunId
    digest: str
    tree: str
    plan: Mapping[str, Any]
    results: tuple[RoundResult, ...]
    ended: frozenset[RoundKey]
    unwritten: frozenset[RoundKey]
    unfinished: Mapping[RoundKey, RoundSoFar]
    checks: Mapping[str, list[Check]]
    kept: frozenset[str]
    replaced: Mapping[tuple[str, str], str]
    controller: LostController

    @property
    def note(self) -> str:
        """What a reader of the results must know."""
        since, now = (
            datetime.fromtimestamp(time_s).astimezone().isoformat(timespec="seconds")
            for time_s in (self.controller.last_sign, time.time())
        )
        return f"the run was taken up at {now}, for {self.controller.fate}; its last sign is of {since}"

    @property
    def is_attached(self) -> bool:
        """Whether the tasks of a round were launched that is not done."""
        return any(each.seen for each in self.unfinished.values())


@dataclass(frozen=True)
class _Start:
    """The journal's first line."""

    run: Annotated[str, Field(pattern=f"^{RUN_NAME.pattern}$")]
    uid: Annotated[str, Field(pattern=f"^{RUN_UID.pattern}$")]
    started: str
    plan: str = ""
    tree: str = ""


@dataclass(frozen=True)
class _Entrance:
    """A journal's line of a stage at which a round can be entered again."""

    time: float
    stage: Stage
    seen: Mapping[str, Any] = field(default_factory=dict)


def read_resumption(path: Path, journal: Journal, secrets: Secrets) -> Resumption:
    """What the folder of a run tells of how far it came.

    Args:
        journal: the run's, taken over: nobody else goes on with it.
        secrets: what is hidden in what has to be judged now.

    Raises:
        FlagPerfError: it has ended, was never begun, or its journal or a result cannot be read.
    """
    folder = open_folder(path)
    where = str(path / JOURNAL)
    start = start_of(folder)
    ended_rounds, unwritten = frozenset(_keys(folder, "round_ended")), _unwritten(folder)
    judged = results_in(folder, ended_rounds, unwritten, lambda: secrets)
    results = {RoundKey(each.case, each.round): each for each in judged}
    done = ended_rounds | results.keys() - _between_attempts(folder)
    begun = {key for key in _keys(folder, "round_started") if key not in done}
    entries, controller = _by_round(folder), lost_controller(folder)
    unfinished = {
        key: replace(
            _round_so_far(key, entries[key], folder.path / JOURNAL),
            attempt=results.pop(key, None),
            controller=controller,
        )
        for key in begun
    }
    checks: Mapping[str, list[Check]] = {}
    for entry in folder.journal:
        if entry.get("event") == "checked":
            checks = parsed(dict[str, list[Check]], entry.get("checks") or {}, f"{where}: checks")
    return Resumption(
        journal=journal,
        run=RunId(start.run, start.uid, start.started),
        digest=start.plan,
        tree=start.tree,
        plan=folder.plan,
        results=tuple(results.values()),
        ended=ended_rounds | results.keys(),
        unwritten=unwritten,
        unfinished=unfinished,
        checks=checks,
        kept=kept_folders(folder.journal),
        replaced={
            (str(entry.get("group")), str(entry.get("host"))): str(entry.get("spare"))
            for entry in folder.journal
            if entry.get("event") == "replaced"
        },
        controller=controller,
    )


def start_of(folder: RunFolder, places: Sequence[str] = ()) -> _Start:
    """How the run began.

    Args:
        places: the options that lead a further command to the same files.

    Raises:
        FlagPerfError: it has ended, or was never begun, or nobody can tell all that it did.
    """
    events = {str(entry.get("event")): entry for entry in folder.journal}
    if "run_ended" in events:
        code = events["run_ended"].get("exit_code")
        remedy = new_run(folder, places)
        raise FlagPerfError(
            f"the run has ended, with exit code {code}", where=str(folder.path), remedy=remedy
        )
    if folder.journal_gap:
        raise folder.journal_gap
    if "run_started" not in events or not folder.plan:
        remedy = f"start it anew: {run_command(*places)}"
        raise FlagPerfError("nothing of the run was begun", where=str(folder.path), remedy=remedy)
    return parsed(_Start, events["run_started"], str(folder.path / JOURNAL))


def new_run(folder: RunFolder, places: Sequence[str]) -> str:
    """What to do in the place of taking a run up: where it was to save checkpoints, a new one goes on from them."""
    may_save = (
        not each.uses_driver or each.roles or each.parameters.get("save_steps") is not None
        for each in folder.cases.values()
    )
    if section(folder.plan, "run").get("checkpoint_path") and any(may_save):
        command = run_command("--continue-from", folder.path.name, *places)
        return f"start a new run that goes on from its checkpoints: {command}"
    return f"start a new run (this one saved no checkpoints): {run_command(*places)}"


def _by_round(folder: RunFolder) -> Mapping[RoundKey, Sequence[Mapping[str, Any]]]:
    """What the journal has of each round, in its order."""
    entries = defaultdict[RoundKey, list[Mapping[str, Any]]](list)
    for entry in folder.journal:
        case, number = entry.get("case"), entry.get("round")
        if isinstance(case, str) and type(number) is int:
            entries[RoundKey(case, number)].append(entry)
    return entries


def _keys(folder: RunFolder, event: str) -> Iterator[RoundKey]:
    """The rounds of which the journal has an event, as often as it has it."""
    for key, entries in _by_round(folder).items():
        yield from (key for entry in entries if entry.get("event") == event)


def _unwritten(folder: RunFolder) -> frozenset[RoundKey]:
    """The rounds whose results could not be written when they ended, nor since then."""
    ends = {
        key: entry
        for key, entries in _by_round(folder).items()
        for entry in entries
        if entry.get("event") == "round_ended"
    }
    return frozenset(key for key, last in ends.items() if last.get("unwritten"))


def _round_so_far(key: RoundKey, entries: Sequence[Mapping[str, Any]], journal: Path) -> RoundSoFar:
    """How far a round came that was begun, by all that the journal has of it."""
    begin = max(
        place for place, each in enumerate(entries) if each.get("event") in ("round_started", "attempt_ended")
    )
    stages = [entry for entry in entries[begin:] if entry.get("event") == "stage"]
    noted = [entry for entry in stages if "seen" in entry]
    stage = str(stages[-1].get("stage")) if stages else Stage.ACQUIRE.value
    if not noted:
        return RoundSoFar(key, stage)
    entrance = parsed(_Entrance, noted[-1], str(journal))
    seen = observation_of(key, entrance.seen, journal)
    neighbours = {host: set(runs) for host, runs in seen.neighbours.items()}
    for entry in entries[begin:]:
        if entry.get("event") == "neighbours":
            neighbours.setdefault(str(entry.get("host")), set()).update(map(str, as_list(entry.get("runs"))))
    seen = replace(seen, neighbours={host: tuple(sorted(runs)) for host, runs in neighbours.items()})
    return RoundSoFar(key, stage, seen, entrance.time, entrance.stage)


def _between_attempts(folder: RunFolder) -> frozenset[RoundKey]:
    """The rounds of which an attempt has failed, and the next one was not begun."""
    failed, begun = (Counter(_keys(folder, event)) for event in ("attempt_ended", "round_started"))
    return frozenset(key for key, count in failed.items() if count >= begun[key])
