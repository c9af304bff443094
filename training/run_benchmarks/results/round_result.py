"""The records of a round: what the controller saw of it (`round.json`), and what it ended with (`result.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.reading import Record
from run_benchmarks.results.clocks import NodeClock
from run_benchmarks.results.disturbances import MOST_DISTURBANCES, Disturbance
from run_benchmarks.results.provenance import Origin, Provenance
from run_benchmarks.results.rules import Rules
from run_benchmarks.results.search.record import SearchResult
from run_benchmarks.results.stragglers import MOST_NAMED as MOST_STRAGGLERS
from run_benchmarks.results.stragglers import Straggler
from run_benchmarks.results.telemetry_result import RoundTelemetry
from run_benchmarks.stages.clock import Uptime
from run_benchmarks.stages.watch import Outcome
from utils.events import Event, EventName
from utils.figures import DEFINITIONS, Figure
from utils.numbers import counted, shown
from utils.parameters import MeasurementSettings, TrainingSettings
from utils.processor import precision_note
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.text_files import shortened
from utils.writing import BY_UMASK, write_whole

# 1: until figures had `better` and `definition` and a round had its `kind` and its round.json.
# 2: until a round said where it comes from: `origin` of round.json, `provenance` of result.json.
SCHEMA: Final = 3
MOST_NOTES = 50
# A case reports up to 200 of its own beside ours; a run's list of hosts may have as many in each entry.
MOST_FIGURES, MOST_HOSTS, MOST_ATTEMPTS = 500, 10_000, 100
# Characters of a note, and of what a failure says: its evidence may be twenty long lines.
LONGEST_TEXT = 2**17
CONVERGE, MEASURE = TrainingSettings.kind, MeasurementSettings.kind


@dataclass(frozen=True)
class Attempt:
    """An attempt at a round that does not count, as it failed by the machines' fault.

    folder: its own, beside the round's. host: by whose fault, or empty. hosts: by node rank.
    """

    __pydantic_config__: ClassVar = {"alias_generator": lambda name: name.removeprefix("failure_")}

    folder: str
    verdict: Verdict
    failure_class: FailureClass
    host: str
    hosts: Annotated[tuple[str, ...], Field(max_length=MOST_HOSTS)]

    @property
    def cause(self) -> str:
        """Why it failed, in a few words."""
        where = f" on {self.host}" if self.host else ""
        return f"{self.failure_class.value}{where}"

    @property
    def note(self) -> str:
        """It, in a line."""
        return f"{self.folder} does not count: {self.verdict.value} ({self.cause})"


@dataclass(frozen=True, kw_only=True)
class RoundRecord(Record):
    """What `round.json` and `result.json` both say of a round.

    hosts: by node rank. failure: why the round did not end well. times: seconds by stage.
    image, images: the image's name, and host -> its ID. notes: what a reader must know.
    attempts: those before this one, which counts. clocks: by node rank; none where nobody read them.
    allocation: the scheduler's job that the hosts were of; None without a scheduler.
    """

    schema: Literal[1, 2, 3] = SCHEMA
    case: str
    round: int
    started: str
    hosts: Annotated[tuple[str, ...], Field(max_length=MOST_HOSTS)]
    failure: Failure | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    image: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    attempts: Annotated[tuple[Attempt, ...], Field(max_length=MOST_ATTEMPTS)] = ()
    clocks: Annotated[tuple[NodeClock, ...], Field(max_length=MOST_HOSTS)] = ()
    allocation: GrantedJob | None = None

    def shared(self) -> dict[str, Any]:
        """The fields that both have."""
        return {each.name: getattr(self, each.name) for each in fields(RoundRecord)}


@dataclass(frozen=True, kw_only=True)
class Observation(RoundRecord):
    """A round as the controller saw it: `round.json`. What happened on its nodes stands in their logs.

    time_s: from its start until its logs were home; None where that is not known.
    failure: what went wrong outside the tasks. outcome: how these ended; None where they were never waited for.
    lost: hosts that went out of reach. not_collected: node ranks whose logs still lie on their host.
    continue_from: the uid of the run that the round was to go on from, or empty. origin: None before schema 3.
    tree: where the ranks saw the code, the controller's `training/`; empty where none were launched.
    neighbours: host -> the uids of other runs that were seen at work there meanwhile. unwatched_s: so long of `time_s`,
    at most, the run had no controller. uptimes: host -> its uptime when the round began, by which a
    controller that takes it up knows how long it has gone on.
    """

    time_s: float | None
    outcome: Outcome | None = None
    lost: tuple[str, ...] = ()
    not_collected: tuple[int, ...] = ()
    continue_from: str = ""
    tree: str = ""
    origin: Origin | None = None
    neighbours: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unwatched_s: float = 0.0
    uptimes: Mapping[str, Uptime] = field(default_factory=dict)

    def round_time(self) -> Figure:
        """The controller's own figure."""
        source = "the controller's clock" + (", which nothing tells of" if self.time_s is None else "")
        figure = DEFINITIONS["round_time"].figure(self.time_s, source)
        alone = f"up to {shown(self.unwatched_s)} s of it passed without a controller"
        return replace(figure, caveat=alone) if self.unwatched_s and self.time_s is not None else figure


