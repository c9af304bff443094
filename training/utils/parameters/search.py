"""What a search's own settings may be: its case's `_base.py` gives them, and the search's processes read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import partial
from typing import Any

from utils.parameters.settings import MOST, Conflict, setting

# It says of a case that it is a search, and when that ends.
SEARCH_SECONDS = "search_seconds"

bounded = partial(setting, MISSING, at_most=MOST)


@dataclass(frozen=True)
class SearchBounds:
    """The numbers among them; where a setting has several, each is bounded. What they are: the case's `_base.py`."""

    search_seconds: int = bounded(above=0)
    max_trials: int = bounded(at_least=0)
    ranks_per_worker: int = bounded(at_least=0)
    heartbeat_seconds: int = bounded(above=0)
    lost_after_seconds: int = bounded(above=0)
    epochs_by_round: tuple[int, ...] = bounded(at_least=1)
    patience_epochs: int = bounded(at_least=1)
    batch_sizes: tuple[int, ...] = bounded(at_least=1)
    eval_batch_size: int = bounded(at_least=1)
    learning_rate: float = bounded(at_least=0)
    momentum: float = bounded(at_least=0, below=1)
    label_smoothing: float = bounded(at_least=0, below=1)
    prefetch_batches: int = bounded(at_least=1)


def search_bounds(case: Mapping[str, Any]) -> dict[str, Field[Any]]:
    """Those of a case by its `_base.py`; none where it is no search."""
    return {field.name: field for field in fields(SearchBounds)} if SEARCH_SECONDS in case else {}


def search_conflicts(values: Mapping[str, Any]) -> Iterator[Conflict]:
    """Settings that no search can have together."""
    names = ("lost_after_seconds", "heartbeat_seconds")
    lost_s, heartbeat_s = map(values.get, names)
    if lost_s is not None and heartbeat_s is not None and lost_s <= heartbeat_s:
        yield names, f"is not above heartbeat_seconds, {heartbeat_s}: every worker would be lost", "raise it"
