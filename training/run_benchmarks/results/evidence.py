"""Why a round failed: the rank that failed first, and its last words."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.frameworks.base import Framework
from run_benchmarks.results.last_sign import last_sign
from run_benchmarks.results.last_words import LONGEST_CAUSE, last_lines, last_words, text_of, to_the_point
from run_benchmarks.results.losses import GONE, host_lost, unit_gone
from run_benchmarks.results.remedies import remedy_of
from run_benchmarks.results.symptoms import (
    class_in,
    error_line_in,
    memory_kill_in,
    memory_use_in,
    no_room_in,
    was_killed,
)
from run_benchmarks.stages.watch import Ended, Lost, Outcome
from utils.node import rank_log_name, read_rank_ends, start_log_name
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.text_files import matching

MOST_SUSPECTS = 256  # of a node, whose logs are looked at
# What a task printed that ended before it had opened its log.
TASK_OUTPUT = "task_output.log"
SLOW_OR_HUNG = "see whether it hangs or is slow: docs/failures.md, deadline"
SLOW = "global rank 0 was silent for no longer than before: it is slow rather than hung: docs/failures.md, deadline"


@dataclass(frozen=True)
class NodeLogs:
    """A node of a round, where its logs lie, if they were collected, and what `hide`s secrets in them.

    controller: the log of the process that its task ends with, where that is no rank.
    """

    rank: int
    host: str
    folder: Path
    hide: Callable[[str], str] = str
    controller: str = ""


@dataclass(frozen=True)
class Suspect:
    """A rank that its launcher says failed by itself; or, where the launcher names none, a node's whole task.

    why_killed: what engine and kernel say of that, if they say anything. memory_use: and of the limit that was met.
    advice: what to do by who runs the tasks.
    """

    node: NodeLogs
    code: int
    rank: int | None
    rank_code: int | None
    tail: str
    log: Path
    why_killed: FailureClass | None = None
    memory_use: str = ""
    advice: str = ""

    @property
    def own_code(self) -> int | None:
        """The exit code of the rank, or of the task where no rank is named."""
        return self.code if self.rank is None else self.rank_code


@dataclass(frozen=True)
class Explanation:
    """Why tasks did not exit with 0; `note` where that does not touch the result."""

    failure: Failure | None
    note: str = ""


def explain(
    nodes: Sequence[NodeLogs], outcome: Outcome, framework: Framework, deadline_s: float
) -> Explanation:
    """The failure of a round whose tasks have ended; `deadline_s` is what they had."""
    if outcome.all_ended_well:
        return Explanation(None)
    suspects = _suspects(nodes, outcome, framework)
    if _only_aborted_at_exit(nodes, outcome, suspects, framework):
        ranks = ", ".join(str(suspect.rank) for suspect in suspects)
        return Explanation(None, f"rank {ranks} had finished and was aborted while its interpreter shut down")
    killed = (each for each in suspects if each.why_killed and was_killed(each.own_code, each.tail))
    primary = next(killed, None) or next(
        (each for each in suspects if not _only_lost_peer(each, framework)), None
    )
    lost = _lost(nodes, outcome)
    # A rank that failed by itself explains the others; one that only lost its peer does not.
    if primary and not (lost and (outcome.out_of_contact or _engine_failed_first(outcome))):
        return Explanation(_rank_failure(primary))
    if lost:
        return Explanation(lost)
    if outcome.timed_out:
        return Explanation(_timed_out(nodes, outcome, deadline_s))
    return Explanation(_rank_failure(primary or _gone_early(nodes) or suspects[0]))


def _engine_failed_first(outcome: Outcome) -> bool:
    """Whether an engine failed, or a task was removed, before any other task did: that is why they did."""
    ends = outcome.endings.values()
    failed = [each.at for each in ends if isinstance(each, Ended) and each.code != 0]
    lost = [each.at for each in ends if isinstance(each, Lost) and each.answered and each.cause]
    return bool(lost) and min(lost) <= min(failed, default=min(lost))


def _only_lost_peer(suspect: Suspect, framework: Framework) -> bool:
    return suspect.why_killed is None and framework.is_secondary_failure(suspect.tail)


def _gone_early(nodes: Sequence[NodeLogs]) -> Suspect | None:
    """The first rank that ended with 0 by itself, whose peers then lost it."""
    for node in nodes:
        for end in read_rank_ends(text_of(start_log_in(node.folder), node.hide)):
            if end.exit_code == 0 and not end.stopped:
                log = node.folder / rank_log_name(end.rank)
                return Suspect(node, 0, end.rank, 0, last_lines(text_of(log, node.hide)), log)
    return None


def _only_aborted_at_exit(
    nodes: Sequence[NodeLogs], outcome: Outcome, suspects: Sequence[Suspect], framework: Framework
) -> bool:
    """Whether every task ended, and those that did not end well fell over their interpreter's exit alone."""
    if outcome.timed_out or any(not isinstance(outcome.endings.get(n.rank), Ended) for n in nodes):
        return False
    return bool(suspects) and all(
        suspect.rank is not None and framework.aborted_at_exit(suspect.tail) for suspect in suspects
    )


def _suspects(nodes: Sequence[NodeLogs], outcome: Outcome, framework: Framework) -> list[Suspect]:
    """In the order in which their nodes' tasks ended, the rank that a launcher blames first."""
    ended = [
        (ending, node)
        for node in nodes
        if isinstance(ending := outcome.endings.get(node.rank), Ended) and ending.code != 0
    ]
    ended.sort(key=lambda item: item[0].at)
    return [suspect for ending, node in ended for suspect in _of_node(node, ending, framework)]


