"""A training that makes no progress: noticed by what rank 0 reports, and looked at before anything is ended."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from run_benchmarks.names import Node
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.fan_out import errors_of, on_all
from run_benchmarks.transports.base import Transport
from utils import stacks
from utils.errors import FlagPerfError

# All of a node's stacks take so long at most; the command that fetches them a little longer.
STACKS_LIMIT_S, COMMAND_LIMIT_S = 20, 30.0
# So long after contact is back what rank 0 reported meanwhile may take to be read.
CATCH_UP_S = 10.0
# A look that comes later than planned by more was held up: the controller did not run, as in a job that is suspended.
LONGEST_DELAY_S = 10.0


@dataclass(frozen=True)
class Unseen:
    """A node whose ranks could not be looked at: `message` says why, in the words of who was asked."""

    message: str
    remedy: str = ""


@dataclass
class HangWatch:
    """Says when a training hangs.

    Args:
        progressed_at: when (monotonic) rank 0 last reported anything; None where it never has.
        limit_s: the silence after which it hangs; None where it is not to be taken for hung.
        setting_s: HANG_TIMEOUT, if that decides.
        look: keeps what its ranks are doing; the nodes, by rank, that could not be looked at.
        is_suspended: whether a scheduler lets the training stand still.
        paused: is told between which times (monotonic) the controller or the training stood still.
        unseen: these, as of the last look.
        stood_still_s: so long the controller itself did.
    """

    progressed_at: Callable[[], float | None] = lambda: None
    limit_s: Callable[[], float | None] = lambda: None
    look: Callable[[], Awaitable[Mapping[int, Unseen]]] | None = None
    setting_s: float | None = None
    is_suspended: Callable[[], bool] = lambda: False
    paused: Callable[[float, float], None] = lambda since, until: None
    unseen: Mapping[int, Unseen] = field(default_factory=dict)
    stood_still_s: float = 0.0
    _contact_since: float | None = float("-inf")
    _was_suspended: bool = False

    def note_contact(self, there: bool) -> None:
        """Contact with node 0 is lost or back: what rank 0 reported meanwhile is read only then."""
        self._contact_since = time.monotonic() + CATCH_UP_S if there else None

    def note_pause(self, passed_s: float, planned_s: float) -> bool:
        """Between two looks so much time has passed, and was to; whether the controller stood still meanwhile.

        What it or the training stood still is none of the training's silence.
        """
        held_up_s, is_suspended = passed_s - planned_s, self.is_suspended()
        stood_still = held_up_s > LONGEST_DELAY_S
        if stood_still:
            LOGGER.warning(
                f"the controller stood still for {held_up_s:.0f} s: that is no silence of the training's"
            )
            self.stood_still_s += held_up_s
            self._leave_out(held_up_s + CATCH_UP_S)
        elif is_suspended:  # which is noticed some seconds late
            self._leave_out(passed_s if self._was_suspended else passed_s + CATCH_UP_S)
        if stood_still or is_suspended:
            now = time.monotonic()
            self.paused(now - passed_s, now)
        self._was_suspended = is_suspended
        return stood_still

    def _leave_out(self, seconds: float) -> None:
        """Count the silence as that much shorter."""
        if self._contact_since is not None:
            reported = self.progressed_at()
            since = self._contact_since if reported is None else max(reported, self._contact_since)
            self._contact_since = since + seconds

    def silence_s(self) -> float | None:
        """For how long the training has been silent, if that is too long."""
        reported, limit = self.progressed_at(), self.limit_s()
        if reported is None or limit is None or self._contact_since is None:
            return None
        silence = time.monotonic() - max(reported, self._contact_since)
        return silence if silence > limit else None

    def limit_text(self) -> str:
        """The silence after which it hangs, and what decides that."""
        if self.setting_s is not None:
            return f"HANG_TIMEOUT = {self.setting_s:g} s in test_conf.py"
        return f"the {self.limit_s() or 0:.0f} s that follow from its pace (HANG_TIMEOUT is not set)"

    async def confirmed(self, still_in_contact: Callable[[], Awaitable[bool]]) -> float | None:
        """The silence in seconds of a training that hangs, once it has been looked at; one may go on meanwhile."""
        if self.silence_s() is None:
            return None
        if not await still_in_contact():  # nobody has noticed yet
            self.note_contact(True)
        silence = self.silence_s()
        if silence is None:
            return None
        LOGGER.warning(
            f"the training has reported nothing for {silence:.0f} s, longer than {self.limit_text()}: "
            "looking what its ranks are doing"
        )
        if self.look is not None:
            self.unseen = await self.look()
        if self.silence_s() is None:
            LOGGER.warning("the training goes on")
            return None
        return silence


async def keep_stacks(
    runtime: Runtime,
    transports: Mapping[str, Transport],
    units: Mapping[int, str],
    log_dirs: Mapping[int, str],
    nodes: Sequence[Node],
) -> dict[Node, FlagPerfError]:
    """Let every node write the stacks of its ranks into its folder; those nodes that could not, and why.

    Args:
        transports: by host. units, log_dirs: by node rank, the task's unit and the folder as it sees it.
    """
    program = Path(stacks.__file__).read_bytes()

    async def keep(node: Node) -> None:
        words = (log_dirs[node.rank], str(STACKS_LIMIT_S))
        transport = transports[node.host]
        await runtime.run_inside(transport, units[node.rank], program, *words, timeout=COMMAND_LIMIT_S)

    return errors_of(await on_all(nodes, keep))
