"""Who the workers are: a number has one live session, and one that is not heard of is lost."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from benchmarks.search.controller.ledger import Ledger
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.controller.trials import Trials
from benchmarks.search.protocol import NOT_YOURS, UNREGISTERED, WRONG, DataFacts, Message, Register, encode
from utils.figure_records import Peak
from utils.search.events import Worker

# A worker's clock may run so much faster.
FASTER, ON_ITS_WAY_S = 0.01, 1.0
STARTED_ANEW = "it was started anew"  # by its launcher: its ranks had ended


@dataclass
class Sessions:
    """The sessions of a search's workers; `heard` says when each was heard of last, since this start at `began_s`."""

    ledger: Ledger
    settings: SearchSettings
    trials: Trials
    heard: dict[int, float] = field(default_factory=dict)
    began_s: float = 0.0

    def register(self, message: Register) -> bool:
        """Take a worker in; False where its session has left.

        Raises:
            RefuseError: its number is another's, or it trains on something else than the others.
        """
        self._refuse_other_task(message)
        latest = self.latest_of(message.worker)
        if latest and (latest["session"], latest["start"]) == (message.session, message.start):
            if latest["state"] == "lost":
                self._change(latest, "live", "back")
        elif latest and latest["session"] == message.session and latest["start"] < message.start:
            if latest["state"] == "live":
                self.end(latest, "lost", STARTED_ANEW)
            self._join(message, latest["number"] + 1)
        elif latest and (self._lives(latest) or latest["session"] == message.session):
            raise RefuseError(NOT_YOURS, f"worker {message.worker} has a live session, or a later one")
        else:
            if latest and latest["state"] == "live":
                self.end(
                    latest, "lost", "the controller was started anew, and this worker has another launcher"
                )
            self._join(message, latest["number"] + 1 if latest else 1)
        self.heard[message.worker] = self.ledger.now_s
        session = self.latest_of(message.worker)
        return session is not None and session["state"] == "live"

    def of(self, message: Message) -> sqlite3.Row:
        """The session of who sent a message; it is heard of.

        Raises:
            RefuseError: it is none, lost, or not the worker's last one.
        """
        latest = self.latest_of(message.worker)
        if latest is None or latest["state"] == "lost":
            raise RefuseError(
                UNREGISTERED, f"worker {message.worker} is not registered, or was taken for lost"
            )
        if (latest["session"], latest["start"]) != (message.session, message.start):
            raise RefuseError(NOT_YOURS, f"worker {message.worker} has another session")
        self.heard[message.worker] = self.ledger.now_s
        return latest

    def latest_of(self, worker: int) -> sqlite3.Row | None:
        """A worker's last session."""
        query = "SELECT * FROM sessions WHERE worker = ? ORDER BY number DESC LIMIT 1"
        return self.ledger.row(query, worker)

    def live(self) -> list[sqlite3.Row]:
        """All sessions that live."""
        return list(self.ledger.rows("SELECT * FROM sessions WHERE state = 'live'"))

    def waited(self, session: sqlite3.Row, waited_s: float) -> None:
        """A session's chips have waited for so long in all; what is said of it later is not less.

        Raises:
            RefuseError: it has not been there for so long.
        """
        there_s = self.ledger.now_s - session["registered_s"]
        if waited_s > there_s * (1 + FASTER) + ON_ITS_WAY_S:
            raise RefuseError(WRONG, f"it has waited for {waited_s:.1f} s and been there for {there_s:.1f} s")
        waited_s = min(waited_s, there_s)
        if waited_s > session["waited_s"]:
            statement = "UPDATE sessions SET waited_s = ? WHERE worker = ? AND number = ?"
            self.ledger.execute(statement, waited_s, session["worker"], session["number"])

    def lose_silent(self) -> None:
        """Take those for lost that have not been heard of for too long."""
        silent = self.ledger.now_s - self.settings.lost_s
        for session in self.live():
            if self.heard.get(session["worker"], self.began_s) < silent:
                self.end(session, "lost", f"nothing was heard of it for {self.settings.lost_s:g} s")

    def end(self, session: sqlite3.Row, state: Literal["lost", "left"], reason: str) -> None:
        """End a session, and the trial that its worker has."""
        trial = self.trials.open_of(session["worker"])
        if trial:
            self.trials.end(trial, "lost" if state == "lost" else "cut_off", reason)
        self.trials.proposals.forget(session["worker"])
        self._change(session, state, state, reason)

    def _join(self, message: Register, number: int) -> None:
        place = (message.worker, number, message.session, message.start, message.node_rank, message.ranks)
        columns = (
            "(worker, number, session, start, node_rank, ranks, registered_s, state, waited_s, failures)"
        )
        statement = f"INSERT INTO sessions {columns} VALUES (?, ?, ?, ?, ?, ?, ?, 'live', 0, 0)"  # noqa: S608
        self.ledger.execute(statement, *place, self.ledger.now_s)
        session = self.latest_of(message.worker)
        if session:
            self._tell(session, "joined")

    def _refuse_other_task(self, message: Register) -> None:
        """Where the settings do not, the first worker says what all of them train on, and in which precision."""
        if difference := self.settings.difference(message):
            raise RefuseError(WRONG, difference)
        self.ledger.execute(
            "UPDATE search SET data = ?, precision = ? WHERE data IS NULL",
            encode(message.data).decode(),
            message.precision,
        )
        if self.data() != message.data or self._precision() != message.precision:
            raise RefuseError(WRONG, "its data or precision are not those of the workers before it")

    def data(self) -> DataFacts:
        """What the workers train on."""
        return msgspec.json.decode(self.ledger.value("SELECT data FROM search"), type=DataFacts)

    def peak_of(self, session: sqlite3.Row) -> Peak:
        """What the chips of a worker can do, by the plan."""
        precision = self._precision()
        return Peak(session["ranks"], self.settings.peaks.get(precision), f"the plan's chip, in {precision}")

    def _precision(self) -> str:
        return str(self.ledger.value("SELECT precision FROM search"))

    def _lives(self, session: sqlite3.Row) -> bool:
        """Whether it has been heard of since this start: an attempt that is made anew has workers of its own."""
        return session["state"] == "live" and session["worker"] in self.heard

    def _change(
        self, session: sqlite3.Row, state: str, told: Literal["back", "lost", "left"], reason: str = ""
    ) -> None:
        statement = "UPDATE sessions SET state = ? WHERE worker = ? AND number = ?"
        self.ledger.execute(statement, state, session["worker"], session["number"])
        self._tell(session, told, reason)

    def _tell(
        self, session: sqlite3.Row, state: Literal["joined", "lost", "back", "left"], reason: str = ""
    ) -> None:
        data, worker = self.data(), session["worker"]
        waited_s = self.ledger.value("SELECT sum(waited_s) FROM sessions WHERE worker = ?", worker)
        self.ledger.tell(
            Worker(
                time_s=self.ledger.now_s,
                worker=worker,
                session=session["number"],
                state=state,
                node_rank=session["node_rank"],
                ranks=session["ranks"],
                precision=self._precision(),
                training_samples=data.training_samples,
                validation_samples=data.validation_samples,
                data_digest=data.digest,
                waited_s=waited_s,
                reason=reason,
            )
        )
