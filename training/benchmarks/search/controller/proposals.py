"""What is to be tried: proposals wait in a queue, and are told to whoever makes further ones."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field

import msgspec

from benchmarks.search.controller.ledger import Ledger
from benchmarks.search.controller.refusal import WRONG, RefuseError
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.protocol import HISTORY, Evaluation, Evaluations, Proposed, Record, encode

PROMISED_S = 60.0  # a worker that was asked for a proposal and sends none by then sends none
PAGE_BYTES = 2**23  # of architectures in one answer
ASKS_PER_S = 100  # of all workers for the history, while nothing is wanted of them
SHORTEST_PAUSE_S = 0.2


class Facts(Record, frozen=True):
    """What the controller computes of a proposal; operations are of a sample. edits: each a few words."""

    layers: int
    parameters: int
    forward_operations: int
    training_operations: int
    edits: tuple[str, ...]


@dataclass
class Proposals:
    """The proposals of a search; `promised` says until when a worker's proposal is counted on."""

    ledger: Ledger
    settings: SearchSettings
    promised: dict[int, float] = field(default_factory=dict)

    def parent_of(self, proposed: Proposed) -> Proposed | None:
        """The proposal of the parent; None where there is no parent.

        Raises:
            RefuseError: no such trial has come to an accuracy.
        """
        if proposed.parent is None:
            return None
        query = "SELECT proposed FROM proposals WHERE trial = ? AND accuracy IS NOT NULL"
        row = self.ledger.row(query, proposed.parent)
        if row is None:
            raise RefuseError(WRONG, f"trial {proposed.parent} is no parent: it has no accuracy")
        return msgspec.json.decode(row["proposed"], type=Proposed)

    def take(self, worker: int, proposed: Proposed, facts: Facts) -> bool:
        """Put it into the queue; False where it is there already, or was."""
        self.promised.pop(worker, None)
        unique = hashlib.sha256(bytes(proposed.architecture) + encode(proposed.hyperparameters))
        texts = encode(proposed).decode(), encode(facts).decode()
        statement = """INSERT INTO proposals (digest, proposed, facts, state, change)
            VALUES (?, ?, ?, 'queued', ?) ON CONFLICT DO NOTHING"""
        return bool(self.ledger.execute(statement, unique.hexdigest(), *texts, self._change()))

    def history(self, worker: int, after: int, round_number: int) -> Evaluations:
        """What changed behind `after`, and whether this worker is to propose the next."""
        query = """SELECT proposal, trial, accuracy, proposed, change FROM proposals WHERE change > ?
            ORDER BY change LIMIT ?"""
        rows, size = list(self.ledger.rows(query, after, HISTORY)), 0
        page: list[Evaluation] = []
        for row in rows:
            if page and size + len(row["proposed"]) > PAGE_BYTES:
                break
            size += len(row["proposed"])
            proposed = msgspec.json.decode(row["proposed"], type=Proposed)
            page.append(Evaluation(row["proposal"], row["trial"], row["accuracy"], proposed))
            after = row["change"]
        is_all = len(page) == len(rows) < HISTORY
        is_wanted = is_all and self._is_wanted(worker)
        live = self.ledger.value("SELECT count(*) FROM sessions WHERE state = 'live'")
        pause_s = max(SHORTEST_PAUSE_S, live / ASKS_PER_S) if is_all else 0.0
        return Evaluations(tuple(page), after, is_wanted, round_number, random.getrandbits(48), pause_s)

    def changed(self, proposal: int, state: str, accuracy: float | None) -> None:
        """A proposal was handed out, has ended, or is to be handed out again."""
        statement = "UPDATE proposals SET state = ?, accuracy = ?, change = ? WHERE proposal = ?"
        self.ledger.execute(statement, state, accuracy, self._change(), proposal)

    def _is_wanted(self, worker: int) -> bool:
        """One is kept ready for each worker, and no more: what is proposed later knows more."""
        now_s = self.ledger.now_s
        self.promised = {each: until for each, until in self.promised.items() if until > now_s}
        ahead = self.ledger.value("SELECT count(*) FROM proposals WHERE state = 'queued'")
        ahead += len(self.promised.keys() - {worker})
        live = self.ledger.value("SELECT count(*) FROM sessions WHERE state = 'live'")
        handed = self.ledger.value("SELECT count(trial) FROM proposals")
        most = self.settings.max_trials
        if ahead >= live or (most is not None and ahead + handed >= most):
            return False
        self.promised[worker] = now_s + PROMISED_S
        return True

    def _change(self) -> int:
        self.ledger.execute("UPDATE search SET changes = changes + 1")
        return int(self.ledger.value("SELECT changes FROM search"))