@dataclass(frozen=True, kw_only=True)
class RoundResult(RoundRecord):
    """What a round ended with: `result.json`.

    kind: CONVERGE for a case with a target, MEASURE for one that does a fixed amount of work.
    facts: FINISHED's values. continued: the run, checkpoint and step that the round went on from, if it did.
    shortfall: why it did not converge though nothing failed; else empty.
    provenance: what of the raw files says where the result comes from; None before schema 3.
    stragglers: the ranks and nodes that held up the others. disturbances: what may have made the training slower.
    telemetry: what each node's comes to; None in earlier results, and without a training to cut it by.
    search: what one comes to beside its figures.
    """

    kind: str = CONVERGE
    verdict: Verdict
    rules: Rules = field(default_factory=Rules)
    figures: Annotated[Mapping[str, Figure], Field(max_length=MOST_FIGURES)]
    continued: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    shortfall: str = ""
    provenance: Provenance | None = None
    telemetry: RoundTelemetry | None = None
    disturbances: Annotated[tuple[Disturbance, ...], Field(max_length=MOST_DISTURBANCES)] = ()
    stragglers: Annotated[tuple[Straggler, ...], Field(max_length=MOST_STRAGGLERS)] = ()
    search: SearchResult | None = None

    @property
    def has_more(self) -> bool:
        """Whether there is more to say of it than stands in the tables."""
        return bool(self.failure or self.shortfall or self.notes)

    def observed(self) -> Observation:
        """What it tells of what the controller saw, for rounds without a `round.json` (schema 1).

        A failure that judging gave is not among it, nor are the notes: both come anew.
        """
        failure = None if self.failure and self.failure.stage is Stage.JUDGE else self.failure
        return Observation(
            **{**self.shared(), "failure": failure, "notes": ()},
            time_s=self.figures["round_time"].value if "round_time" in self.figures else None,
            continue_from=str((self.continued or {}).get("run") or ""),
        )


def bounded(seen: Observation) -> Observation:
    """With notes and a failure of which each text is bounded: what they quote of a host need not be."""

    def short(text: str) -> str:
        return shortened(text, LONGEST_TEXT)

    failure = seen.failure
    if failure:
        message, evidence, remedy = map(short, (failure.message, failure.evidence, failure.remedy))
        failure = replace(failure, message=message, evidence=evidence, remedy=remedy)
    return replace(seen, failure=failure, notes=tuple(map(short, seen.notes)))


def write_json(path: Path, record: Mapping[str, Any], mode: int = BY_UMASK) -> None:
    """Write `record` so that a reader sees all of it or nothing."""
    write_whole(path, json.dumps(record, indent=2, allow_nan=False) + "\n", mode)


def few(notes: Sequence[str], most: int = MOST_NOTES) -> list[str]:
    """The notes that are shown: of so many that nobody reads them the first."""
    more = len(notes) - most
    return [*notes[:most], *([f"{more} more notes like these"] if more > 0 else [])]


def continuation_notes(continued: Mapping[str, Any] | None) -> list[str]:
    """What a reader of a continued round's figures must know."""
    if not continued:
        return []
    head = f"continued from step {continued.get('step')} of {continued.get('run') or 'an earlier run'}"
    passed_over = [
        f"a newer checkpoint was passed over: {reason}" for reason in continued.get("skipped") or ()
    ]
    return [f"{head}: times, rates and energy are of this part only", *passed_over]


def saving_notes(facts: Mapping[str, Any]) -> list[str]:
    """What FINISHED tells of checkpoints that are not there."""
    failed, anew = facts.get("failed_checkpoints"), facts.get("begun_anew")
    notes = [f"begun anew: {anew}"] if anew else []
    if isinstance(failed, int) and failed > 0:
        notes.append(f"{counted(failed, 'checkpoint')} could not be written: global rank 0's log says why")
    return notes


def precision_notes(events: Sequence[Event]) -> list[str]:
    """What `precision = "auto"` came to; a round that fails later has settled it all the same."""
    notes = (precision_note(event.value) for event in events if event.name == EventName.INIT_END)
    return list(filter(None, notes))[:1]
