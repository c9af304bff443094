"""Why a round failed, by what launcher and ranks really wrote (frameworks/data) and how the tasks ended."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from run_benchmarks.frameworks import open_framework
from run_benchmarks.results import last_words
from run_benchmarks.results.evidence import Explanation, NodeLogs, explain
from run_benchmarks.results.last_words import EVIDENCE_LINES, SHOWN_LINES, cause_in, to_the_point
from run_benchmarks.results.rank_logs import read_rank_logs
from run_benchmarks.results.remedies import ARROW, OF_CLASS, remedy_of
from run_benchmarks.results.telemetry_file import read_telemetry
from run_benchmarks.stages.watch import Ended, Ending, Lost, Outcome
from tests.run_benchmarks.builders import training_events, write_rank_log
from utils.errors import FlagPerfError
from utils.events import format_line
from utils.node import PREFIX, RankEnd
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.text_files import last_lines_of

RECORDED = Path(__file__).parents[1] / "frameworks" / "data"
START_LOG = "start_pytorch_task.log"
AWAY = "Connection timed out"
RAISED = "rank 1 ended with exit code 1: ValueError: batch 3 of shard 7 is empty"


@pytest.fixture
def round_folder(tmp_path: Path) -> Path:
    return tmp_path / "round1"


def collected(folder: Path, recorded: str, rank: int) -> Path:
    """The folder of node `rank`, as it was collected after a recorded run (which may have one node or two)."""
    source = RECORDED / recorded
    target = folder / f"node{rank}"
    target.mkdir(parents=True)
    for path in source.iterdir():
        shutil.copy(path, target / (START_LOG if path.name == "start.log" else path.name))
    return target


def explained(
    folders: Mapping[int, Path],
    endings: Mapping[int, Ending],
    *,
    nodes: int | None = None,
    timed_out: bool = False,
    out_of_contact: Mapping[int, str] | None = None,
) -> Explanation:
    outcome = Outcome(endings, timed_out, out_of_contact or {})
    ranks = range(nodes or len(folders))
    logs = [NodeLogs(rank, f"h{rank}", folders.get(rank, Path("/nowhere"))) for rank in ranks]
    return explain(logs, outcome, open_framework("pytorch"), 3600.0)


def failure_of(*arguments: object, **options: object) -> Failure:
    explanation = explained(*arguments, **options)  # type: ignore[arg-type]
    assert explanation.failure is not None
    return explanation.failure


def test_no_failure_where_all_exited_with_0(round_folder: Path) -> None:
    folders = {0: round_folder / "0", 1: round_folder / "1"}
    assert explained(folders, {0: Ended(0, 1.0), 1: Ended(0, 2.0)}) == Explanation(None)


def test_a_rank_that_raised_is_blamed_with_its_last_words(round_folder: Path) -> None:
    failure = failure_of({0: collected(round_folder, "raise", 0)}, {0: Ended(1, 1.0)})
    assert (failure.verdict, failure.stage) == (Verdict.FAILED, Stage.TRAIN)
    assert failure.failure_class is FailureClass.RANK_FAILED
    assert failure.host == "h0"
    assert failure.message == RAISED
    assert failure.evidence.endswith("ValueError: batch 3 of shard 7 is empty")
    assert failure.remedy == "read rank1.out.log in the node's folder; see docs/failures.md, rank_failed"
    assert failure.file.endswith("round1/node0/rank1.out.log")
    assert cause_in(failure) == ""  # it is in the message


def test_what_pytorch_lists_below_an_error_does_not_hide_it(round_folder: Path) -> None:
    """As a chip's plug-in without an operator ends: of 46 lines at the end of the log none says which."""
    failure = failure_of({0: collected(round_folder, "missing_operator", 0)}, {0: Ended(1, 1.0)})
    assert "exit code 1: NotImplementedError: Could not run 'aten::record_stream' with" in failure.message
    assert "registered at" not in failure.evidence and "Traceback" not in failure.evidence
    assert len(failure.evidence.splitlines()) == EVIDENCE_LINES


