"""What is to be tried: proposals wait in a queue, and are told to whoever makes further ones."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from dataclasses import dataclass, field
from itertools import accumulate

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from benchmarks.search.controller.ledger import Ledger
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.protocol import LARGEST_REPLY, WRONG, Evaluation, Evaluations, Proposed, Record, encode

PROMISED_S = 60.0  # a worker that was asked for a proposal and sends none by then is not waited for
MOST_QUEUED = 8  # of one worker
PAGE, PAGE_BYTES = 4096, LARGEST_REPLY // 4  # changes that are told at once, and what ends a page
ASKS_PER_S = 100  # of all workers for the history, while nothing is wanted of them
SHORTEST_PAUSE_S = 0.2


class Facts(Record, frozen=True):
    """What the controller computes of a proposal; operations are of a sample. edits: each a few words.

    identity: the same of all architectures at no distance from each other.
    """

    identity: str
    layers: int
    parameters: int
    forward_operations: int
    training_operations: int
    edits: tuple[str, ...]


@dataclass
class Proposals:
    """The proposals of a search; `promised`: until when a worker's is counted on; `asked`: whose is taken."""

    ledger: Ledger
    settings: SearchSettings
    promised: dict[int, float] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)

    def parent_of(self, proposed: Proposed) -> Proposed:
        """The proposal that its parent is of.

        Raises:
            RefuseError: no such trial has come to an accuracy.
        """
        query = "SELECT proposed FROM proposals WHERE trial = ? AND accuracy IS NOT NULL"
        row = self.ledger.row(query, proposed.parent)
        if row is None:
            raise RefuseError(WRONG, f"trial {proposed.parent} is no parent: it has no accuracy")
        return msgspec.json.decode(row["proposed"], type=Proposed)

    def is_asked(self, worker: int) -> bool:
        """Whether one of this worker's would be taken."""
        return worker in self.asked

    def take(self, worker: int | None, proposed: Proposed, facts: Facts) -> None:
        """Put a worker's, or the controller's own (None), into the queue.

        Nothing is done where it is there already, or was, or where the worker was not asked for one.
        """
        if worker is not None:
            if worker not in self.asked:
                return
            self.forget(worker)
        number = self.ledger.value("SELECT coalesce(max(proposal), 0) + 1 FROM proposals")
        unique = hashlib.sha256(facts.identity.encode()).hexdigest()
        told = Evaluation(
            number,
            None,
            None,
            False,
            proposed.parent,
            proposed.edits,
            proposed.hyperparameters,
            proposed.tuned,
        )
        statement = """INSERT INTO proposals (proposal, digest, proposed, facts, told, state, change, proposer)
            VALUES (?, ?, ?, ?, ?, 'queued', ?, ?) ON CONFLICT DO NOTHING"""
        texts = (encode(each).decode() for each in (proposed, facts, told))
        self.ledger.execute(statement, number, unique, *texts, self._change(), worker)

    def history(self, worker: int, after: int, round_number: int) -> Evaluations:
        """What changed behind `after`, and whether this worker is to propose the next."""
        rows, is_last = self._page(after)
        page = Raw(f"[{','.join(row['told'] for row in rows)}]".encode())
        is_wanted = is_last and self._is_wanted(worker)
        pause_s = max(SHORTEST_PAUSE_S, self.ledger.count_live() / ASKS_PER_S) if is_last else 0.0
        latest = rows[-1]["change"] if rows else after
        return Evaluations(page, latest, is_wanted, round_number, random.getrandbits(48), pause_s)

    def forget(self, worker: int) -> None:
        """No proposal of it is counted on, or taken, until it is asked again."""
        self.promised.pop(worker, None)
        self.asked.discard(worker)

    def _page(self, after: int) -> tuple[list[sqlite3.Row], bool]:
        """The next changes, and whether there are no more behind them."""
        query = "SELECT told, change FROM proposals WHERE change > ? ORDER BY change LIMIT ?"
        rows = list(self.ledger.rows(query, after, PAGE))
        sizes = accumulate(len(row["told"].encode()) for row in rows)
        count = sum(size <= PAGE_BYTES for size in sizes) or 1
        return rows[:count], len(rows[:count]) == len(rows) < PAGE

    def handed(self, proposal: int, trial: int) -> None:
        """A proposal was handed out, as this trial."""
        statement = "UPDATE proposals SET state = 'handed', trial = ? WHERE proposal = ?"
        self.ledger.execute(statement, trial, proposal)

    def count_handed(self) -> int:
        """Trials that were handed out; the last one's number."""
        return int(self.ledger.value("SELECT coalesce(max(trial), 0) FROM proposals"))

    def ended(self, proposal: int, accuracy: float | None, *, is_again: bool) -> None:
        """What came of a proposal; `is_again`: it is to be handed out again."""
        row = self.ledger.rows("SELECT trial, told FROM proposals WHERE proposal = ?", proposal)[0]
        told = msgspec.json.decode(row["told"], type=Evaluation)
        told = replace(told, trial=row["trial"], accuracy=accuracy, has_ended=not is_again)
        self.ledger.execute(
            "UPDATE proposals SET state = ?, accuracy = ?, told = ?, change = ? WHERE proposal = ?",
            *("queued" if is_again else "ended", accuracy, encode(told).decode(), self._change(), proposal),
        )

    def refuse_strange(self) -> None:
        """msgspec's error for texts of the state that are not what this class writes."""
        for row in self.ledger.rows("SELECT told, facts, proposed FROM proposals"):
            for column, kind in (("told", Evaluation), ("facts", Facts), ("proposed", Proposed)):
                msgspec.json.decode(row[column], type=kind)

    def _is_wanted(self, worker: int) -> bool:
        """One is kept ready for each worker, and no more: what is proposed later knows more."""
        now_s = self.ledger.now_s
        self.promised = {each: until for each, until in self.promised.items() if until > now_s}
        ahead = self.ledger.value("SELECT count(*) FROM proposals WHERE state = 'queued'")
        ahead += len(self.promised.keys() - {worker})
        most = self.settings.max_trials
        own = "SELECT count(*) FROM proposals WHERE state = 'queued' AND proposer = ?"
        if ahead >= self.ledger.count_live() or (most is not None and ahead + self.count_handed() >= most):
            return False
        if self.ledger.value(own, worker) >= MOST_QUEUED:
            return False
        self.asked.add(worker)
        self.promised[worker] = now_s + PROMISED_S
        return True

    def _change(self) -> int:
        self.ledger.execute("UPDATE search SET changes = changes + 1")
        return int(self.ledger.value("SELECT changes FROM search"))