def start_log_of(framework: str, folder: Path) -> Path:
    """What a node's launcher wrote into its `folder`: every task's first step is to open it."""
    return folder / start_log_name(framework)


def start_log_in(folder: Path) -> Path:
    """The same, whatever the framework; a name that no file has where none was opened."""
    return next(iter(matching(folder, start_log_name("*"))), folder / "start_task.log")


def _of_node(node: NodeLogs, ending: Ended, framework: Framework) -> list[Suspect]:
    code = ending.code
    start_log, early_log = start_log_of(framework.name, node.folder), node.folder / TASK_OUTPUT
    text = text_of(start_log, node.hide)
    why = ending.cause if ending.cause is FailureClass.TASK_REMOVED else memory_kill_in(text) or ending.cause
    said = (why, memory_use_in(text), ending.remedy)
    if node.controller and (words := text_of(node.folder / node.controller, node.hide)):
        tail = last_words(words, framework) + no_room_in(text)
        return [Suspect(node, code, None, None, tail, node.folder / node.controller, *said)]
    # a rank ends once: what names it again is not the launcher's, and its log is not read again for it
    codes: dict[int, int] = {}
    for rank, rank_code in framework.failed_ranks(text):
        codes.setdefault(rank, rank_code)
    failed = list(codes.items())[:MOST_SUSPECTS]
    if not failed and not text and early_log.is_file():
        return [Suspect(node, code, None, None, last_lines(text_of(early_log, node.hide)), early_log, *said)]
    if not failed:
        return [Suspect(node, code, None, None, last_lines(text), start_log, *said)]
    logs = [node.folder / rank_log_name(rank) for rank, _ in failed]
    tails = [last_words(text_of(log, node.hide), framework) + no_room_in(text) for log in logs]
    return [
        Suspect(node, code, rank, rank_code, tail, log, *said)
        for (rank, rank_code), tail, log in zip(failed, tails, logs, strict=True)
    ]


def _rank_failure(suspect: Suspect) -> Failure:
    if suspect.rank is None:
        what = "search's controller" if suspect.node.controller else "task"
        message = f"the {what} on node rank {suspect.node.rank} {_end_by(suspect.code)}"
    else:
        message = f"rank {suspect.rank} {_end_by(suspect.rank_code)}"
    said = error_line_in(suspect.tail)
    if suspect.own_code == 0:
        message = f"{message} before its peers were done"
    elif said and not was_killed(suspect.own_code, ""):
        message = f"{message}: {suspect.node.hide(said)[:LONGEST_CAUSE]}"
    failure_class = _class_of(suspect)
    if failure_class in GONE:
        message = f"{GONE[failure_class]}: {message}"
    if failure_class is FailureClass.CONTAINER_OUT_OF_MEMORY and suspect.memory_use:
        message = f"{message}; {suspect.memory_use}"
    host = suspect.node.host
    return Failure(
        Verdict.FAILED,
        Stage.TRAIN,
        failure_class,
        host,
        message,
        to_the_point(suspect.tail),
        remedy_of(failure_class, host, suspect.log.name, suspect.tail, suspect.advice),
        below_run(suspect.log),
    )


def _end_by(code: int | None) -> str:
    """How a process ended, by its exit code: Python's -n and a shell's 128 + n are signal n."""
    try:
        name = signal.Signals(0 if code is None else -code if code < 0 else code - 128).name
    except ValueError:
        return f"ended with exit code {code}"
    return f"was ended by {name} (exit code {code})"


def below_run(log: Path) -> str:
    """A log of a node, relative to the run's folder: below it come the case, the round and the node."""
    return "/".join(log.parts[-4:])


def _class_of(suspect: Suspect) -> FailureClass:
    if suspect.why_killed and was_killed(suspect.own_code, suspect.tail):
        return suspect.why_killed
    by_default = FailureClass.RANK_KILLED if was_killed(suspect.own_code, "") else FailureClass.RANK_FAILED
    return class_in(suspect.tail) or by_default


def _lost(nodes: Sequence[NodeLogs], outcome: Outcome) -> Failure | None:
    """The failure of the first node that was lost, if one was."""
    for node in nodes:
        ending = outcome.endings.get(node.rank)
        if isinstance(ending, Lost) and ending.answered:
            return unit_gone(node.host, ending)
        if isinstance(ending, Lost):
            return host_lost(node.host, Stage.TRAIN, ending.message, ending.cause, ending.remedy)
        if node.rank in outcome.out_of_contact:
            return host_lost(node.host, Stage.TRAIN, outcome.out_of_contact[node.rank])
    return None


def _timed_out(nodes: Sequence[NodeLogs], outcome: Outcome, deadline_s: float) -> Failure:
    running = [node for node in nodes if node.rank not in outcome.endings]
    node = running[0] if running else nodes[0]
    # of the ranks on that node the first; where none had been started, what stands before them
    logs = matching(node.folder, "rank*.out.log") or matching(node.folder, start_log_name("*"))
    sign = last_sign(nodes[0].folder)
    return Failure(
        Verdict.TIMED_OUT,
        Stage.TRAIN,
        FailureClass.DEADLINE,
        node.host,
        f"not done after {deadline_s:g} s{sign and f': {sign}'}",
        to_the_point(last_lines(text_of(logs[0], node.hide))) if logs else "",
        f"{SLOW if outcome.goes_on else SLOW_OR_HUNG}, or raise CASE_DEADLINE_HOURS in test_conf.py",
        below_run(logs[0]) if logs else "",
    )