def test_a_rank_that_was_killed(round_folder: Path) -> None:
    failure = failure_of({0: collected(round_folder, "kill", 0)}, {0: Ended(1, 1.0)})
    assert failure.failure_class is FailureClass.RANK_KILLED
    assert failure.message == "rank 1 was ended by SIGKILL (exit code -9)"


def test_a_rank_that_crashed(round_folder: Path) -> None:
    failure = failure_of({0: collected(round_folder, "segv", 0)}, {0: Ended(1, 1.0)})
    assert failure.failure_class is FailureClass.RANK_FAILED
    assert failure.message == "rank 1 was ended by SIGSEGV (exit code -11)"


def test_of_two_ranks_that_failed_together_the_one_with_its_own_fault_is_blamed(round_folder: Path) -> None:
    """The launcher saw rank 0 end first, which only lost its peer."""
    failure = failure_of({0: collected(round_folder, "both", 0)}, {0: Ended(1, 1.0)})
    assert failure.message == RAISED


def test_a_rank_that_is_named_again_and_again_is_looked_at_once(
    round_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task can write into its launcher's log what looks like the end of a rank."""
    folder = collected(round_folder, "both", 0)
    with next(folder.glob("start_*")).open("a") as log:
        log.write((f"{PREFIX}{json.dumps(asdict(RankEnd(1, 1, 1, False)))}\n") * 300)
    reads: list[Path] = []
    monkeypatch.setattr(
        last_words, "last_lines_of", lambda path, _: reads.append(path) or last_lines_of(path)
    )
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.message == RAISED
    assert len(reads) == len(set(reads)) == 3


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_nodes_the_one_with_its_own_fault_is_blamed(first: int, round_folder: Path) -> None:
    """Whichever is heard of first: node 0's rank lost its peer, node 1's rank failed by itself."""
    folders = {rank: collected(round_folder, f"two_raise/n{rank}", rank) for rank in (0, 1)}
    endings = {first: Ended(1, 1.0), 1 - first: Ended(1, 2.0)}
    failure = failure_of(folders, endings)
    assert (failure.host, failure.message) == ("h1", RAISED)
    assert failure.failure_class is FailureClass.RANK_FAILED


def test_where_every_rank_only_lost_a_peer_the_first_is_told(round_folder: Path) -> None:
    folders = {
        0: collected(round_folder, "two_raise/n0", 0),
        1: collected(round_folder, "master_gone/n1", 1),
    }
    failure = failure_of(folders, {0: Ended(1, 2.0), 1: Ended(1, 1.0)})
    assert failure.host == "h1"


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ("", "rank1.out.log says: write it"),
        ("b.py: y is wrong\n    -> mend y", "read rank1.out.log in the node's folder"),
    ],
)
def test_the_remedy_of_an_error_of_our_own_is_the_failures(
    more: str, remedy: str, round_folder: Path
) -> None:
    """Of several problems none is chosen."""
    folder = collected(round_folder, "raise", 0)
    tail = f"utils.errors.FlagPerfError: a.py: x is missing\n    -> write it\n{more}"
    write_rank_log(folder, training_events()[:3], rank=1, tail=tail)
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.remedy == f"{remedy}; see docs/failures.md, rank_failed"


def test_a_class_that_the_last_words_name(round_folder: Path) -> None:
    words = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."
    folder = collected(round_folder, "raise", 0)
    write_rank_log(folder, training_events()[:3], rank=1, tail=f"Traceback (most recent call last):\n{words}")
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.failure_class is FailureClass.DEVICE_OUT_OF_MEMORY
    assert words in failure.evidence and words in failure.message


