"""What a display is told of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from run_benchmarks.names import Node, RunId
from run_benchmarks.plan.records import Plan
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.training_state import TrainingState
from utils.events import Event
from utils.telemetry.records import SourceInfo

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick


class Display:
    """Told of every change while a run goes on; decides nothing, and by itself shows nothing.

    follows_telemetry: whether it wants `telemetry`, for which a file of each node has to be followed.
    """

    follows_telemetry = False

    def run_started(self, run: RunId, plan: Plan, ended: Sequence[RoundResult]) -> None:
        """The run begins, or goes on where a controller died: then `ended` are the rounds that are done."""

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """A round begins on `nodes`; `training` is filled while it runs."""

    def stage(self, node: Node | None, name: str) -> None:
        """A node (None: every node of the round) has come to the stage `name`."""

    def event(self, event: Event) -> None:
        """Rank 0 reported `event`, which `training` has taken in."""

    def telemetry(self, node: Node, record: AnyTick | SourceInfo) -> None:
        """A node's monitor has written a record."""

    def round_ended(self) -> None:
        """Nothing of the round is left on its hosts."""

    def attempt_failed(self, result: RoundResult) -> None:
        """The round is run again: what it ended with does not count."""

    def round_judged(self, result: RoundResult) -> None:
        """What the round ended with, which counts."""

    def interrupted(self) -> None:
        """The user asked the run to end: from now on it is stopped and cleaned up."""

    def close(self) -> None:
        """Leave the terminal as it was."""
