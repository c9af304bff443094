"""What the controller sees of a round while it runs, and how it is concluded when it has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from run_benchmarks.failures import unexpected
from run_benchmarks.follow import KeptEvents
from run_benchmarks.frameworks.base import Framework
from run_benchmarks.full_disk import is_full
from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.meters.reading import MeterReadings
from run_benchmarks.names import Node
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.redact import redact_text
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.reading import parsed
from run_benchmarks.results.clocks import NodeClock
from run_benchmarks.results.judge import without_secrets
from run_benchmarks.results.planned import planned
from run_benchmarks.results.provenance import Origin
from run_benchmarks.results.round_result import Attempt, Observation, RoundResult, write_json
from run_benchmarks.results.search.places import Places
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.run_log import LOGGER
from run_benchmarks.search_state import SearchState
from run_benchmarks.session import now
from run_benchmarks.stages.clock import Uptime
from run_benchmarks.stages.file_systems import FileSystems
from run_benchmarks.stages.watch import Outcome
from run_benchmarks.training_state import TrainingState
from run_benchmarks.transports.base import TransportError
from run_benchmarks.unforeseen import log_traceback
from utils.errors import FlagPerfError
from utils.records import Failure, FailureClass, Stage, Verdict

TIME_UNKNOWN = (
    "how long the round had gone on when it was taken up is not known, as its hosts' uptimes do not tell: "
    "its tasks end by their own time limit, and no time that they report is held against the controller's"
)


@dataclass
class RoundState:
    """What the controller has seen of a round.

    case: the case on the hosts that the round was given; nodes: none before it has them.
    started: ISO 8601; begin: the moment when it had its hosts, by `now()`; time_s: from there to the one when its logs
    were home. None where that is not known of a round that was taken up. uptimes: of its hosts, at its begin.
    taken_away: how it lost hosts after its tasks had ended, or after it had failed otherwise.
    lost: hosts that are known to be out of reach; not_collected: node ranks whose logs still lie on their host;
    without_room: those of them for whose logs, or a part of these, the controller's disk has no room.
    tree: where the ranks see the code.
    neighbours: host -> the uids of other runs that had units running there while this round trained or when it ended;
    unlisted: hosts that did not say what runs there, of which one warning is enough.
    is_taken_up: its tasks were launched by a controller that died; unwatched_s: so long, at most, none watched them.
    attempts: those before this one.
    clocks: by node rank; none before the launch. meters: what reads those outside the nodes.
    allocation: the scheduler's job that the hosts are of.
    file_systems: which of the hosts see one work folder, as far as that is known.
    followed: rank 0's events, as far as they are kept here while it runs.
    origin: what a controller that died saw of where the round comes from.
    """

    case: CasePlan
    number: int
    started: str
    nodes: tuple[Node, ...] = ()
    framework: Framework | None = None
    begin: float | None = field(default_factory=now)
    time_s: float | None = 0.0
    stage: Stage = Stage.ACQUIRE
    failure: Failure | None = None
    taken_away: Failure | None = None
    outcome: Outcome | None = None
    times: dict[str, float] = field(default_factory=dict)
    tag: str = ""
    images: dict[str, str] = field(default_factory=dict)
    image_digests: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    not_collected: set[int] = field(default_factory=set)
    without_room: set[int] = field(default_factory=set)
    tree: str = ""
    neighbours: dict[str, set[str]] = field(default_factory=dict)
    unlisted: set[str] = field(default_factory=set)
    is_taken_up: bool = False
    unwatched_s: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    clocks: tuple[NodeClock, ...] = ()
    uptimes: Mapping[str, Uptime] = field(default_factory=dict)
    meters: MeterReadings | None = None
    allocation: GrantedJob | None = None
    training: TrainingState = field(init=False)
    file_systems: FileSystems = field(default_factory=FileSystems)
    followed: KeptEvents | None = None
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        """What is followed of the round is bounded by its plan."""
        self.training = TrainingState(search=SearchState(Places.of(self.case).workers))

    @classmethod
    def taken_up(cls, case: CasePlan, so_far: RoundSoFar) -> RoundState:
        """The state of a round whose controller has died, as that had last noted it, on the hosts that it had.

        How long it has gone on is not known before these are asked: `go_on`.
        """
        seen = so_far.seen
        assert seen is not None  # noqa: S101 - for mypy
        return cls(
            case=case if case.hosts else replace(case, hosts=seen.hosts),  # a scheduler's
            number=seen.round,
            started=seen.started,
            failure=seen.failure,
            outcome=seen.outcome,
            begin=None,
            time_s=None,
            times=dict(seen.times),
            tag=seen.image,
            images=dict(seen.images),
            origin=seen.origin or Origin(),
            notes=[*seen.notes],
            lost=set(seen.lost),
            tree=seen.tree,
            neighbours={host: set(runs) for host, runs in seen.neighbours.items()},
            clocks=seen.clocks,
            uptimes=seen.uptimes,
            allocation=seen.allocation,
            is_taken_up=True,
            unwatched_s=seen.unwatched_s + so_far.unwatched_s(),
        )

    def go_on(self, so_far: RoundSoFar, elapsed_s: float) -> None:
        """It has been taken up, so long after it was seen, which tells how long it had gone on then."""
        seen = so_far.seen
        assert seen is not None and seen.time_s is not None  # noqa: S101 - for mypy
        self.begin = now() - seen.time_s - elapsed_s
        self.note_time()
        if so_far.entered:
            before = self.times.get(so_far.entered.value, 0.0)  # of an earlier one that took it up
            self.times[so_far.entered.value] = round(before + elapsed_s, 3)
        self.unwatched_s = seen.unwatched_s + so_far.unwatched_s(elapsed_s)

    def note_time(self) -> None:
        """So long it has gone on by now."""
        self.time_s = None if self.begin is None else now() - self.begin
        if self.begin is None and TIME_UNKNOWN not in self.notes:
            self.notes.append(TIME_UNKNOWN)

    def warn(self, note: str) -> None:
        """Say at once what goes with the figures."""
        LOGGER.warning(note)
        self.notes.append(note)

    def stop(self, failure: Failure, *, is_taken_away: bool) -> None:
        """Fail the round; one that was over before its hosts were taken away is judged by the logs that are left."""
        if is_taken_away and (self.outcome or self.failure):
            self.taken_away = failure
            self.warn(failure.message)
        else:
            self.failure = failure

    def note_monitor(self, host: str, error: BaseException | None) -> None:
        """A monitor that was not started fails no round: what it would have seen is not known."""
        if isinstance(error, FlagPerfError) and not isinstance(error, TransportError):
            reason = redact_text(error.message.strip().splitlines()[-1])
            self.warn(
                f"{host}: its monitor was not started, and power and load of it are not known: {reason}"
            )
        elif error is not None:
            raise error

    def note_error(self, error: Exception) -> None:
        """An error that no stage knows: it fails the round, unless something before it did."""
        log_traceback(self.stage, error)
        failure = unexpected(self.stage, error)
        if self.failure or (self.outcome and not self.outcome.all_ended_well):
            self.notes.append(f"at the stage {self.stage.value}: {failure.message}")
        else:
            self.failure = failure

    def note_lost(self, host: str, error: FlagPerfError) -> None:
        """Remember that `host` is out of reach, if that is what `error` says."""
        if isinstance(error, TransportError):
            self.lost.add(host)

    def observed(self, continue_from: str, origin: Origin) -> Observation:
        """What was seen of the round, which has ended.

        Args:
            continue_from: the uid of the run that it goes on from.
            origin: where it comes from.
        """
        return Observation(
            case=self.case.settings.name,
            round=self.number,
            hosts=tuple(node.host for node in self.nodes),
            started=self.started,
            time_s=self.time_s,
            failure=self.failure,
            outcome=self.outcome,
            times=self.times,
            image=self.tag,
            images=self.images,
            notes=tuple(self.notes),
            lost=tuple(sorted(self.lost)),
            not_collected=tuple(sorted(self.not_collected)),
            continue_from=continue_from,
            origin=origin,
            tree=self.tree,
            attempts=self.attempts,
            neighbours={host: tuple(sorted(runs)) for host, runs in self.neighbours.items()},
            unwatched_s=round(self.unwatched_s, 3),
            clocks=self.clocks,
            uptimes=self.uptimes,
            allocation=self.allocation,
        )


def judged(case: CasePlan, seen: Observation, folder: Path, secrets: Secrets) -> RoundResult:
    """The result of a round, without `secrets`; nothing is written, and nothing raised.

    This is where whatever the logs hold is stopped: an error in judging, or a result that no file can hold, is the
    round's failure and costs its figures, so that the rounds after it and the summary are not lost.
    """
    try:
        result = without_secrets(planned(case), seen, folder, secrets)
        content = result.as_dict()
        json.dumps(content, allow_nan=False).encode()
        parsed(RoundResult, content, "result.json")  # nobody could read what the record itself does not take
        return result
    except Exception as error:
        log_traceback(Stage.JUDGE, error)
        return secrets.hide_in(unjudged(seen, unexpected(Stage.JUDGE, error)))


def write_result(result: RoundResult, folder: Path) -> RoundResult:
    """Write a result; one that cannot be written counts as failed: who asks for the file would find none."""
    path = folder / "result.json"
    try:
        write_json(path, result.as_dict())
        return result
    except Exception as error:
        return _unwritten(result, path, error)


def write_observation(seen: Observation, folder: Path) -> Observation:
    """Write round.json, over an earlier one; what was seen, with a note where that failed: the result is worth more."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "round.json", seen.as_dict())
        return seen
    except Exception as error:
        log_traceback(Stage.JUDGE, error)
        note = f"{folder / 'round.json'} could not be written: {error}"
        return replace(seen, notes=(*seen.notes, note))


