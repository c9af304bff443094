"""What each rank of a node is doing: the state of its process, and the Python stacks of its threads.

    python3 - LOG_DIR LIMIT_S    writes LOG_DIR/stacks.log, and lets ranks write what their collectives have come to

It runs where the ranks do, as their user. A rank is a process whose output goes to a rank's log in LOG_DIR. Its stacks
come from py-spy where that is there and may look, else from the rank itself: the shared driver lets faulthandler answer
SIGUSR1. py-spy is not to halt what it looks at, for then it could not look at a process that is stopped already. A
stopped rank that has to answer by itself goes on for that moment, after all others have been looked at.
Standard library, Python 3.8 or later, Linux.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

STACKS_FILE = "stacks.log"
PREFIX, INDENT = "[RankState] ", "  "
RANK_LOG = re.compile(r"rank\d+\.out\.log")
PY_SPY, FAULTHANDLER = "py-spy", "faulthandler"
STOPPED = ("T", "t")  # by a signal, or by a debugger
ASK, ASK_FOR_RECORD = signal.SIGUSR1, signal.SIGUSR2
# Where PyTorch's flight recorder puts what it has recorded; the rank is added to it.
RECORD_PLACE, RECORD = "TORCH_FR_DUMP_TEMP_FILE", "flight_recorder_rank"
PY_SPY_LIMIT_S, ANSWER_LIMIT_S, RECORD_LIMIT_S, SETTLED_S = 5.0, 3.0, 3.0, 0.2
LONGEST_STACK = 2**16  # bytes of one rank
LONGEST_WORD = 500
MOST_RANKS, AT_ONCE = 256, 8
# As launchers name a rank. A script that runs torchrun has the name of one of torchrun's ranks, and the same log.
RANK, ELASTIC = b"RANK", b"TORCHELASTIC_RUN_ID"


@dataclass(frozen=True)
class RankState:
    """A rank's process: `state` and `wchan` as in /proc, the `source` of its stacks, or why there are none."""

    rank: int
    pid: int
    state: str
    wchan: str
    source: str = ""
    problem: str = ""

    def line(self) -> str:
        """As it stands in STACKS_FILE, before its stacks."""
        return PREFIX + json.dumps(asdict(self))


class Process(NamedTuple):
    """A process that writes to a rank's log; handled: the signals that do not end it, as bits."""

    pid: int
    parent: int
    rank: int
    is_elastic: bool
    state: str
    wchan: str
    handled: int
    log: Path

    def handles(self, number: int) -> bool:
        """Whether it has a handler for a signal, which would end it otherwise."""
        return bool(self.handled >> (number - 1) & 1)


def answer_with_stacks() -> None:
    """From now on ASK is answered with the stacks of all threads on standard error, whatever this process is doing."""
    faulthandler.register(ASK, file=2, all_threads=True)


