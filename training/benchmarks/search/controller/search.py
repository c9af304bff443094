"""A search, as its controller conducts it: every request is answered from the state, and what it changes is kept."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from itertools import takewhile

import msgspec
from msgspec import structs

from benchmarks.search.controller.clock import SearchClock
from benchmarks.search.controller.database import REMEDY, StateError
from benchmarks.search.controller.ledger import Ledger
from benchmarks.search.controller.proposals import Facts, Proposals
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.sessions import Sessions
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.controller.trials import Trials
from benchmarks.search.protocol import (
    TOO_OFTEN,
    Beat,
    EpochDone,
    Heartbeat,
    Hexadecimal,
    History,
    NextTrial,
    Over,
    Propose,
    Proposed,
    Register,
    Reply,
    Request,
    Settled,
    Taken,
    TrialDone,
    TrialFailed,
    encode,
)
from utils.search.events import NO_MORE_TRIALS, STATE_FILE, EndReason, SearchEnd, SearchResumed, SearchStart
from utils.text_files import one_line

# Trials of a worker that fail one after the other, until it is done without: by its own doing, and whoever made them.
MOST_FAILURES, MOST_IN_A_ROW = 5, 20
REQUESTS_PER_S, MOST_AT_ONCE = 50.0, 200.0  # of one worker
TOO_MANY_EVENTS = "it has brought about more events than a worker may"
OTHER = "set them as they were, or begin a new search"


class Search:
    """A search that goes on; all of it is used by one thread, within a part of the ledger's transaction.

    Args:
        first: proposals that it begins with.
    """

    def __init__(
        self, ledger: Ledger, settings: SearchSettings, first: Sequence[tuple[Proposed, Facts]] = ()
    ) -> None:
        self.ledger, self.settings, self._first = ledger, settings, first
        self.proposals = Proposals(ledger, settings)
        self.trials = Trials(ledger, settings, self.proposals)
        self.sessions = Sessions(ledger, settings, self.trials)
        self.over: EndReason | None = None
        self.untold: set[int] = set()
        self._deadline_s = settings.search_seconds
        self._allowances: dict[int, tuple[float, float]] = {}
        self._blamed: dict[int, set[int]] = {}
        self._alone_since_s = 0.0

    def start(self) -> None:
        """Begin, or go on with what the state has; all that happened before is told again.

        Raises:
            StateError: the state is that of a search with other settings, or was written by somebody else.
        """
        try:
            self._start()
            self.proposals.refuse_strange()
        except (msgspec.MsgspecError, LookupError, ValueError, RecursionError) as error:
            message = f"holds what no controller writes: {one_line(str(error))}"
            raise StateError(message, where=STATE_FILE, remedy=REMEDY) from error

    def _start(self) -> None:
        row = self.ledger.row("SELECT * FROM search")
        settings = encode(self.settings).decode()
        if row is None:
            row = self._begin(settings)
        elif row["settings"] != settings:
            raise StateError(
                f"is of a search with other settings: {self._differences(row)}",
                where=STATE_FILE,
                remedy=OTHER,
            )
        self.ledger.clock = SearchClock(row["boot"], row["zero_s"], row["began_s"]).again(row["seen_s"])
        clock = self.ledger.clock
        now_s = self.ledger.now_s = self._alone_since_s = self.sessions.began_s = clock.now()
        away_s = row["away_s"] + (max(0.0, now_s - row["seen_s"]) if row["starts"] else 0.0)
        self.ledger.execute(
            "UPDATE search SET starts = starts + 1, away_s = ?, seen_s = ?, boot = ?, zero_s = ?",
            *(away_s, now_s, clock.boot, clock.zero_s),
        )
        self._deadline_s = self.settings.search_seconds + away_s
        self._tell_start(msgspec.convert(row["name"], Hexadecimal), away_s, row["starts"] + 1)
        self.ledger.tell_again()
        self.over = msgspec.convert(row["end_reason"], EndReason | None)
        if row["starts"] and not self.over:
            self.ledger.tell(SearchResumed(now_s, row["seen_s"]))

    def answer(self, request: Request, facts: Facts | None = None) -> Reply:
        """The answer to a request; `facts` are of what it proposes.

        Raises:
            RefuseError: it is not taken.
        """
        self._end_in_time()
        if self.over:
            self.untold.discard(request.worker)
            return Over(self.over)
        if self.ledger.spent[request.worker] * (self.settings.workers + 1) > 1:
            return self._end_talkative(request.worker)
        if isinstance(request, Register):
            is_live = self.sessions.register(request)
            self._refuse_too_many(request.worker)
            return Settled(self.settings.heartbeat_s) if is_live else Over("left")
        session = self.sessions.of(request)
        self._refuse_too_many(request.worker)
        if session["state"] == "left":
            return Over("this worker is done without")
        return self._answer(request, session, facts)

    def tick(self) -> None:
        """What time brings: workers that are lost, and the end. Called about once a second."""
        self.ledger.execute("UPDATE search SET seen_s = ?", self.ledger.now_s)
        self._end_in_time()
        if self.over:
            return
        self.sessions.lose_silent()
        if self.sessions.live():
            self._alone_since_s = self.ledger.now_s
        if self.trials.are_all_handed() and not self.trials.count_open():
            self.end("trials")
        elif self.ledger.now_s - self._alone_since_s > self.settings.alone_s:
            self.end("workers")

    def _end_in_time(self) -> None:
        if not self.over and self.ledger.now_s >= self._deadline_s:
            self.end("deadline")

    def end(self, reason: EndReason) -> None:
        """End the search: whoever is there is told so with the next answer."""
        self.over = reason
        live = self.sessions.live()
        self.untold = {session["worker"] for session in live}
        for session in live:
            self.sessions.end(session, "left", "")
        is_final = reason != "workers"  # with hosts again another start goes on
        if is_final:
            self.ledger.execute("UPDATE search SET end_reason = ?", reason)
        epochs = self.ledger.value("SELECT count(*) FROM epochs")
        self.ledger.tell(
            SearchEnd(self.ledger.now_s, reason, self.proposals.count_handed(), epochs), keep=is_final
        )

    def _answer(self, request: Request, session: sqlite3.Row, facts: Facts | None) -> Reply:
        worker = request.worker
        match request:
            case Heartbeat():
                self.sessions.waited(session, request.waited_s)
                return Beat(self._next_beat_s())
            case NextTrial():
                self.sessions.waited(session, request.waited_s)
                reply = self.trials.next_for(worker)
                return reply or self._leave(session, NO_MORE_TRIALS)
            case EpochDone():
                return self.trials.take_epoch(request, self.sessions.data(), self.sessions.peak_of(session))
            case TrialDone() | TrialFailed():
                return self._take_end(request, session)
            case History():
                is_training = self.trials.open_of(worker) is not None
                return self.proposals.history(
                    worker, request.after, self.trials.round_of(worker) + is_training
                )
            case Propose():
                if facts:
                    self.proposals.take(worker, request.proposed, facts)
                return Taken()
            case _:
                raise AssertionError(request)

    def _take_end(self, request: TrialDone | TrialFailed, session: sqlite3.Row) -> Reply:
        trial = self.trials.open_of(request.worker)
        taken = self.trials.take_end(request)
        failures, in_a_row = 0, list[int]()
        if isinstance(request, TrialFailed):
            failures = session["failures"] + (trial is not None and self._is_its_own(trial))
            in_a_row = self._in_a_row(request.worker)
        else:
            self._blamed.pop(request.worker, None)
        statement = "UPDATE sessions SET failures = ? WHERE worker = ? AND number = ?"
        self.ledger.execute(statement, failures, session["worker"], session["number"])
        if failures >= MOST_FAILURES or (
            len(in_a_row) >= MOST_IN_A_ROW and not self._are_anothers(request.worker, in_a_row)
        ):
            return self._leave(session, f"{len(in_a_row)} trials failed one after the other")
        return taken

    def _in_a_row(self, worker: int) -> list[int]:
        """Its trials that have failed one after the other, with the one that does just now."""
        worked = self.ledger.account.workers[worker].worked[-MOST_IN_A_ROW:]
        failed = (*worked[-1:], *takewhile(lambda span: span.state == "failed", reversed(worked[:-1])))
        return [span.trial.trial for span in failed if span.trial]

    def _are_anothers(self, worker: int, trials: Sequence[int]) -> bool:
        """Whether one other has proposed all of them, whose doing it may be; of two nobody can say whose it is."""
        query = "SELECT proposer FROM proposals JOIN trials USING (proposal) WHERE trials.trial = ?"
        proposers = {row["proposer"] for trial in trials for row in self.ledger.rows(query, trial)}
        return self.ledger.count_live() > 2 and len(proposers) == 1 and proposers != {worker}

    def _is_its_own(self, trial: sqlite3.Row) -> bool:
        """Whether a failure speaks against the worker: of what one other made, only the first in a row does."""
        blamed = self._blamed.setdefault(trial["worker"], set())
        others = self.trials.makers_of(trial) - {trial["worker"]}
        if others & blamed:
            return False
        blamed |= others
        return True

    def _leave(self, session: sqlite3.Row, reason: str) -> Over:
        self.sessions.end(session, "left", reason)
        return Over(reason)

    def _end_talkative(self, worker: int) -> Over:
        """What it has brought about is its part of all events that a log may have: no worker spoils that of others."""
        session = self.sessions.latest_of(worker)
        if session and session["state"] == "live":
            return self._leave(session, TOO_MANY_EVENTS)
        return Over(TOO_MANY_EVENTS)

    def _next_beat_s(self) -> float:
        """The last one is due right behind the deadline: nobody trains for long after it."""
        left_s = max(0.0, self._deadline_s - self.ledger.now_s)
        return min(self.settings.heartbeat_s, left_s + random.uniform(0.1, 0.6))

    def _refuse_too_many(self, worker: int) -> None:
        """Each worker gains an allowance of so many requests a second, up to a most."""
        now = self.ledger.now_s
        allowance, since = self._allowances.get(worker, (MOST_AT_ONCE, now))
        allowance = min(MOST_AT_ONCE, allowance + (now - since) * REQUESTS_PER_S) - 1
        if allowance < 0:
            raise RefuseError(TOO_OFTEN, f"worker {worker} asks more than {REQUESTS_PER_S:g} times a second")
        self._allowances[worker] = (allowance, now)

    def _begin(self, settings: str) -> sqlite3.Row:
        clock = SearchClock.begin()
        name = f"{random.SystemRandom().getrandbits(128):032x}"
        self.ledger.execute(
            "INSERT INTO search VALUES (?, ?, ?, ?, ?, 0, 0, 0, NULL, NULL, 0, NULL)",
            *(name, settings, clock.boot, clock.zero_s, clock.began_s),
        )
        for proposed, facts in self._first:
            self.proposals.take(None, proposed, facts)
        return self.ledger.rows("SELECT * FROM search")[0]

    def _differences(self, row: sqlite3.Row) -> str:
        before = structs.asdict(msgspec.json.decode(row["settings"], type=SearchSettings))
        now = structs.asdict(self.settings)
        return ", ".join(
            f"{name} was {before[name]}, and is {now[name]}" for name in now if before[name] != now[name]
        )

    def _tell_start(self, name: str, away_s: float, starts: int) -> None:
        settings = self.settings
        record = SearchStart(
            time_s=self.ledger.now_s,
            search=name,
            starts=starts,
            away_s=away_s,
            workers=settings.workers,
            search_seconds=settings.search_seconds,
            max_trials=settings.max_trials,
            epochs=settings.epochs,
            seed=settings.seed,
        )
        self.ledger.tell(record, keep=False)