@pytest.mark.parametrize(
    ("line", "cause", "kind"),
    [
        ("[MemoryKill] control group", None, FailureClass.CONTAINER_OUT_OF_MEMORY),
        # the engine does not tell the host's memory from the container's
        ("[MemoryKill] host", FailureClass.CONTAINER_OUT_OF_MEMORY, FailureClass.HOST_OUT_OF_MEMORY),
        ("", FailureClass.CONTAINER_OUT_OF_MEMORY, FailureClass.CONTAINER_OUT_OF_MEMORY),
        ("", FailureClass.TASK_REMOVED, FailureClass.TASK_REMOVED),
        ("", None, FailureClass.RANK_KILLED),
    ],
)
def test_why_a_rank_was_killed_as_kernel_and_engine_say(
    line: str, cause: FailureClass | None, kind: FailureClass, round_folder: Path
) -> None:
    folder = collected(round_folder, "kill", 0)
    with (folder / START_LOG).open("a") as log:
        log.write(f"{line}\n")
    assert failure_of({0: folder}, {0: Ended(137, 1.0, cause)}).failure_class is kind


def test_a_limit_of_memory_that_was_met_is_told_with_what_was_used(round_folder: Path) -> None:
    folder = collected(round_folder, "kill", 0)
    with (folder / START_LOG).open("a") as log:
        log.write("[MemoryKill] control group limit_bytes=209715200 peak_bytes=209711104\n")
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.failure_class is FailureClass.CONTAINER_OUT_OF_MEMORY
    assert failure.message.endswith(
        "; its memory is limited to 200 MiB, of which 200 MiB were in use at most"
    )
    assert "`--memory` in ACCE_CONTAINER_OPT" in failure.remedy


def test_of_a_rank_that_was_killed_the_kernels_log_is_named(round_folder: Path) -> None:
    failure = failure_of({0: collected(round_folder, "kill", 0)}, {0: Ended(1, 1.0)})
    assert failure.failure_class is FailureClass.RANK_KILLED
    assert failure.remedy.startswith(
        "look on h0 who sent SIGKILL: `journalctl -k --since -1h` (or `dmesg -T`)"
    )
    assert "`Killed process`" in failure.remedy and failure.remedy.endswith("docs/failures.md, rank_killed")


def test_what_the_runtime_says_of_a_task_that_was_removed_goes_first(round_folder: Path) -> None:
    folder = collected(round_folder, "kill", 0)
    removed = Ended(137, 1.0, FailureClass.TASK_REMOVED, "docker events on h0")
    assert failure_of({0: folder}, {0: removed}).remedy.startswith("docker events on h0; read ")
    gone = Lost("no such container", True, 5.0, FailureClass.TASK_REMOVED, "docker events on h1")
    assert (
        failure_of({}, {1: gone}, nodes=2).remedy == "docker events on h1; see docs/failures.md, task_removed"
    )


def test_memory_of_others_is_no_cause_of_a_rank_that_raised(round_folder: Path) -> None:
    folder = collected(round_folder, "raise", 0)
    with (folder / START_LOG).open("a") as log:
        log.write("[MemoryKill] host\n")
    assert failure_of({0: folder}, {0: Ended(1, 1.0)}).failure_class is FailureClass.RANK_FAILED


def test_a_rank_that_left_too_early_is_named_and_not_the_peer_that_lost_it(round_folder: Path) -> None:
    folder = collected(round_folder, "two_raise/n0", 0)
    ends = [RankEnd(1, 1, 0, False), RankEnd(0, 0, 1, False)]
    (folder / START_LOG).write_text("".join(f"{end.line()}\n" for end in ends))
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.message == "rank 1 ended with exit code 0 before its peers were done"
    assert failure.failure_class is FailureClass.RANK_FAILED


def test_a_task_that_was_killed_as_a_whole(round_folder: Path) -> None:
    """Nobody was left to write a report: its container was killed."""
    folder = round_folder / "0"
    folder.mkdir(parents=True)
    (folder / START_LOG).write_text("INFO: Waiting for workers\n")
    failure = failure_of({0: folder}, {0: Ended(137, 1.0)})
    assert failure.failure_class is FailureClass.RANK_KILLED
    assert failure.message == "the task on node rank 0 was ended by SIGKILL (exit code 137)"
    assert failure.evidence == "INFO: Waiting for workers"
    assert START_LOG in failure.remedy


