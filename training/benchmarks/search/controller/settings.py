"""What a search is to be: how long, how large, and what is waited for."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from benchmarks.search.protocol import Count, DataFacts, Hexadecimal, Ordinal, Precision, Record, Register

AboveZero = Annotated[float, Meta(gt=0, le=1e9)]


class SearchSettings(Record, frozen=True):
    """The same at every start of a controller that goes on with a search. Times are in seconds.

    workers: how many there should be; they are numbered from 0. max_trials: that are handed out; None: no limit.
    epochs: of a trial at most, by round, the last for every later one. heartbeat_s: between two heartbeats; lost_s:
    without one until a worker is taken for lost. alone_s: without any worker until the search fails. data, precision:
    what its workers have to train on, and in; None: what the first does. ranks: of each worker; nodes: that the
    workers are spread over, as many on each; configuration: the digest of the parameters that all of them have to have;
    None: whatever they say. peaks: precision -> what a chip can do at most, FLOP/s.
    """

    workers: Ordinal
    search_seconds: AboveZero
    max_trials: Ordinal | None
    epochs: Annotated[tuple[Ordinal, ...], Meta(min_length=1, max_length=100)]
    seed: Count
    heartbeat_s: AboveZero = 5.0
    lost_s: AboveZero = 30.0
    alone_s: AboveZero = 600.0
    data: DataFacts | None = None
    precision: Precision | None = None
    ranks: Ordinal | None = None
    nodes: Ordinal | None = None
    configuration: Hexadecimal | None = None
    peaks: dict[str, Annotated[float, Meta(gt=0)]] = field(default_factory=dict)

    def epochs_of(self, round_number: int) -> int:
        """Epochs of a trial of this round, from 1, at most."""
        return self.epochs[min(round_number, len(self.epochs)) - 1]

    def difference(self, worker: Register) -> str:
        """Why a worker is none of this search; empty for one that is."""
        if worker.worker >= self.workers:
            return f"worker {worker.worker} of {self.workers}, counted from 0"
        for name in ("data", "precision", "ranks"):
            if getattr(self, name) not in (None, getattr(worker, name)):
                return f"its {name} is not what the controller has: {getattr(self, name)}"
        if self.configuration not in (None, worker.configuration):
            return "its configuration is not what the controller has: compare INIT_START in its log with plan.json"
        node = worker.node_rank if self.nodes is None else worker.worker * self.nodes // self.workers
        return "" if node == worker.node_rank else f"worker {worker.worker} is of node {node}"
