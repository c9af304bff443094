"""What a display is told of a run."""

from __future__ import annotations

from dataclasses import dataclass

from run_benchmarks.names import Node
from run_benchmarks.training_state import TrainingState
from utils.events import Event
from utils.telemetry.records import Scope


@dataclass(frozen=True)
class Power:
    """What a node draws now, in W, and what of the node that speaks of."""

    watts: float
    scope: Scope


class Display:
    """Told of every change while a run goes on; decides nothing, and by itself shows nothing.

    shows_power: whether it wants `power`, for which a file of each node has to be followed.
    """

    shows_power = False

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """A round begins on `nodes`; `training` is filled while it runs."""

    def stage(self, node: Node | None, name: str) -> None:
        """A node (None: every node of the round) has come to the stage `name`."""

    def event(self, event: Event) -> None:
        """Rank 0 reported `event`, which `training` has taken in."""

    def power(self, node: Node, power: Power) -> None:
        """A node's monitor has sampled its power."""

    def round_ended(self) -> None:
        """Nothing of the round is left on its hosts."""

    def interrupted(self) -> None:
        """The user asked the run to end: from now on it is stopped and cleaned up."""

    def close(self) -> None:
        """Leave the terminal as it was."""