def has_record(folder: Path) -> bool:
    """Whether a round's folder has anything that its result can be told by."""
    return any((folder / name).is_file() for name in ("round.json", "result.json"))


def unjudged(seen: Observation, fault: Failure) -> RoundResult:
    """The result of a round that was not judged, because of `fault`; what went wrong before it goes first."""
    failure, notes = seen.failure or fault, seen.notes
    if seen.failure:
        notes = (*notes, f"at the stage {Stage.JUDGE.value}: {fault.message}")
    shared = {**seen.shared(), "failure": failure, "notes": notes}
    return RoundResult(**shared, verdict=failure.verdict, figures={"round_time": seen.round_time()})


def _unwritten(result: RoundResult, path: Path, error: Exception) -> RoundResult:
    log_traceback(Stage.JUDGE, error)
    failure = unexpected(Stage.JUDGE, error)
    if is_full(error):  # which is then why its logs are not here
        is_cause = not result.failure or result.failure.failure_class is FailureClass.LOGS_NOT_COLLECTED
        return replace(result, verdict=failure.verdict, failure=failure) if is_cause else result
    note = f"{path} could not be written: {failure.message}"
    LOGGER.error(note)
    if result.failure:
        return replace(result, notes=(*result.notes, note))
    return replace(result, verdict=Verdict.FAILED, failure=replace(failure, message=note))
