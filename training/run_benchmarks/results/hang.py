"""Why a training hung: which of its ranks lag, by what each was doing when it was looked at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.frameworks.base import Framework
from run_benchmarks.names import home_of
from run_benchmarks.plan.redact import redact_tokens
from run_benchmarks.reading import object_in, parsed
from run_benchmarks.results.evidence import Explanation, NodeLogs, below_run, explain, start_log_of
from run_benchmarks.results.last_sign import last_sign
from run_benchmarks.stages.hang import Unseen
from run_benchmarks.stages.watch import Outcome
from utils.errors import FlagPerfError
from utils.node import RankEnd, read_rank_ends
from utils.numbers import whole
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.stacks import STACKS_FILE, STOPPED, RankState, read_stacks, record_name
from utils.text_files import end_of, last_lines_of, shortened

# As py-spy and faulthandler write where a thread begins.
THREAD = re.compile(r"(?:Current thread|Thread) \S+")
OUTERMOST = "<module> ("
# A frame in which a rank waits for its peers, or for a device that may: PyTorch's and PaddlePaddle's collectives, the
# driver's own, a backward pass (in which DDP reduces), a wait for the device.
COLLECTIVE = re.compile(
    r" \(\S*/(torch|paddle)/distributed/| \(\S*/deepspeed/comm/| \(\S*/horovod/| \(\S*/driver/(\w+/)?process_group\.py:"
    r"|^_engine_run_backward \(|^synchronize \(\S*/(torch\w*|paddle)/"
)
INNERMOST = 4  # frames that say what a rank is in: above them stands what has called it
SHOWN_FRAMES, SHOWN_RANKS = 8, 6
# PyTorch sorts a record's keys: behind this one, which has a hundred bytes of each process group, stands its version
# alone, before it stands all that was recorded.
GROUPS, END_OF_RECORD = '"pg_status":', 2**16
ALL_RANKS = "0"
LONGEST_FRAME = 400  # characters
WHO_STOPS = (
    "see on {host} who stopped it: a batch system that suspends jobs, a debugger, somebody's `kill -STOP` (`last`); it "
    "has been ended since, and while a training still runs, `kill -CONT` and the process's number let it go on"
)


@dataclass(frozen=True)
class Rank:
    """A rank that was looked at: the frames of its main thread, the innermost first; or one that had ended by then.

    begun: how many collectives of all ranks it had begun, by PyTorch's flight recorder; None where that says nothing.
    """

    node: NodeLogs
    number: int
    state: RankState | None = None
    frames: tuple[str, ...] = ()
    begun: int | None = None
    end: RankEnd | None = None

    @property
    def name(self) -> str:
        """Its number, and where it is."""
        return f"rank {self.number} on {self.node.host}"

    @property
    def place(self) -> str:
        """What its main thread is in."""
        return f"is in {self.frames[0]}" if self.frames else "has shown no stack"

    @property
    def is_in_collective(self) -> bool:
        """Whether it waits for its peers, as far as its stack says."""
        return any(COLLECTIVE.search(frame) for frame in self.frames[:INNERMOST])

    @property
    def is_stopped(self) -> bool:
        """Whether somebody keeps it from running."""
        return self.end is None and self.state is not None and self.state.state in STOPPED

    def gone(self) -> str:
        """Why it does nothing any more; empty where it lives."""
        if self.end:
            return f"had ended with exit code {self.end.exit_code}"
        return "is stopped (by SIGSTOP, say, or a debugger)" if self.is_stopped else ""

    def lines(self) -> Iterator[str]:
        """What it was doing."""
        if self.state is None:
            return
        state = f"process {self.state.pid}, state {self.state.state} {self.state.wchan}".rstrip()
        yield f"{self.name} ({state}), {self.state.source or self.state.problem}:"
        yield from (f"    {frame}" for frame in self.frames[:SHOWN_FRAMES])


@dataclass(frozen=True)
class _Status:
    last_enqueued_collective: str


@dataclass(frozen=True)
class _Record:
    """What a flight recorder has of each process group, by its number; 0 is that of all ranks."""

    pg_status: dict[str, _Status]


def explained(
    nodes: Sequence[NodeLogs], outcome: Outcome, framework: Framework, deadline_s: float
) -> Explanation:
    """Why a round's tasks did not all end with 0: as `explain`, also where its training was taken for hung."""
    if outcome.hung_s is None:
        return explain(nodes, outcome, framework, deadline_s)
    return Explanation(hang(nodes, outcome, framework.name))


def hang(nodes: Sequence[NodeLogs], outcome: Outcome, framework: str) -> Failure:
    """The failure of a round whose training was silent for `outcome.hung_s` seconds."""
    ranks = [rank for node in nodes for rank in _ranks(node, framework)]
    unseen = {node: outcome.unseen[node.rank] for node in nodes if node.rank in outcome.unseen}
    laggards, why_none = lagging(ranks, others_unseen=bool(unseen))
    suspects = [*(rank.node for rank in laggards), *unseen]
    first = suspects[0] if suspects else nodes[0]
    sentences = [f"{rank.name} {why}" for rank, why in laggards.items()]
    sentences += [
        f"on {node.host} nothing could be looked at: {_why(node, each)}" for node, each in unseen.items()
    ]
    more = len(sentences) - SHOWN_RANKS
    sentences = [*sentences[:SHOWN_RANKS], *([f"and {more} more"] if more > 0 else [])]
    sign = last_sign(nodes[0].folder)
    limit = outcome.hang_limit and f", longer than {outcome.hang_limit}"
    silence = f"the training reported nothing for {outcome.hung_s:.0f} s{limit}{sign and f' ({sign})'}"
    waiting = [rank for rank in ranks if rank.frames and rank not in laggards]
    shown = [*list(laggards)[:SHOWN_RANKS], *(waiting[:1] if suspects else ranks[:SHOWN_RANKS])]
    stacks = first.folder / STACKS_FILE
    return Failure(
        Verdict.FAILED,
        Stage.TRAIN,
        FailureClass.COLLECTIVE_HANG,
        first.host,
        f"{silence}: {'; '.join(sentences) or f'which rank lags cannot be told: {why_none}'}",
        "\n".join(line for rank in shown for line in rank.lines()),
        _remedy(next(iter(laggards), None), next(iter(unseen.values()), None)),
        below_run(stacks) if stacks.is_file() else "",
    )


