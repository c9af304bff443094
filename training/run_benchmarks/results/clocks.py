"""The clocks of a round's nodes: what each says is put on one time line, that of global rank 0's events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from run_benchmarks.stages.clock import ClockReading

# A quartz that nobody corrects is off by less than this part of the time that has passed.
QUARTZ_DRIFT = 200e-6
MOST_JITTER_S = 0.05  # by which a clock that NTP keeps moves while it is read


@dataclass(frozen=True)
class NodeClock:
    """A node's clock against the controller's, at both ends of a round; None where it was not read."""

    begin: ClockReading | None = None
    end: ClockReading | None = None

    def to_controller_s(self, time_s: float) -> float:
        """The controller's time when the node's clock says `time_s`."""
        return time_s - self._offset_s(
            [(each.time_s + each.offset_s, each) for each in self._readings], time_s
        )

    def from_controller_s(self, time_s: float) -> float:
        """What the node's clock says at the controller's `time_s`."""
        return time_s + self._offset_s([(each.time_s, each) for each in self._readings], time_s)

    @property
    def moved_s(self) -> float:
        """By how much more it moved between both ends than a clock does that nobody sets; 0 where it did not."""
        if not self.has_both_ends:
            return 0.0
        begin, end = self._readings
        moved, passed = end.offset_s - begin.offset_s, abs(end.time_s - begin.time_s)
        normal = begin.uncertainty_s + end.uncertainty_s + QUARTZ_DRIFT * passed + MOST_JITTER_S
        return moved if abs(moved) > normal else 0.0

    @property
    def has_both_ends(self) -> bool:
        """Whether it is known at both ends."""
        return len(self._readings) == 2

    @property
    def _readings(self) -> list[ClockReading]:
        return [each for each in (self.begin, self.end) if each is not None and each.is_possible()]

    @staticmethod
    def _offset_s(points: Sequence[tuple[float, ClockReading]], time_s: float) -> float:
        """The offset at a place between both ends, on a straight line; beyond an end it is the end's.

        Where one of both clocks was set back behind the begin no line leads there and back: the begin's counts.
        """
        (first, begin), (last, end) = points[0], points[-1]
        if time_s <= first or last <= first or end.time_s <= begin.time_s:
            return begin.offset_s
        part = min(1.0, (time_s - first) / (last - first))
        return begin.offset_s + part * (end.offset_s - begin.offset_s)

    def is_read(self) -> bool:
        """Whether anything is known of it."""
        return bool(self._readings)


@dataclass(frozen=True)
class Shift:
    """From times of one clock to those of rank 0's node, in ms. source: whose times they are; None: the controller's.

    What was not read is taken to be right, as it was before clocks were read.
    """

    source: NodeClock | None = None
    target: NodeClock | None = None

    @property
    def moved_s(self) -> float:
        """By how much the one was set against the other while the round went on; the controller's may be set too."""
        moved = [clock.moved_s if clock else 0.0 for clock in (self.source, self.target)]
        return moved[0] - moved[1]

    def __call__(self, time_ms: int) -> int:
        """The same moment by the clock of rank 0's node."""
        if self.source is None and self.target is None:
            return time_ms
        time_s = time_ms / 1000
        if self.source is not None:
            time_s = self.source.to_controller_s(time_s)
        if self.target is not None:
            time_s = self.target.from_controller_s(time_s)
        return round(time_s * 1000)


@dataclass(frozen=True)
class Placement:
    """How the times of a node's telemetry are put on the round's time line: its own, and what the controller read.

    is_of_several: whether other nodes' are put there too.
    """

    own: Shift = field(default_factory=Shift)
    controllers: Shift = field(default_factory=Shift)
    is_of_several: bool = False


def placements(clocks: Sequence[NodeClock], nodes: int) -> list[Placement]:
    """For each of so many nodes, by rank. Rank 0's times stay as they are, and so do those of unknown clocks."""
    read = [clocks[rank] if rank < len(clocks) and clocks[rank].is_read() else None for rank in range(nodes)]
    first = read[0] if read else None
    of_controller = Shift(None, first)
    return [
        Placement(Shift(clock, first) if rank and clock and first else Shift(), of_controller, nodes > 1)
        for rank, clock in enumerate(read)
    ]


def clock_notes(hosts: Sequence[str], clocks: Sequence[NodeClock]) -> Iterator[str]:
    """What a reader must know of clocks that somebody set while the round went on."""
    for host, clock in zip(hosts, clocks, strict=False):
        if clock.moved_s:
            yield (
                f"{host}: its clock moved by {clock.moved_s:+.3g} s against the controller's while the round went on: "
                "what was sampled there is placed as if it had moved evenly"
            )