def test_a_launcher_that_did_not_start(round_folder: Path) -> None:
    folder = round_folder / "0"
    folder.mkdir(parents=True)
    (folder / START_LOG).write_text("/usr/bin/python3: No module named torch\n")
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.failure_class is FailureClass.RANK_FAILED
    assert "No module named torch" in failure.evidence


def test_logs_that_were_not_collected_do_not_hide_the_exit_code(round_folder: Path) -> None:
    failure = failure_of({0: round_folder / "nowhere"}, {0: Ended(3, 1.0)})
    assert "exit code 3" in failure.message
    assert failure.evidence == ""


def test_evidence_is_the_end_of_the_log(round_folder: Path) -> None:
    folder = collected(round_folder, "raise", 0)
    text = "\n".join(f"line {number}" for number in range(10_000))
    (folder / "rank1.out.log").write_bytes(text.encode() + b"\n\xff\xfe not UTF-8\n")
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    lines = failure.evidence.splitlines()
    assert len(lines) == SHOWN_LINES
    assert "not UTF-8" in lines[-1]


def test_a_lost_host_explains_a_peer_that_lost_it(round_folder: Path) -> None:
    folders = {0: collected(round_folder, "two_raise/n0", 0), 1: round_folder / "lost"}
    failure = failure_of(folders, {0: Ended(1, 1.0)}, out_of_contact={1: AWAY})
    assert (failure.verdict, failure.host) == (Verdict.UNREACHABLE, "h1")
    assert failure.failure_class is FailureClass.HOST_UNREACHABLE
    assert "Connection timed out" in failure.evidence
    assert "check h1" in failure.remedy


def test_a_frozen_host_is_lost_too(round_folder: Path) -> None:
    """It accepts the connection, and then nobody answers."""
    folders = {0: collected(round_folder, "two_raise/n0", 0), 1: round_folder / "lost"}
    silent = "not done after 5 s, ended: true"
    failure = failure_of(folders, {0: Ended(1, 1.0)}, out_of_contact={1: silent})
    assert (failure.verdict, failure.host) == (Verdict.UNREACHABLE, "h1")


def test_a_lost_host_without_any_other_failure() -> None:
    failure = failure_of({}, {1: Lost(AWAY, False, 5.0)}, nodes=2)
    assert (failure.verdict, failure.host) == (Verdict.UNREACHABLE, "h1")


def test_what_decided_that_a_host_is_lost_is_in_the_message() -> None:
    lost = Lost("no answer since noon\ncontact was lost: x", False, 5.0, remedy="see its console")
    failure = failure_of({}, {1: lost}, nodes=2)
    assert failure.message == "the host is out of reach: no answer since noon"
    assert cause_in(failure) == "contact was lost: x"
    assert failure.remedy.startswith("see its console; ")


def test_a_fault_of_its_own_is_no_consequence_of_a_host_that_was_lost_later(round_folder: Path) -> None:
    folders = {0: round_folder / "lost", 1: collected(round_folder, "two_raise/n1", 1)}
    failure = failure_of(folders, {0: Lost(AWAY, False, 30.0), 1: Ended(1, 1.0)})
    assert (failure.verdict, failure.host) == (Verdict.FAILED, "h1")


def test_a_disk_that_filled_up_while_a_task_ran_is_named() -> None:
    full = Lost("exit code 1: python3 wait\nOSError: [Errno 28] No space left on device", True, 5.0)
    failure = failure_of({}, {1: full}, nodes=2)
    assert (failure.failure_class, failure.host) == (FailureClass.DISK_FULL, "h1")
    assert "free space on h1" in failure.remedy and "No space left" in failure.evidence


def test_a_unit_that_is_gone_from_a_host_that_answers() -> None:
    gone = Lost("No such container: u1", True, 5.0)
    failure = failure_of({}, {1: gone}, nodes=2)
    assert (failure.verdict, failure.host) == (Verdict.FAILED, "h1")
    assert failure.failure_class is FailureClass.COMMAND_FAILED
    assert "No such container" in failure.evidence


