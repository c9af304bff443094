"""Why a round failed: the rank that failed first, and its last words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.frameworks.base import Framework
from run_benchmarks.names import Node
from run_benchmarks.stages.watch import Ended, Lost, Outcome
from utils.rank import rank_log_name
from utils.records import Failure, FailureClass, Stage, Verdict

EVIDENCE_LINES = 30
OUT_OF_MEMORY = ("out of memory", "outofmemory", "cannot allocate memory", "oom-kill")
KILLED = (-9, 137)


@dataclass(frozen=True)
class Suspect:
    """A node whose task failed, with the rank that its launcher blames."""

    node: Node
    code: int
    rank: int | None
    rank_code: int | None
    tail: str
    log: Path


def explain(
    nodes: Sequence[Node], folders: Mapping[int, Path], outcome: Outcome, framework: Framework
) -> Failure | None:
    """The failure of a round whose tasks have ended; None where all of them exited with 0."""
    if outcome.all_ended_well:
        return None
    suspects = _suspects(nodes, folders, outcome, framework)
    primary = [suspect for suspect in suspects if not framework.is_secondary_failure(suspect.tail)]
    lost = _lost(nodes, outcome)
    # A rank that failed by itself explains the others; one that only lost its peer does not.
    if primary and (not lost or not outcome.out_of_contact):
        return _rank_failure(primary[0])
    if lost:
        return lost
    if outcome.timed_out:
        return _timed_out(nodes, folders, outcome)
    return _rank_failure((primary or suspects)[0])


def _suspects(
    nodes: Sequence[Node], folders: Mapping[int, Path], outcome: Outcome, framework: Framework
) -> list[Suspect]:
    ended = [
        (ending.at, node, ending.code)
        for node in nodes
        if isinstance(ending := outcome.endings.get(node.rank), Ended) and ending.code != 0
    ]
    ended.sort(key=lambda item: item[0])
    return [_suspect(node, code, folders.get(node.rank), framework) for _, node, code in ended]


def _suspect(node: Node, code: int, folder: Path | None, framework: Framework) -> Suspect:
    start_log = (folder or Path()) / f"start_{node.case.settings.framework_name}_task.log"
    text = _text(start_log)
    blamed = framework.failed_rank(text)
    if blamed is None or folder is None:
        return Suspect(node, code, None, None, _last_lines(text), start_log)
    rank_log = folder / rank_log_name(blamed[0])
    return Suspect(node, code, blamed[0], blamed[1], _last_lines(_text(rank_log)), rank_log)


def _rank_failure(suspect: Suspect) -> Failure:
    if suspect.rank is None:
        message = f"the task on node rank {suspect.node.rank} ended with exit code {suspect.code}"
    else:
        message = f"rank {suspect.rank} ended with exit code {suspect.rank_code}"
    return Failure(
        Verdict.FAILED,
        Stage.TRAIN,
        _class_of(suspect),
        suspect.node.host,
        message,
        suspect.tail,
        f"read {suspect.log.name} in the node's folder",
    )


def _class_of(suspect: Suspect) -> FailureClass:
    lowered = suspect.tail.lower()
    if any(text in lowered for text in OUT_OF_MEMORY):
        return FailureClass.OUT_OF_MEMORY
    return FailureClass.RANK_KILLED if suspect.rank_code in KILLED else FailureClass.RANK_FAILED


def _lost(nodes: Sequence[Node], outcome: Outcome) -> Failure | None:
    errors = dict(outcome.out_of_contact)
    errors.update({rank: end.error for rank, end in outcome.endings.items() if isinstance(end, Lost)})
    for node in nodes:
        if node.rank in errors:
            return host_lost(node.host, Stage.TRAIN, errors[node.rank].message)
    return None


def host_lost(host: str, stage: Stage, message: str) -> Failure:
    """The failure of a round in which `host` was not reached any more."""
    return Failure(
        Verdict.UNREACHABLE,
        stage,
        FailureClass.HOST_UNREACHABLE,
        host,
        "the host is out of reach",
        message,
        f"check {host}; its containers may still run: `run.py cleanup` removes them once it is back",
    )


def _timed_out(nodes: Sequence[Node], folders: Mapping[int, Path], outcome: Outcome) -> Failure:
    running = [node for node in nodes if node.rank not in outcome.endings]
    node = running[0] if running else nodes[0]
    folder = folders.get(node.rank)
    logs = sorted(folder.glob("rank*.out.log")) if folder else []
    return Failure(
        Verdict.TIMED_OUT,
        Stage.TRAIN,
        FailureClass.DEADLINE,
        node.host,
        f"not done after {node.case.deadline_s:g} s",
        _last_lines(_text(logs[0])) if logs else "",
        "raise the case's deadline in test_conf.py, or see why it is slow",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-EVIDENCE_LINES:])
