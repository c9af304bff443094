"""Which ranks of a hung training lag. Stacks as torch 2.13 on two ranks with gloo left them, under other paths."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results.evidence import NodeLogs
from run_benchmarks.results.hang import hang, main_thread
from run_benchmarks.results.last_words import cause_in
from run_benchmarks.stages.hang import Unseen
from run_benchmarks.stages.watch import Outcome
from tests.run_benchmarks.builders import conclude, make_case, observed, training_events, write_rank_log
from utils.node import RankEnd
from utils.records import Failure, FailureClass, Verdict
from utils.stacks import STACKS_FILE, RankState, record_name

# A rank in DDP's backward pass, and one that waits for its data: by py-spy ...
BACKWARD = """\
Process 25671: /opt/venv/bin/python -u train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 25671 (idle): "MainThread"
    _engine_run_backward (/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py:979)
    backward (/opt/venv/lib/python3.11/site-packages/torch/autograd/__init__.py:395)
    Tensor.backward (/opt/venv/lib/python3.11/site-packages/torch/_tensor.py:623)
    train (/data/toy/train.py:15)
    <module> (/data/toy/train.py:17)
Thread 25680 (idle): "Thread-1 (sleep)"
    Thread.run (/usr/lib/python3.11/threading.py:982)
    Thread._bootstrap_inner (/usr/lib/python3.11/threading.py:1045)
    Thread._bootstrap (/usr/lib/python3.11/threading.py:1002)
"""
DATA = """\
Process 25673: /opt/venv/bin/python -u train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 25673 (idle): "MainThread"
    next_batch (/data/toy/train.py:10)
    train (/data/toy/train.py:14)
    <module> (/data/toy/train.py:17)
"""
ALL_REDUCE = """\
Thread 11536 (idle): "MainThread"
    all_reduce (/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:3252)
    _exception_logger.<locals>.wrapper (/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py:83)
    train (/data/toy/train.py:22)
    <module> (/data/toy/train.py:31)
"""
# ... and by faulthandler, to which PyTorch's own words may be added.
BACKWARD_BY_ITSELF = """\
Thread 0x00007f430ac3f000 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run
  File "/usr/lib/python3.11/threading.py", line 1045 in _bootstrap_inner
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f430ac3fb80 (most recent call first):
  File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 979 in _engine_run_backward
  File "/opt/venv/lib/python3.11/site-packages/torch/autograd/__init__.py", line 395 in backward
  File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 623 in backward
  File "/data/toy/train.py", line 15 in train
  File "/data/toy/train.py", line 17 in <module>
[W1122 21:42:49.645207554 TCPStore.cpp:340] [c10d] TCP client failed: Interrupted system call
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7f1871579b8d in /opt/venv/lib/libc10.so)
"""
DATA_BY_ITSELF = """\
Current thread 0x00007fb9a8a35b80 (most recent call first):
  File "/data/toy/train.py", line 10 in next_batch
  File "/data/toy/train.py", line 14 in train
  File "/data/toy/train.py", line 17 in <module>
"""
DRIVER = """\
Thread 1 (idle): "MainThread"
    wait (/flagperf/training/benchmarks/driver/process_group.py:47)
    loss (/flagperf/training/benchmarks/driver/engine.py:98)
    <module> (/flagperf/training/benchmarks/driver/run_pretraining.py:18)
"""
AMBIGUOUS = "  " + " " * 1300 + " (" * 650 + ":1" * 650  # of a frame: where is its function, its file?
SILENCE = "the training reported nothing for 312 s, longer than HANG_TIMEOUT = 300 s in test_conf.py"
HUNG = Outcome({}, False, {}, hung_s=312.4, hang_limit="HANG_TIMEOUT = 300 s in test_conf.py")


def node_of(folder: Path, rank: int, *ranks: tuple[int, str, str]) -> NodeLogs:
    """A node's logs, with the stacks of `ranks`: number, state, stacks."""
    place = folder / f"h{rank + 1}_noderank{rank}"
    place.mkdir(parents=True)
    texts = []
    for number, state, text in ranks:
        about = RankState(
            number, 100 + number, state, "futex_wait", "py-spy" if text else "", "" if text else "why"
        )
        texts += [about.line(), *(f"  {line}" for line in text.splitlines())]
    (place / STACKS_FILE).write_text("\n".join(texts) + "\n")
    return NodeLogs(rank, f"h{rank + 1}", place)


def failure_of(*nodes: NodeLogs) -> Failure:
    return hang(nodes, HUNG, "pytorch")