@pytest.mark.parametrize(
    ("cause", "what"),
    [
        (FailureClass.TASK_REMOVED, "the task was removed while it ran"),
        (FailureClass.ENGINE_FAILED, "the container engine failed while the task ran"),
    ],
)
def test_a_unit_that_is_gone_is_told_by_its_cause(cause: FailureClass, what: str) -> None:
    failure = failure_of({}, {1: Lost("as the engine says", True, 5.0, cause)}, nodes=2)
    assert (failure.verdict, failure.failure_class, failure.message) == (Verdict.FAILED, cause, what)


@pytest.mark.parametrize(("at", "kind"), [(0.5, FailureClass.ENGINE_FAILED), (2.0, FailureClass.RANK_FAILED)])
def test_an_engine_that_failed_first_explains_its_peers(
    at: float, kind: FailureClass, round_folder: Path
) -> None:
    folders = {0: collected(round_folder, "raise", 0), 1: round_folder / "gone"}
    lost = Lost("unexpected EOF", True, at, FailureClass.ENGINE_FAILED)
    assert failure_of(folders, {0: Ended(1, 1.0), 1: lost}).failure_class is kind


def test_a_task_that_was_removed_explains_its_peers(round_folder: Path) -> None:
    folders = {0: collected(round_folder, "raise", 0), 1: round_folder / "gone"}
    removed = Ended(137, 2.0, FailureClass.TASK_REMOVED)
    failure = failure_of(folders, {0: Ended(1, 1.0), 1: removed})
    assert (failure.failure_class, failure.host) == (FailureClass.TASK_REMOVED, "h1")


def test_a_host_that_lets_nobody_in_any_more(round_folder: Path) -> None:
    failure = failure_of({}, {1: Lost("no key", False, 5.0, FailureClass.AUTHENTICATION_FAILED)}, nodes=2)
    assert (failure.verdict, failure.failure_class) == (
        Verdict.UNREACHABLE,
        FailureClass.AUTHENTICATION_FAILED,
    )
    assert failure.message == "the host does not let the user in"


def test_the_deadline_is_told_with_what_a_node_was_doing(round_folder: Path) -> None:
    folder = round_folder / "1"
    write_rank_log(folder, training_events()[:3], rank=1, tail="step 17 takes its time")
    failure = failure_of({0: round_folder / "0", 1: folder}, {0: Ended(0, 1.0)}, timed_out=True)
    assert (failure.verdict, failure.failure_class) == (Verdict.TIMED_OUT, FailureClass.DEADLINE)
    assert failure.host == "h1"  # node 0 was done
    assert failure.message == "not done after 3600 s"
    assert failure.evidence.endswith("step 17 takes its time")


@pytest.mark.parametrize(
    ("files", "sign", "seen"),
    [
        (
            {START_LOG: "waiting for a licence"},
            "the task was launched, but global rank 0 had not been started",
            START_LOG,
        ),
        (
            {START_LOG: "", "rank0.out.log": "import torch"},
            "image and launch were done and the ranks had been started, but global rank 0 had reported no event "
            "(the first is INIT_START)",
            "rank0.out.log",
        ),
        (
            {"rank0.out.log": "\n".join(map(format_line, training_events()[:4]))},
            "the last event of global rank 0 was EVALUATE, step 50",
            "rank0.out.log",
        ),
    ],
    ids=["no rank", "no event", "in training"],
)
def test_a_deadline_says_how_far_it_came(
    files: Mapping[str, str], sign: str, seen: str, round_folder: Path
) -> None:
    round_folder.mkdir()
    for name, text in files.items():
        (round_folder / name).write_text(f"{text}\n")
    failure = failure_of({0: round_folder}, {}, timed_out=True)
    assert failure.message == f"not done after 3600 s: {sign}"
    assert failure.file.endswith(f"/{seen}")
    assert failure.evidence == files[seen]


def test_a_training_that_reported_until_its_deadline_is_called_slow() -> None:
    for goes_on, words in ((True, "slow rather than hung"), (False, "see whether it hangs or is slow")):
        outcome = Outcome({}, True, {}, goes_on=goes_on)
        failure = explain(
            [NodeLogs(0, "h0", Path("/nowhere"))], outcome, open_framework("pytorch"), 60
        ).failure
        assert failure is not None and words in failure.remedy


