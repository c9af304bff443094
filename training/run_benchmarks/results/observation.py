"""What the controller saw of a round: `round.json`. With it, the plan and the nodes' logs a round is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from run_benchmarks.results.round_result import SCHEMA, RoundResult
from run_benchmarks.stages.watch import Outcome
from utils.figures import DEFINITIONS, Figure
from utils.records import Failure, Stage


@dataclass(frozen=True)
class Observation:
    """A round as the controller saw it; what happened on its nodes stands in their logs.

    hosts: by node rank. time_s: from its start until its logs were home; None where that is not known.
    failure: what went wrong outside the tasks. outcome: how these ended; None where they were never waited for.
    times: seconds by stage. image, images: the image's name, and host -> its ID.
    lost: hosts that went out of reach. not_collected: node ranks whose logs still lie on their host.
    continue_from: the uid of the run that the round was to go on from, or empty.
    """

    case: str
    round: int
    hosts: tuple[str, ...]
    started: str
    time_s: float | None
    failure: Failure | None = None
    outcome: Outcome | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    image: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    not_collected: tuple[int, ...] = ()
    continue_from: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The observation as plain data, for `round.json`."""
        failure = None if self.failure is None else self.failure.as_dict()
        return {"schema": SCHEMA, **asdict(self), "failure": failure}

    def round_time(self) -> Figure:
        """The controller's own figure."""
        return DEFINITIONS["round_time"].figure(self.time_s, "the controller's clock")


def observation_in(result: RoundResult) -> Observation:
    """What a result tells of what the controller saw, for rounds that have no `round.json` (schema 1).

    A failure that judging gave is not among it.
    """
    failure = result.failure
    return Observation(
        case=result.case,
        round=result.round,
        hosts=result.hosts,
        started=result.started,
        time_s=result.figures["round_time"].value if "round_time" in result.figures else None,
        failure=None if failure and failure.stage is Stage.JUDGE else failure,
        times=result.times,
        image=result.image,
        images=result.images,
        continue_from=str((result.continued or {}).get("run") or ""),
    )
