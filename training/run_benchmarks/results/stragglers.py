"""Which ranks and nodes hold up the others in a training, by how long each works before it meets them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from utils.numbers import number_in, shown

KEY = "rank_times"
# What a rank does in a step by itself: the key in FINISHED's `rank_times`, and what it is.
PARTS: Mapping[str, str] = {"forward": "forward pass", "optimizer": "optimizer", "data": "waiting for data"}
# Of fewer, nobody can say who is late and who is early: half of four may differ by chance.
FEWEST = 4
FEWEST_STEPS = 5
# So many robust standard deviations above the median (Iglewicz and Hoaglin 1993 take 3.5, for one value; of thousands
# of ranks one in some thousand would be named by chance) ...
LEAST_SCORE = 5.0
# ... of which one is not less than this part of the median: chips of one kind differ by a percent or two ...
LEAST_DEVIATION = 0.02
# ... and so much of a step later than the median that it matters.
LEAST_LOSS = 0.05
MAD_TO_SD = 1.4826  # of normal deviates
MEDIAN_ERROR = 1.2533  # a median's standard error, by that of a mean
SPREAD = "spread"  # its key: the median distance of a rank's single steps from their median
MOST_NAMED = 64


@dataclass(frozen=True, kw_only=True)
class Straggler:
    """A rank that takes longer for its own part of a step than the others, or a node whose ranks do.

    node: its rank. rank: the global one, None where it is the node. seconds, median_s: of a step, its own and the
    median of all. score: robust z. part: of PARTS what it takes longest for, compared with the median.
    loss: seconds above the median, as a part of a whole step.
    """

    node: int
    rank: int | None
    seconds: float
    median_s: float
    score: float
    part: str
    loss: float

    def note(self, hosts: Sequence[str]) -> str:
        """It, in a line."""
        host = hosts[self.node] if self.node < len(hosts) else f"node {self.node}"
        who = f"all of {host}" if self.rank is None else f"rank {self.rank} on {host}"
        return (
            f"straggler: {who} works {shown(self.seconds * 1000)} ms of a step before it meets the others, the median "
            f"is {shown(self.median_s * 1000)} ms (z {self.score:.3g}, named from {LEAST_SCORE:g} on); it is the "
            f"{PARTS[self.part]}, and takes {self.loss:.0%} of a step"
        )


@dataclass(frozen=True)
class RankTimes:
    """Seconds of a step that each rank works by itself: of each of PARTS, by rank.

    errors: by how much, as a standard error, chance alone may move all of them together: the median of few steps.
    """

    parts: Mapping[str, Sequence[float]]
    errors: Sequence[float]

    @property
    def whole(self) -> list[float]:
        """All parts together, by rank."""
        return [sum(each) for each in zip(*self.parts.values(), strict=True)]


def rank_times(facts: Mapping[str, Any]) -> RankTimes | None:
    """What FINISHED tells of its ranks; None where it does not, or of too few steps."""
    told = facts.get(KEY)
    steps = number_in(told, "steps") if isinstance(told, Mapping) else None
    if not isinstance(told, Mapping) or steps is None or steps < FEWEST_STEPS:
        return None
    parts = {part: list(_seconds(told.get(part))) for part in PARTS}
    spread = list(_seconds(told.get(SPREAD)))
    counts = {len(column) for column in (*parts.values(), spread)}
    errors = [MEDIAN_ERROR * MAD_TO_SD * each / math.sqrt(steps) for each in spread]
    return RankTimes(parts, errors) if len(counts) == 1 and counts != {0} else None


def _seconds(column: object) -> Iterator[float]:
    """Of each rank, or of none where one is missing."""
    numbers = [number_in({KEY: each}, KEY) for each in column] if isinstance(column, list) else []
    seconds = [each for each in numbers if each is not None and each >= 0]
    return iter(seconds if len(seconds) == len(numbers) else ())


def stragglers(facts: Mapping[str, Any], nproc: int) -> list[Straggler]:
    """Nodes that lag, and ranks of the other nodes that do; nproc: ranks of a node."""
    times, step_s = rank_times(facts), _step_s(facts)
    if times is None or not step_s:
        return []

    def of_nodes(column: Sequence[float]) -> list[float]:
        return [median(column[first : first + nproc]) for first in range(0, len(column), nproc)]

    parts = {part: of_nodes(column) for part, column in times.parts.items()}
    late = _late(RankTimes(parts, of_nodes(times.errors)), step_s)
    nodes = [Straggler(node=node, rank=None, **about) for node, about in late]
    named = {each.node for each in nodes}
    ranks = [
        Straggler(node=rank // nproc, rank=rank, **about)
        for rank, about in _late(times, step_s)
        if rank // nproc not in named
    ]
    return sorted([*nodes, *ranks], key=lambda each: -each.loss)[:MOST_NAMED]


def scores(values: Sequence[float], errors: Sequence[float]) -> list[float]:
    """The robust z of each: its distance from the median by the median distance, or by its own error if larger."""
    middle = median(values)
    deviation = MAD_TO_SD * median(abs(value - middle) for value in values)
    scale = max(deviation, LEAST_DEVIATION * abs(middle))
    scales = [max(scale, error) for error in errors]
    return [(value - middle) / each if each else 0.0 for value, each in zip(values, scales, strict=True)]


def _late(times: RankTimes, step_s: float) -> Iterator[tuple[int, dict[str, Any]]]:
    """The places of those that lag, and what `Straggler` says of each."""
    whole = times.whole
    if len(whole) < FEWEST:
        return
    middle = median(whole)
    medians = {part: median(column) for part, column in times.parts.items()}
    for place, score in enumerate(scores(whole, times.errors)):
        loss = (whole[place] - middle) / step_s
        if score >= LEAST_SCORE and loss >= LEAST_LOSS:
            part = max(PARTS, key=lambda name: times.parts[name][place] - medians[name])
            yield (
                place,
                {
                    "seconds": whole[place],
                    "median_s": middle,
                    "score": score,
                    "part": part,
                    "loss": loss,
                },
            )


def _step_s(facts: Mapping[str, Any]) -> float | None:
    """Mean seconds of a step, without evaluations and the saving of checkpoints."""
    steps, seconds = number_in(facts, "global_steps"), number_in(facts, "no_eval_time")
    return seconds / steps if steps and seconds and steps > 0 else None
