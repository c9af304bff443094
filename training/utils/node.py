"""Start the ranks of one node and watch them, whatever the framework.

    python3 -m utils.node --nnodes N --node-rank I --nproc M --master-addr A --master-port P --log-dir DIR
                          [--set NAME=VALUE]... [--first-local-rank F] [--leader] -- ARGV...

ARGV is started M times with the environment that FlagPerf's launch contract names, and the output of each goes
to `DIR/rank<global rank>.out.log`: no pipe hides its exit code, and no wrapper has to pass signals on. `--set`
adds a variable to each rank; in its VALUE `{rank}`, `{local_rank}` and the other names of `rank_environments` are
filled in. RANKS_START_MS tells each when the first of them was started. The first rank that fails ends the others, and
the launcher with its exit code (128 + the signal's number where a signal ended it). How each rank ended stands in a
line of `RankEnd`, in the order of their ends. With `--leader` the end of the first rank is that of all, and its exit
code the launcher's. LOCAL_RANK counts from F, for one of several launchers on a node.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from utils.control_groups import write_identity
from utils.memory_kills import kills

GRACE_S = 10.0  # from SIGTERM to SIGKILL
# An interpreter may be aborted while it exits, its work done (a collective library's threads still run). The
# peers are done in a moment then, and get that moment; after a true crash they are stopped a little later.
AT_EXIT = (-signal.SIGABRT, -signal.SIGSEGV)
AT_EXIT_GRACE_S = 3.0
PREFIX = "[RankEnd] "
LAST_WORDS = 2**16  # bytes that a rank may need to say why it failed
# When the node's first rank was started: ms since the epoch.
RANKS_START_MS = "FLAGPERF_RANKS_START_MS"
CONTRACT = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class RankEnd:
    """How a rank ended: its exit code, negative for a signal; `stopped`: only after the launcher had stopped it."""

    rank: int
    local_rank: int
    exit_code: int
    stopped: bool

    def line(self) -> str:
        """As it stands in the launcher's log."""
        return PREFIX + json.dumps(asdict(self))


def rank_log_name(global_rank: int | str) -> str:
    """The file that holds the output of one rank."""
    return f"rank{global_rank}.out.log"


def start_log_name(framework: str) -> str:
    """The file that holds the output of a node's launcher; `framework` is without its version."""
    return f"start_{framework}_task.log"


def read_rank_ends(log: str) -> tuple[RankEnd, ...]:
    """The ends that a launcher's log tells of, in its order; a task may have written into it what is none."""
    lines = (line[len(PREFIX) :] for line in log.splitlines() if line.startswith(PREFIX))
    return tuple(filter(None, map(_rank_end, lines)))