@pytest.mark.parametrize(
    ("waits", "data"),
    [(BACKWARD, DATA), (BACKWARD_BY_ITSELF, DATA_BY_ITSELF), (DRIVER, DATA), (ALL_REDUCE, DATA)],
)
def test_the_rank_that_is_not_in_a_collective_lags(waits: str, data: str, tmp_path: Path) -> None:
    nodes = node_of(tmp_path, 0, (0, "S", waits), (1, "S", waits)), node_of(tmp_path, 1, (2, "S", data))
    failure = failure_of(*nodes)
    assert (failure.verdict, failure.failure_class) == (Verdict.FAILED, FailureClass.COLLECTIVE_HANG)
    assert failure.host == "h2"
    sentence = "rank 2 on h2 is in next_batch (/data/toy/train.py:10) while others are in a collective"
    assert failure.message == f"{SILENCE} ({SIGN}): {sentence}"
    lines = failure.evidence.splitlines()
    assert lines[:2] == [
        "rank 2 on h2 (process 102, state S futex_wait), py-spy:",
        "    next_batch (/data/toy/train.py:10)",
    ]
    assert "rank 0 on h1 (process 100, state S futex_wait), py-spy:" in lines  # one of those that wait
    assert failure.file.endswith(f"h2_noderank1/{STACKS_FILE}")
    assert cause_in(failure) == ""  # no line of it is a rank's last word


SIGN = "the task was launched, but global rank 0 had not been started"


def test_a_rank_that_is_stopped_lags_whatever_it_is_in(tmp_path: Path) -> None:
    failure = failure_of(node_of(tmp_path, 0, (0, "S", DATA), (1, "T", BACKWARD)))
    assert failure.message.endswith(": rank 1 on h1 is stopped (by SIGSTOP, say, or a debugger)")
    assert failure.remedy.startswith("see on h1 who stopped it: ")
    assert "HANG_TIMEOUT" not in failure.remedy


# As Docker 20.10 said it of a container under `docker pause`.
PAUSED = Unseen(
    "exit code 1: docker exec --interactive run1-task python3 -I - /logs 20\nError response from daemon: "
    "Container run1-task is paused, unpause the container before exec",
    "somebody has paused its container",
)


@pytest.mark.parametrize("seen", [((0, "S", DATA),), ((0, "S", BACKWARD), (1, "S", DATA))])
def test_who_could_not_be_looked_at_is_the_suspect(seen: tuple[Any, ...], tmp_path: Path) -> None:
    """Whatever those do that could be: they may wait for it."""
    nodes = node_of(tmp_path, 0, *seen), NodeLogs(1, "h2", tmp_path / "h2_noderank1")
    failure = hang(nodes, replace(HUNG, unseen={1: PAUSED}), "pytorch")
    assert failure.host == "h2"
    words = "Container run1-task is paused, unpause the container before exec"
    assert failure.message.endswith(
        f": on h2 nothing could be looked at: Error response from daemon: {words}"
    )
    assert failure.remedy.startswith("somebody has paused its container; read stacks.log ")


def test_a_rank_that_is_stopped_is_named_before_who_could_not_be_looked_at(tmp_path: Path) -> None:
    nodes = node_of(tmp_path, 0, (0, "T", DATA)), NodeLogs(1, "h2", tmp_path / "h2_noderank1")
    failure = hang(nodes, replace(HUNG, unseen={1: PAUSED}), "pytorch")
    assert failure.host == "h1"
    assert "rank 0 on h1 is stopped" in failure.message and "on h2 nothing could be" in failure.message


def test_a_rank_that_had_ended_lags(tmp_path: Path) -> None:
    """One that ends too early with 0 fails no launcher; those that end when the round is ended are no such ranks."""
    node = node_of(tmp_path, 0, (0, "S", BACKWARD), (2, "S", BACKWARD))
    ends = RankEnd(1, 1, 0, False), RankEnd(2, 2, 1, False), RankEnd(0, 0, -15, True)
    (node.folder / "start_pytorch_task.log").write_text("".join(f"{end.line()}\n" for end in ends))
    assert failure_of(node).message.endswith(": rank 1 on h1 had ended with exit code 0")


def record(node: NodeLogs, rank: int, begun: object, before: str = "") -> None:
    """What PyTorch's flight recorder writes of a rank, shortened, with something before the groups."""
    status = {
        "last_completed_collective": "5",
        "last_enqueued_collective": begun,
        "last_started_collective": "-1",
    }
    content = {
        "entries": [before],
        "pg_config": {"": {"ranks": "[0, 1]"}},
        "pg_status": {"0": status},
        "version": "2.10",
    }
    (node.folder / record_name(rank)).write_text(json.dumps(content))


def test_a_rank_that_has_begun_fewer_collectives_lags_whatever_its_stack_says(tmp_path: Path) -> None:
    """With NCCL all may wait for their devices."""
    node = node_of(tmp_path, 0, *((rank, "S", DATA) for rank in range(3)))
    for rank, begun in enumerate(("6", "5", "6")):
        record(node, rank, begun)
    place = "is in next_batch (/data/toy/train.py:10)"
    assert failure_of(node).message.endswith(f": rank 1 on h1 {place} and had begun 5 collectives, others 6")