def read_stacks(text: str) -> list[tuple[RankState, list[str]]]:
    """The ranks of a STACKS_FILE, each once, with the lines of their stacks; a task may have written what is none."""
    ranks: dict[int, tuple[RankState, list[str]]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        state = _rank_state(line[len(PREFIX) :]) if line.startswith(PREFIX) else None
        if state:
            lines = []
            if state.rank not in ranks and len(ranks) < MOST_RANKS:
                ranks[state.rank] = (state, lines)
        elif line.startswith(INDENT):
            lines.append(line[len(INDENT) :])
    return list(ranks.values())


def _rank_state(text: str) -> RankState | None:
    try:
        state = RankState(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    words = (state.state, state.wchan, state.source, state.problem)
    is_valid = all(type(number) is int and 0 <= number < 2**31 for number in (state.rank, state.pid))
    return state if is_valid and all(isinstance(w, str) and len(w) <= LONGEST_WORD for w in words) else None


def ranks_of(log_dir: Path) -> list[Process]:
    """The ranks that write to `log_dir`, in their order: of each its own process, not those that it has started."""
    folder, entries = log_dir.resolve(), Path("/proc").glob("[0-9]*")
    table = {process.pid: process for process in filter(None, (_process(entry, folder) for entry in entries))}
    ranks: dict[int, Process] = {}
    for process in sorted(table.values(), key=lambda each: (each.is_elastic, -each.pid)):
        parent = table.get(process.parent)
        if parent is None or (parent.rank, parent.is_elastic) != (process.rank, process.is_elastic):
            ranks[process.rank] = process
    return [ranks[rank] for rank in sorted(ranks)][:MOST_RANKS]


def _process(entry: Path, folder: Path) -> Process | None:
    """A process of this user that writes to a rank's log in `folder`; None for any other, and what may not be read.

    Root may read anybody's: who has made a folder of that name elsewhere has no rank there.
    """
    try:
        logs = [Path(os.readlink(str(entry / "fd" / number))) for number in "12"]  # noqa: PTH115 - Python 3.8 has no other
        logs = [log for log in logs if log.parent == folder and RANK_LOG.fullmatch(log.name)]
        if not logs:
            return None
        status = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines())
        if set(status["Uid"].split()) != {str(os.geteuid())}:
            return None
        environ = dict(item.partition(b"=")[::2] for item in (entry / "environ").read_bytes().split(b"\0"))
        return Process(
            int(entry.name),
            int(status["PPid"]),
            int(environ[RANK]),
            ELASTIC in environ,
            status["State"].split()[0],
            _wchan(entry),
            int(status["SigCgt"], 16),
            logs[-1],
        )
    except (OSError, KeyError, ValueError):
        return None


def _wchan(entry: Path) -> str:
    try:
        return (entry / "wchan").read_text()[:LONGEST_WORD]
    except OSError:  # a kernel need not tell
        return ""


def stacks_of(process: Process, py_spy: str | None) -> tuple[RankState, str]:
    """The state of a rank, with the source of its stacks, and these."""
    state = RankState(process.rank, process.pid, process.state, process.wchan)
    text, why_not = _looked_at(process, py_spy)
    if text:
        return replace(state, source=PY_SPY), text
    text, why_no_answer = _answer_of(process)
    if text:
        return replace(state, source=FAULTHANDLER), text
    return replace(state, problem=f"{why_not}; {why_no_answer}"[:LONGEST_WORD]), ""


def _looked_at(process: Process, py_spy: str | None) -> tuple[str, str]:
    """What py-spy sees; or nothing, and why."""
    if py_spy is None:
        return "", "py-spy is not installed"
    argv = [py_spy, "dump", "--nonblocking", "--full-filenames", "--pid", str(process.pid)]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PY_SPY_LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "", f"py-spy: {error}"
    text = done.stdout.decode(errors="replace")
    if done.returncode == 0 and "\nThread " in text:
        return text, ""
    last_words = done.stderr.decode(errors="replace").strip().splitlines()[:1]
    return "", f"py-spy: {' '.join(last_words) or f'exit code {done.returncode}'}"


def _answer_of(process: Process) -> tuple[str, str]:
    """What the rank adds to its log when it is asked; or nothing, and why."""
    if not process.handles(ASK):
        return "", "it does not answer SIGUSR1"
    is_stopped = process.state in STOPPED
    try:
        begin = process.log.stat().st_size
        os.kill(process.pid, ASK)
        if is_stopped:
            os.kill(process.pid, signal.SIGCONT)
        text = _added(process.log, begin)
        if is_stopped:
            os.kill(process.pid, signal.SIGSTOP)
    except OSError as error:
        return "", f"its answer to SIGUSR1: {error}"
    return text, "" if text else f"no answer to SIGUSR1 within {ANSWER_LIMIT_S:g} s"


def _added(log: Path, begin: int) -> str:
    """What is added to a log, once no more comes."""
    end = time.monotonic() + ANSWER_LIMIT_S
    size, since = begin, 0.0
    while time.monotonic() < end and (size == begin or time.monotonic() < since + SETTLED_S):
        time.sleep(0.02)
        now = log.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
    with os.fdopen(os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        file.seek(begin)
        return file.read(LONGEST_STACK).decode(errors="replace")


def stacks_in(ranks: Sequence[Process]) -> Iterator[tuple[RankState, str]]:
    """Of every rank its state and its stacks; of those that are stopped last."""
    places = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
    py_spy = shutil.which(PY_SPY, path=os.pathsep.join(places))
    running = [process for process in ranks if process.state not in STOPPED]
    stopped = [process for process in ranks if process.state in STOPPED]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for group in (running, stopped):
            yield from list(pool.map(lambda process: stacks_of(process, py_spy), group))


def record_name(rank: int) -> str:
    """The file that holds what the collectives of a rank have come to."""
    return f"{RECORD}{rank}.json"


def ask_for_records(ranks: Sequence[Process], log_dir: Path) -> None:
    """Let those ranks that can write their record do so, for a moment."""
    paths = []
    for process in ranks:
        path = log_dir / record_name(process.rank)
        with suppress(FileNotFoundError):
            path.unlink()  # of an earlier look
        with suppress(ProcessLookupError):
            if process.handles(ASK_FOR_RECORD) and process.state not in STOPPED:
                os.kill(process.pid, ASK_FOR_RECORD)
                paths.append(path)
    end = time.monotonic() + RECORD_LIMIT_S
    while time.monotonic() < end and not all(path.exists() for path in paths):
        time.sleep(0.02)


def main(words: Sequence[str]) -> int:
    """Write the file; 0 where there is a rank."""
    log_dir, limit_s = Path(words[0]), int(words[1])
    signal.alarm(limit_s)  # whatever it waits for, and whoever asked for it
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    ranks = ranks_of(log_dir)
    with os.fdopen(os.open(log_dir / STACKS_FILE, flags, 0o644), "w", encoding="utf-8") as file:
        for state, text in stacks_in(ranks):
            lines = [INDENT + line for line in text[:LONGEST_STACK].splitlines()]
            file.write("\n".join([state.line(), *lines]) + "\n")
            file.flush()
    ask_for_records(ranks, log_dir)
    if not ranks:
        print(f"no process writes to a rank's log in {log_dir}", file=sys.stderr)
    return 0 if ranks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