def test_an_abort_while_the_interpreter_shuts_down_is_noted_and_no_failure(round_folder: Path) -> None:
    explanation = explained({0: collected(round_folder, "abort", 0)}, {0: Ended(1, 1.0)})
    assert explanation.failure is None
    assert explanation.note == "rank 1, 0 had finished and was aborted while its interpreter shut down"


def test_an_abort_beside_a_real_failure_is_not_forgiven(round_folder: Path) -> None:
    folders = {0: collected(round_folder, "abort", 0), 1: collected(round_folder, "two_raise/n1", 1)}
    failure = failure_of(folders, {0: Ended(1, 1.0), 1: Ended(1, 2.0)})
    assert failure.verdict is Verdict.FAILED


def test_an_abort_before_the_end_is_a_failure(round_folder: Path) -> None:
    folder = collected(round_folder, "abort", 0)
    aborted = "terminate called without an active exception"
    write_rank_log(folder, training_events()[:3], tail=aborted)
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.message.endswith(f"was ended by SIGABRT (exit code -6): {aborted}")


def test_what_a_task_printed_stands_in_for_a_start_log_that_it_never_opened(round_folder: Path) -> None:
    round_folder.mkdir()
    (round_folder / "task_output.log").write_text("bash: line 1: /logs/start.log: Read-only file system\n")
    failure = failure_of({0: round_folder}, {0: Ended(1, 1.0)})
    assert failure.evidence == "bash: line 1: /logs/start.log: Read-only file system"
    assert failure.remedy == "read task_output.log in the node's folder; see docs/failures.md, rank_failed"


def test_a_log_that_cannot_be_read_is_told_of_in_the_evidence(round_folder: Path) -> None:
    folder = collected(round_folder, "raise", 0)
    (folder / "rank1.out.log").unlink()
    (folder / "rank1.out.log").mkdir()
    failure = failure_of({0: folder}, {0: Ended(1, 1.0)})
    assert failure.message == "rank 1 ended with exit code 1"
    assert failure.evidence.endswith("rank1.out.log: is no file")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_log_that_is_no_plain_file_is_told_of_and_not_read(
    make: Callable[[Path], None], round_folder: Path
) -> None:
    round_folder.mkdir()
    for name in (START_LOG, "rank0.out.log", "telemetry.jsonl"):
        make(round_folder / name)
    assert "is no file" in failure_of({0: round_folder}, {0: Ended(1, 1.0)}).evidence
    assert "is no file" in read_rank_logs([round_folder]).errors[0]
    with pytest.raises(FlagPerfError, match="is no file"):
        read_telemetry(round_folder / "telemetry.jsonl")


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        ('[PerfLog] {"event": "STEP_END"}', ""),
        ('cp: x: Input/output error\n[PerfLog] {"event": "STEP_END"}\n\n----', "cp: x: Input/output error"),
        (
            "step 36 of rank 0\nrank 1: process 517\nvalidation error: 0.12",
            "its last line: validation error: 0.12",
        ),
        ("fatal: the licence server is gone\nstep 7", "fatal: the licence server is gone"),
        (
            "/bin/sh: 1: nvcc: not found\nbash: line 1: torchrun: command not found",
            "bash: line 1: torchrun: command not found",
        ),
        (
            "Traceback:\n  x\n[rank1]: ValueError: bad shard\nW1122 torch says goodbye",
            "ValueError: bad shard",
        ),
        ("RuntimeError: " + "x" * 1000, "RuntimeError: " + "x" * 286),
        ("rank 1 ended", "its last line: rank 1 ended"),
        (
            "controller: precision is 'fp8'\n    -> write 'fp16'",
            "its last line: controller: precision is 'fp8'",
        ),
    ],
    ids=[
        "events alone",
        "what a tool says",
        "progress",
        "an error's form",
        "a shell's",
        "what was raised",
        "a long one",
        "no error at all",
        "what to do behind what is wrong",
    ],
)
def test_the_cause_is_a_line_of_the_evidence(evidence: str, cause: str) -> None:
    failure = Failure(Verdict.FAILED, Stage.TRAIN, FailureClass.RANK_FAILED, "h1", "rank 1 ended", evidence)
    assert cause_in(failure) == cause


