"""The search: each rank of a worker comes here, and they train together what the controller hands out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.driver.configuration import Configuration, digest_of
from benchmarks.driver.engine import Engine
from benchmarks.driver.perf_log import PerfLog
from benchmarks.driver.precision import settled
from benchmarks.driver.pytorch.case import MeasurementContext
from benchmarks.search.client import read_place
from benchmarks.search.images import read_facts
from benchmarks.search.protocol import DataFacts, Trial, encode, reply_of
from benchmarks.search.pytorch.data import ImageData
from benchmarks.search.pytorch.runner import TrialRunner
from benchmarks.search.pytorch.trial import training_settings
from benchmarks.search.space import space_of
from benchmarks.search.weight_exchange import WeightExchange
from benchmarks.search.worker import SearchWorker


class Case:
    """What one rank needs for trials, checked before the controller is asked for the first."""

    roles = ("controller", "worker")

    def __init__(self, context: MeasurementContext) -> None:
        self.settings = context.settings
        self.facts = read_facts(context.data_dir)
        self.space = space_of(context.settings, self.facts)
        size, flips = context.settings["image_size"], context.settings["flips"]
        self.data = ImageData(context.data_dir, self.facts, size, flips, context.driver.seed)
        self.configuration = digest_of(Configuration(context.driver, self.settings, changed=()).as_dict())
        self.training = training_settings(context.settings, context.driver)

    def work(self, engine: Engine[Any], perf_log: PerfLog) -> dict[str, Any]:
        """Train trials until the search is over; what FINISHED says of this worker."""
        config = settled(Configuration(self.training, case={}, changed=()), "pytorch", engine.group)
        runner = TrialRunner(engine, self.data, config.driver, self.settings, perf_log)
        if engine.rank == 0:
            self._lead(runner)
        else:
            for trial in _followed(engine):
                runner.run(trial)
        return runner.counts()

    def _lead(self, runner: TrialRunner) -> None:
        place, engine = read_place(), runner.engine
        facts = DataFacts(self.facts.training_samples, self.facts.validation_samples, self.facts.digest)
        precision: Any = runner.settings.precision  # a word of the protocol, as all of the driver's are
        with SearchWorker(
            place,
            ranks=engine.world_size,
            precision=precision,
            data=facts,
            configuration=self.configuration,
            space=self.space,
        ) as worker:
            runner.controller, runner.weights = worker, WeightExchange(place)
            for trial in worker.trials():
                engine.group.broadcast(encode(trial))
                runner.run(trial)
            engine.group.broadcast(b"")


def _followed(engine: Engine[Any]) -> Iterator[Trial]:
    """The trials that rank 0 was given, on any other rank."""
    while message := engine.group.broadcast(None).read():
        trial = reply_of(message)
        assert isinstance(trial, Trial)  # noqa: S101 - rank 0 sends nothing else
        yield trial