def _why(node: NodeLogs, unseen: Unseen) -> str:
    """What was said where a node's ranks could not be looked at: an engine's own words stand last."""
    words = next(reversed(unseen.message.strip().splitlines()), "")
    return shortened(node.hide(redact_tokens(words)), LONGEST_FRAME)


def _remedy(laggard: Rank | None, unseen: Unseen | None) -> str:
    if laggard is not None and laggard.is_stopped:
        return f"{WHO_STOPS.format(host=laggard.node.host)}; see docs/failures.md, collective_hang"
    stacks = f"read {STACKS_FILE} in each node's folder, and see docs/failures.md, collective_hang"
    if laggard is None and unseen is not None:
        return "; ".join(filter(None, (unseen.remedy, stacks)))
    return f"{stacks}; a training that only reports more rarely needs a longer HANG_TIMEOUT in test_conf.py"


def lagging(ranks: Sequence[Rank], *, others_unseen: bool = False) -> tuple[dict[Rank, str], str]:
    """The ranks that hold up the others, and why each is one of them; or none, and why that cannot be told.

    others_unseen: there are more ranks, which could not be looked at: those that were may all wait for one of them.
    """
    gone = {rank: rank.gone() for rank in ranks if rank.gone()}
    if gone or others_unseen:
        return gone, ""
    begun = {rank: rank.begun for rank in ranks if rank.begun is not None}
    most = max(begun.values(), default=0)
    behind = {rank: count for rank, count in begun.items() if count < most}
    if behind:
        words = "{} and had begun {} collectives, others {}"
        return {rank: words.format(rank.place, count, most) for rank, count in behind.items()}, ""
    seen = [rank for rank in ranks if rank.frames]
    others = [rank for rank in seen if not rank.is_in_collective]
    if not seen:
        return {}, "there are no stacks of any"
    if not others:
        return {}, "all whose stacks are there wait for their peers"
    if len(others) == len(seen):
        return {}, "none whose stack is there is in a collective"
    return {rank: f"{rank.place} while others are in a collective" for rank in others}, ""


def _ranks(node: NodeLogs, framework: str) -> Iterator[Rank]:
    """The ranks of a node: those that had ended before any was looked at, then those that were.

    While the round is ended a rank may fail that has lost its peer; one that had failed before would have ended it.
    """
    looked_at = read_stacks("\n".join(_lines(node.folder / STACKS_FILE)))
    alive = {state.rank for state, _ in looked_at}
    for end in read_rank_ends("\n".join(_lines(start_log_of(framework, node.folder)))):
        if end.exit_code == 0 and not end.stopped and end.rank not in alive:
            yield Rank(node, end.rank, end=end)
    for state, lines in looked_at:
        begun = _begun(node.folder / record_name(state.rank))
        yield Rank(node, state.rank, state, main_thread(lines, node.hide), begun)


def _begun(path: Path) -> int | None:
    """How many collectives of all ranks a rank had begun, by the end of its record."""
    try:
        end = end_of(path, END_OF_RECORD, home_of(path))
        _, _, groups = end.decode("utf-8", "replace").rpartition(GROUPS)
        record = parsed(_Record, object_in(f"{{{GROUPS}{groups}", path.name), path.name)
    except FlagPerfError:  # it stands in a task's folder: whatever it is, stacks say something too
        return None
    status = record.pg_status.get(ALL_RANKS)
    return whole(status.last_enqueued_collective) if status else None


def _lines(path: Path) -> list[str]:
    try:
        return last_lines_of(path, home_of(path))
    except FlagPerfError:  # it is not there; what could not be taken or collected stands in the round's notes
        return []


def main_thread(lines: Iterable[str], hide: Callable[[str], str] = str) -> tuple[str, ...]:
    """The frames of a process's main thread, the innermost first, as `function (file:line)`."""
    threads: list[list[str]] = [[]]
    for line in lines:
        if THREAD.match(line):
            threads.append([])
        elif len(line) < 10 * LONGEST_FRAME and (frame := _frame(line)):
            threads[-1].append(shortened(hide(redact_tokens(frame)), LONGEST_FRAME))
    main = next((each for each in threads if each and each[-1].startswith(OUTERMOST)), None)
    return tuple(main or threads[-1])


def _frame(line: str) -> str:
    """`function (file:line)` of an indented line of py-spy's or faulthandler's; empty where it tells of no frame.

    In time that grows with its length alone: a task can write any line.
    """
    text = line.lstrip()
    if text.startswith('File "'):
        file, _, rest = text[len('File "') :].rpartition('", line ')
        number, _, function = rest.partition(" in ")
    else:
        function, _, place = text.rpartition(" (")
        file, _, end = place.rpartition(":")
        number = end[:-1] if end.endswith(")") else ""
    is_frame = text != line and function and file and number.isdecimal()
    return f"{function} ({file}:{number})" if is_frame else ""
