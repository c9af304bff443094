"""Displays that cannot harm the run that they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from run_benchmarks.display.base import Display
from run_benchmarks.names import Node, RunId
from run_benchmarks.plan.records import Plan
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.run_log import LOGGER
from run_benchmarks.training_state import TrainingState
from run_benchmarks.unforeseen import sentence_of, traceback_text
from utils.events import Event
from utils.telemetry.records import SourceInfo

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick


class Guarded(Display):
    """All of `inner` are told; of none anything is raised: what goes wrong in one is logged, the first time."""

    def __init__(self, *inner: Display) -> None:
        self._inner = inner
        self._failed: set[Display] = set()
        self.follows_telemetry = any(each.follows_telemetry for each in inner)

    def run_started(self, run: RunId, plan: Plan, ended: Sequence[RoundResult]) -> None:
        """Hand it on, as all below."""
        self._tell(lambda each: each.run_started(run, plan, ended))

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        self._tell(lambda each: each.round_started(nodes, training))

    def stage(self, node: Node | None, name: str) -> None:
        self._tell(lambda each: each.stage(node, name))

    def event(self, event: Event) -> None:
        self._tell(lambda each: each.event(event))

    def telemetry(self, node: Node, record: AnyTick | SourceInfo) -> None:
        self._tell(lambda each: each.telemetry(node, record))

    def round_ended(self) -> None:
        self._tell(lambda each: each.round_ended())

    def attempt_failed(self, result: RoundResult) -> None:
        self._tell(lambda each: each.attempt_failed(result))

    def round_judged(self, result: RoundResult) -> None:
        self._tell(lambda each: each.round_judged(result))

    def interrupted(self) -> None:
        self._tell(lambda each: each.interrupted())

    def close(self) -> None:
        self._tell(lambda each: each.close())

    def _tell(self, tell: Callable[[Display], None]) -> None:
        for each in self._inner:
            try:
                tell(each)
            except Exception as error:
                if each not in self._failed:
                    self._failed.add(each)
                    message = f"the run is not shown as it should be, and goes on: {sentence_of(error)}"
                    LOGGER.bind(detail=traceback_text(error)).warning(message)