def test_of_a_record_of_any_size_the_end_is_read(tmp_path: Path) -> None:
    """A recorder keeps as many collectives as its user wants; what a task writes there costs no more to read."""
    node = node_of(tmp_path, 0, (0, "S", DATA), (1, "S", DATA))
    record(node, 0, "6", '"pg_status":{' + "x" * 2**25)
    record(node, 1, "5")
    assert "rank 1 on h1 is in" in failure_of(node).message
    groups = {str(group): {"last_enqueued_collective": "7"} for group in range(2000)}
    (node.folder / record_name(0)).write_text(json.dumps({"pg_status": groups}))
    assert failure_of(node).message.endswith("none whose stack is there is in a collective")


@pytest.mark.parametrize("begun", ["many", "-1e9", 5, None, [], "9" * 40])
def test_a_record_that_is_none_says_nothing(begun: object, tmp_path: Path) -> None:
    node = node_of(tmp_path, 0, (0, "S", BACKWARD), (1, "S", DATA))
    record(node, 0, "6")
    record(node, 1, begun)
    assert failure_of(node).message.endswith("while others are in a collective")


@pytest.mark.parametrize(
    ("stacks", "why"),
    [
        ((BACKWARD, BACKWARD), "all whose stacks are there wait for their peers"),
        ((DATA, DATA), "none whose stack is there is in a collective"),
        (("", ""), "there are no stacks of any"),
    ],
)
def test_it_says_so_where_it_cannot_be_told(stacks: tuple[str, str], why: str, tmp_path: Path) -> None:
    failure = failure_of(node_of(tmp_path, 0, *((rank, "S", text) for rank, text in enumerate(stacks))))
    assert "which rank lags cannot be told" in failure.message
    assert failure.message.endswith(why)
    assert failure.evidence.startswith("rank 0 on h1 (process 100, state S futex_wait), ")


def test_of_many_that_lag_some_are_named(tmp_path: Path) -> None:
    failure = failure_of(node_of(tmp_path, 0, *((rank, "T", DATA) for rank in range(100))))
    assert failure.message.count(" is stopped") == 6
    assert failure.message.endswith("; and 94 more")


def test_without_any_stacks_it_is_a_hang_all_the_same(tmp_path: Path) -> None:
    failure = failure_of(NodeLogs(0, "h1", tmp_path / "h1_noderank0"))
    assert "there are no stacks of any" in failure.message
    assert failure.file == ""


def test_what_a_task_writes_into_its_stacks_is_bounded_and_freed_of_secrets() -> None:
    lines = [
        f"    f (/data/{'x' * 100_000}:1)",
        f"    g (/data/{'y' * 3000}:2)",
        "    h (/data/hunter2.py:3)",
    ]
    frames = main_thread(lines, lambda text: text.replace("hunter2", "***"))
    assert len(frames) == 2
    assert len(frames[0]) < 500
    assert frames[1] == "h (/data/***.py:3)"


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("    f (a) (/data/b (c):d.py:3)", "f (a) (/data/b (c):d.py:3)"),
        ('  File "/data/a", line 1 in b.py", line 2 in f in g', 'f in g (/data/a", line 1 in b.py:2)'),
        ("f (/data/b.py:3)", ""),
        ("    f (/data/b.py:3", ""),
        ("    f (/data/b.py)", ""),
        ("    f (:3)", ""),
        ('  File "/data/a", line ??? in f', ""),
        ('  File "/data/a", line 3', ""),
        ("  ", ""),
    ],
)
def test_what_is_a_frame(line: str, frame: str) -> None:
    assert main_thread([line]) == ((frame,) if frame else ())


@pytest.mark.parametrize(
    ("line", "frames"), [(AMBIGUOUS, 0), (f"{AMBIGUOUS})", 1000), ('  File "' + '", line 1 in ' * 300, 0)]
)
def test_a_line_that_could_be_cut_in_many_places_is_looked_at_once(line: str, frames: int) -> None:
    """Where every cut is tried, one such line takes a minute, in which nothing else of the controller goes on."""
    assert len(main_thread([line] * 1000)) == frames


def test_a_round_is_judged_by_it(tmp_path: Path) -> None:
    """Whatever rank 0 had reported by then; and what was seen can be read again."""
    case = make_case(["h1"])
    node = node_of(tmp_path, 0, (0, "T", DATA))
    write_rank_log(node.folder, training_events()[:3])
    result = conclude(case, replace(observed(case), outcome=HUNG), tmp_path)
    assert result.verdict is Verdict.FAILED
    assert result.failure is not None
    assert result.failure.failure_class is FailureClass.COLLECTIVE_HANG
    assert "the last event of global rank 0 was STEP_END, step 1" in result.failure.message
    assert json.loads((tmp_path / "round.json").read_text())["outcome"]["hung_s"] == 312.4