def test_a_class_whose_evidence_is_no_ranks_log_has_its_last_line_as_its_cause() -> None:
    words = "step 3 of 9\nthe pull was denied"
    failure = Failure(Verdict.FAILED, Stage.IMAGE, FailureClass.IMAGE_NOT_BUILT, "h1", "no image", words)
    assert cause_in(failure) == "the pull was denied"


@pytest.mark.parametrize(
    "kind", [FailureClass.RANK_KILLED, FailureClass.CONTAINER_OUT_OF_MEMORY, FailureClass.HOST_OUT_OF_MEMORY]
)
def test_who_is_killed_has_no_last_word(kind: FailureClass) -> None:
    failure = Failure(
        Verdict.FAILED, Stage.TRAIN, kind, "h1", "rank 1 was ended by SIGKILL", "step 19 of rank 1"
    )
    assert cause_in(failure) == ""
    told = replace(failure, evidence="step 19 of rank 1\nMemoryError: 8 GiB")
    assert cause_in(told) == "MemoryError: 8 GiB"


def test_the_records_of_a_schedulers_job_are_no_last_words() -> None:
    words = "scontrol: JobId=7 JobState=TIMEOUT Reason=TimeLimit StdErr=/dev/null\nsacct: 7.4|CANCELLED|0:15"
    kind = FailureClass.ALLOCATION_TIME_LIMIT
    failure = Failure(
        Verdict.TIMED_OUT, Stage.TRAIN, kind, "", "Slurm's job 7: its time limit was reached", words
    )
    assert cause_in(failure) == ""


def test_what_to_do_is_said_once() -> None:
    advice = OF_CLASS[FailureClass.DIVERGED]
    told = remedy_of(FailureClass.DIVERGED, "h1", "rank1.out.log", f"DivergedError: nan\n    {ARROW}{advice}")
    assert told.count(advice) == 1 and "read rank1.out.log" in told


EVENTS = "[PerfLog]"
PROGRESS = [f"step {number}" for number in range(20)]
RAISED_AT_END = [
    "Traceback (most recent call last):",
    *(f"  frame {n}" for n in range(9)),
    "ValueError: x",
    "bye",
]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (PROGRESS, SHOWN_LINES),
        ([*PROGRESS, *RAISED_AT_END], len(RAISED_AT_END)),
        (["step 1", "sh: x: No such file or directory", *PROGRESS, "ValueError: x"], 2 + len(PROGRESS)),
        ([*PROGRESS, "cp: No space left on device", *PROGRESS], 1 + len(PROGRESS)),
        ([*PROGRESS, "cp: No space left on device"], SHOWN_LINES),
        ([*PROGRESS, *[f"{EVENTS} {{}}"] * 9], SHOWN_LINES + 9),
        ([f"{EVENTS} {{}}"] * 20, SHOWN_LINES),
        ([], 0),
    ],
)
def test_progress_before_an_error_is_not_shown(lines: list[str], shown: int) -> None:
    assert to_the_point("\n".join(lines)).splitlines() == lines[len(lines) - shown :]


def test_a_deadline_has_no_cause_among_the_last_lines() -> None:
    failure = Failure(Verdict.TIMED_OUT, Stage.TRAIN, FailureClass.DEADLINE, "h1", "not done", "step 7")
    assert cause_in(failure) == ""


def test_a_line_of_evidence_that_is_cut_says_so(round_folder: Path) -> None:
    round_folder.mkdir()
    (round_folder / START_LOG).write_text(f"{'x' * 10_000}\nthe end\n")
    failure = failure_of({0: round_folder}, {0: Ended(1, 1.0)})
    first, last = failure.evidence.splitlines()
    assert first.endswith("xxx... (10000 characters in all)") and len(first) < 9_000
    assert last == "the end"
