"""A whole worker that trains nothing: an epoch takes so many seconds, and what it learns is made up.

python -m tests.benchmarks.search.made_worker EPOCH_S
"""

from __future__ import annotations

import random
import sys
import time
from functools import partial

from benchmarks.search.client import read_place
from benchmarks.search.protocol import DataFacts, Trial
from benchmarks.search.worker import SearchWorker
from tests.benchmarks.search.with_parent import end_with_parent

DATA = DataFacts(1000, 100, "ab" * 32)
PROPOSER = (sys.executable, "-m", "tests.benchmarks.search.made_proposer")
join = partial(
    SearchWorker,
    ranks=1,
    precision="fp32",
    data=DATA,
    configuration="ef" * 32,
    space=None,
    proposer=PROPOSER,
)


def train(worker: SearchWorker, trial: Trial, epoch_s: float) -> None:
    """All epochs of a trial, unless it is another's by then."""
    for epoch in range(1, trial.epochs + 1):
        time.sleep(epoch_s)
        accuracy = random.random()
        if not worker.epoch_done(
            trial, epoch, accuracy=accuracy, loss=1.0, training_samples=1000, validation_samples=100
        ):
            return
    worker.trial_done(trial)


def main(epoch_s: float) -> None:
    """Work until the search is over."""
    with join(read_place()) as worker:
        for trial in worker.trials():
            print(f"trial {trial.trial}, attempt {trial.attempt}", flush=True)
            train(worker, trial, epoch_s)
    print(f"over: {worker.over}", flush=True)


if __name__ == "__main__":
    end_with_parent()
    main(float(sys.argv[1]))
