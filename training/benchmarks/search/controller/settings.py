"""What a search is to be: how long, how large, and what is waited for."""

from __future__ import annotations

from benchmarks.search.protocol import DataFacts, Record


class SearchSettings(Record, frozen=True):
    """The same at every start of a controller that goes on with a search. Times are in seconds.

    workers: how many there should be; they are numbered from 0. max_trials: that are handed out; None: no limit.
    epochs: of a trial at most, by round, the last for every later one. heartbeat_s: between two heartbeats; lost_s:
    without one until a worker is taken for lost. alone_s: without any worker until the search fails. data: what its
    workers have to train on; None: what the first has.
    """

    workers: int
    search_seconds: float
    max_trials: int | None
    epochs: tuple[int, ...]
    seed: int
    heartbeat_s: float = 5.0
    lost_s: float = 30.0
    alone_s: float = 600.0
    data: DataFacts | None = None

    def epochs_of(self, round_number: int) -> int:
        """Epochs of a trial of this round, from 1, at most."""
        return self.epochs[min(round_number, len(self.epochs)) - 1]