def _rank_end(text: str) -> RankEnd | None:
    try:
        end = RankEnd(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    values = asdict(end).values()
    return end if all(isinstance(value, int) and abs(value) < 2**31 for value in values) else None


class NodeRanks:
    """The ranks of this node that live."""

    def __init__(self, log_dir: Path, leader: int | None = None) -> None:
        self._log_dir, self._leader = log_dir, leader
        self._living: dict[int, tuple[int, int, subprocess.Popen[bytes]]] = {}
        self._stopped = False
        self.stop_signal: int | None = None

    def start(self, rank: int, local_rank: int, argv: Sequence[str], environment: dict[str, str]) -> None:
        """Start one more, whose output is added to its log."""
        with (self._log_dir / rank_log_name(rank)).open("ab") as log:
            process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
        self._living[process.pid] = (rank, local_rank, process)
        print(f"rank {rank}: process {process.pid}", flush=True)

    def ends(self) -> Iterator[RankEnd]:
        """Waits for each rank's end, in the order of their ends. A failure stops the rest."""
        while self._living:
            reaped = [self._reaped(*os.waitpid(-1, 0)), *self._already_dead()]
            stopped = self._stopped
            ends = [RankEnd(rank, local, code, stopped) for rank, local, code in filter(None, reaped)]
            yield from ends
            failures = {end.exit_code for end in ends if end.exit_code}
            if failures.difference(AT_EXIT) or self._leader in {end.rank for end in ends}:
                self.stop()
            elif failures and not self._stopped:
                signal.setitimer(signal.ITIMER_REAL, AT_EXIT_GRACE_S)

    def stop(self) -> None:
        """SIGTERM to all that live, and SIGKILL after a grace."""
        if self._stopped:
            return
        self._stopped = True
        self._signal(signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, GRACE_S)

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Handles the launcher's own signals."""
        if number == signal.SIGALRM and self._stopped:
            self._signal(signal.SIGKILL)
        elif number == signal.SIGALRM:
            self.stop()
        else:
            self.stop_signal = number
            self.stop()

    def _signal(self, number: int) -> None:
        for _, _, process in self._living.values():
            with suppress(ProcessLookupError):  # waited for in the moment in which the signal came
                os.kill(process.pid, number)

    def _already_dead(self) -> Iterator[tuple[int, int, int] | None]:
        """Those that ended meanwhile too: not because they were stopped."""
        while self._living:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            yield self._reaped(pid, status)

    def _reaped(self, pid: int, status: int) -> tuple[int, int, int] | None:
        """Rank, local rank and exit code; None for a process that is not a rank."""
        if pid not in self._living:
            return None
        rank, local_rank, process = self._living.pop(pid)
        process.returncode = exit_code_of(status)
        return rank, local_rank, process.returncode


def exit_code_of(status: int) -> int:
    """As os.waitstatus_to_exitcode, which Python 3.8 in the images of existing vendors does not have."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def rank_environments(options: argparse.Namespace) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Rank, local rank and the variables that the launcher adds, of each rank of the node."""
    for index in range(options.nproc):
        rank, local_rank = options.node_rank * options.nproc + index, options.first_local_rank + index
        values = {
            "index": index,
            "rank": rank,
            "local_rank": local_rank,
            "world_size": options.nnodes * options.nproc,
            "local_world_size": options.nproc,
            "node_rank": options.node_rank,
            "master_addr": options.master_addr,
            "master_port": options.master_port,
            "own_port": options.master_port + index,  # another one for each rank of the node
        }
        contract = {name: str(values[name.lower()]) for name in CONTRACT}
        own = dict(word.partition("=")[::2] for word in options.set)
        yield rank, local_rank, {**contract, **{name: text.format(**values) for name, text in own.items()}}


def main(argv: Sequence[str]) -> int:
    """Run the node's ranks to their end; the exit code."""
    options = _options(argv)
    leader = options.node_rank * options.nproc if options.leader else None
    ranks, killed_before = NodeRanks(Path(options.log_dir), leader), kills()
    with suppress(OSError):  # the monitor says that it knows of no group, and samples the rest
        write_identity(Path(options.log_dir))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, ranks.on_signal)
    environment = {**os.environ, RANKS_START_MS: str(int(time.time() * 1000))}
    for rank, local_rank, variables in rank_environments(options):
        if ranks.stop_signal is None:
            ranks.start(rank, local_rank, options.argv, {**environment, **variables})
    first, is_led_out = 0, False
    for end in ranks.ends():
        print(end.line(), flush=True)
        first = first or (0 if is_led_out else end.exit_code)
        is_led_out = is_led_out or (end.rank == leader and not end.stopped)
    with suppress(OSError):  # the log's own disk may be the one that is full
        print(kills().line_since(killed_before), end="", flush=True)
        print(no_room(options.log_dir) if first else "", end="", flush=True)
    if ranks.stop_signal is not None:
        print(f"ended by signal {ranks.stop_signal}", flush=True)
        return 128 + ranks.stop_signal
    return first if first >= 0 else 128 - first


def no_room(folder: str) -> str:
    """A line for the log where the logs' file system is full: a rank could not write down why it failed."""
    system = os.statvfs(folder)
    left = system.f_bavail * system.f_frsize
    return f"no space left on device: {left} bytes at {folder}\n" if left < LAST_WORDS else ""


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m utils.node", allow_abbrev=False)
    for name in ("--nnodes", "--node-rank", "--nproc", "--master-port"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--master-addr", "--log-dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--first-local-rank", type=int, default=0)
    parser.add_argument("--leader", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("argv", nargs="+", metavar="ARGV")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
