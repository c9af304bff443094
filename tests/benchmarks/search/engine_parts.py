"""A search without its server: what the controller's own tests stand on. Its clock goes when it is told to."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from benchmarks.search.controller import clock
from benchmarks.search.controller.database import open_database
from benchmarks.search.controller.ledger import Ledger
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.search import Search
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.protocol import (
    DataFacts,
    EpochDone,
    Evaluations,
    Heartbeat,
    History,
    Hyperparameters,
    NextTrial,
    Propose,
    Proposed,
    Register,
    Reply,
    Request,
    Trial,
    TrialDone,
    TrialFailed,
)
from tests.benchmarks.search.made_controller import made_facts
from utils.events import Event, parse_line

DATA, CONFIGURATION = DataFacts(1000, 100, "ab" * 32), "ef" * 32
SETTINGS = SearchSettings(2, 3600.0, None, (2, 3), 1)


@dataclass
class Bench:
    """A search whose state lies in `folder`; `now_s` is what the machine's clock shows."""

    folder: Path
    settings: SearchSettings = SETTINGS
    now_s: float = 1000.0
    out: io.StringIO = field(default_factory=io.StringIO)

    def start(self) -> Bench:
        """Start the controller, or start it again after it was ended at once."""
        self.ledger = Ledger(open_database(self.folder), self.out)
        self.search = Search(self.ledger, self.settings)
        self.ask(self.search.start)
        return self

    def ask(self, action: Any) -> Any:
        """What an action gives, in a transaction of its own."""
        with self.ledger.transaction(), self.ledger.part():
            return action()

    def send(self, request: Request) -> Reply:
        """The answer to a request."""
        reply: Reply = self.ask(
            lambda: self.search.answer(
                request, made_facts(request.proposed, None)[1] if isinstance(request, Propose) else None
            )
        )
        return reply

    def refused(self, request: Request) -> tuple[int, str]:
        """With what a request is refused."""
        with pytest.raises(RefuseError) as caught:
            self.send(request)
        return caught.value.status, caught.value.reason

    def tick(self, seconds: float = 0.0) -> None:
        """Time passes."""
        self.now_s += seconds
        self.ask(self.search.tick)

    def events(self, name: str = "") -> list[Event]:
        """What the log tells, behind the last start."""
        events = [event for line in self.out.getvalue().splitlines() if (event := parse_line(line))]
        start = max(place for place, event in enumerate(events) if event.name == "SEARCH_START")
        events = events[start:]
        return [event for event in events if name in ("", event.name)]

    def joined(self, worker: int = 0) -> Reply:
        """A worker joins."""
        return self.send(register(worker))

    def proposed(self, worker: int = 0, number: int = 1) -> None:
        """A worker is asked for an architecture, and proposes it."""
        self.history(worker)
        self.send(Propose(**who(worker), proposed=proposal(number)))

    def history(self, worker: int = 0) -> Evaluations:
        """What came of all proposals."""
        reply = self.send(History(**who(worker), after=0))
        assert isinstance(reply, Evaluations), reply
        return reply

    def trial(self, worker: int = 0) -> Trial:
        """The worker's next trial, of a proposal of its own."""
        self.proposed(worker, 1000 * worker + len(self.events("TRIAL_START")) + 1)
        reply = self.send(NextTrial(**who(worker), waited_s=0.0))
        assert isinstance(reply, Trial), reply
        return reply


def bench(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> Bench:
    """A search that has begun."""
    made = Bench(folder, msgspec.structs.replace(SETTINGS, **changed))
    monkeypatch.setattr(clock, "_machine_s", lambda: made.now_s)
    return made.start()


def who(worker: int = 0, start: int = 1, session: str = "") -> dict[str, Any]:
    """A worker's session."""
    return {"worker": worker, "session": session or f"{worker:032x}", "start": start}


def register(worker: int = 0, **changed: Any) -> Register:
    """A worker's first message."""
    settings: dict[str, Any] = {"node_rank": worker, "ranks": 1, "precision": "bf16", "data": DATA}
    settings["configuration"] = CONFIGURATION
    return Register(**{**who(worker), **settings, **changed})


def proposal(number: int, parent: int | None = None) -> Proposed:
    """An architecture that is a number."""
    return Proposed(parent, (), Raw(b"%d" % number), Hyperparameters(0.0, 3, 32))


def epoch_of(trial: Trial, epoch: int, worker: int = 0, **changed: Any) -> EpochDone:
    """An epoch of ten seconds."""
    values: dict[str, Any] = {
        **who(worker),
        "trial": trial.trial,
        "attempt": trial.attempt,
        "epoch": epoch,
        "accuracy": 0.5,
        "loss": 1.0,
        "seconds": 10.0,
        "delayed_s": 0.0,
        "training_samples": 1000,
        "validation_samples": 100,
    }
    return EpochDone(**{**values, **changed})


def done(trial: Trial, worker: int = 0, *, stopped: bool = False) -> TrialDone:
    """Its end."""
    return TrialDone(**who(worker), trial=trial.trial, attempt=trial.attempt, stopped=stopped)


def failed(trial: Trial, worker: int = 0, reason: str = "the loss is nan") -> TrialFailed:
    """Its end, as a failure."""
    return TrialFailed(**who(worker), trial=trial.trial, attempt=trial.attempt, reason=reason)


def beat(worker: int = 0, waited_s: float = 0.0) -> Heartbeat:
    """A sign of life."""
    return Heartbeat(**who(worker), waited_s=waited_s)
