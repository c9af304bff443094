"""Which searches count: the rules of AIPerf, held against what was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from utils.numbers import number_in, shown
from utils.parameters import SEARCH_SECONDS
from utils.search.account import Account, OfWorker
from utils.search.events import NO_MORE_TRIALS

LEAST_S = 3600.0
LEAST_ACCURACY = 0.70
ADVISED_S = 12 * 3600.0
MOST_NAMED = 4  # workers that it ended without
# FP16 or better.
PRECISIONS = ("fp16", "bf16", "tf32", "fp32")


def is_trial_run(parameters: Mapping[str, Any]) -> bool:
    """Whether a search was configured for less than an hour: nobody may compare it, and no rule is asked."""
    seconds = number_in(parameters, SEARCH_SECONDS)
    return seconds is not None and seconds < LEAST_S


def searched_s(account: Account) -> float:
    """For how long it has searched, without the time in which it had no controller."""
    return account.now_s - (account.start.away_s if account.start else 0.0)


def broken_rules(account: Account) -> Iterator[str]:
    """The rules that a search does not meet, each with what was seen."""
    seconds, best = searched_s(account), account.best
    if seconds < LEAST_S:
        yield f"it searched for {shown(seconds)} s, and one counts from {LEAST_S:g} s on"
    below = [precision for precision in account.precisions if precision not in PRECISIONS]
    if below:
        yield f"it trained in {', '.join(below)}, and one counts in FP16 or better ({', '.join(PRECISIONS)})"
    accuracy = (best.accuracy if best else None) or 0.0
    if accuracy <= LEAST_ACCURACY:
        yield f"its best accuracy is {accuracy:.4f}, and one counts above {LEAST_ACCURACY:.2f}"


def remarks(account: Account, parameters: Mapping[str, Any], workers: int) -> Iterator[str]:
    """What a reader of a search that has ended well, and was to have so many workers, must know."""
    if is_trial_run(parameters):
        broken = "; ".join(broken_rules(account)) or "none is broken"
        yield f"a trial run ({SEARCH_SECONDS} is below {LEAST_S:g}), which is not comparable; of the rules: {broken}"
    elif searched_s(account) < ADVISED_S:
        yield f"it searched for {shown(searched_s(account) / 3600)} h; {ADVISED_S / 3600:g} h are advised"
    missed = workers - sum(
        not _is_missed(account.workers[each]) for each in account.workers if each < workers
    )
    if missed > 0:
        named = "; ".join(islice(_missed(account, workers), MOST_NAMED))  # a plan may name any number
        more = f"; and {missed - MOST_NAMED} more" if missed > MOST_NAMED else ""
        yield f"it ended without {missed} of {workers} workers: {named}{more}"


def _missed(account: Account, workers: int) -> Iterator[str]:
    """Workers that were to be there until its end, and since when they were not."""
    for number in range(workers):
        worker = account.workers.get(number)
        if worker is None:
            yield f"worker {number} never came"
        elif _is_missed(worker):
            yield f"worker {number} was there until {shown(worker.last.time_s)} s ({worker.last.reason})"


def _is_missed(worker: OfWorker) -> bool:
    last = worker.last
    return not worker.is_there and (last.state == "lost" or last.reason not in ("", NO_MORE_TRIALS))
