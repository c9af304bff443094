"""A display that cannot harm the round that it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from run_benchmarks.display.base import Display, Power
from run_benchmarks.names import Node
from run_benchmarks.run_log import LOGGER
from run_benchmarks.training_state import TrainingState
from run_benchmarks.unforeseen import sentence_of, traceback_text
from utils.events import Event

P = ParamSpec("P")


class Guarded(Display):
    """`inner`, of which nothing is raised: what goes wrong in it is logged, the first time."""

    def __init__(self, inner: Display) -> None:
        self._inner = inner
        self._has_failed = False
        self.shows_power = inner.shows_power

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """Hand it on, as all below."""
        self._try(self._inner.round_started, nodes, training)

    def stage(self, node: Node | None, name: str) -> None:
        self._try(self._inner.stage, node, name)

    def event(self, event: Event) -> None:
        self._try(self._inner.event, event)

    def power(self, node: Node, power: Power) -> None:
        self._try(self._inner.power, node, power)

    def round_ended(self) -> None:
        self._try(self._inner.round_ended)

    def interrupted(self) -> None:
        self._try(self._inner.interrupted)

    def close(self) -> None:
        self._try(self._inner.close)

    def _try(self, call: Callable[P, None], *args: P.args, **options: P.kwargs) -> None:
        try:
            call(*args, **options)
        except Exception as error:
            if not self._has_failed:
                self._has_failed = True
                message = f"the run is not shown as it should be, and goes on: {sentence_of(error)}"
                LOGGER.bind(detail=traceback_text(error)).warning(message)
