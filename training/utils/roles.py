"""Start the roles of a search on one node: the controller on the first, and workers on each.

    python3 -m utils.roles --nnodes N --node-rank I --nproc M --master-addr A --master-port P --log-dir DIR
                           [--ranks-per-worker R] [--peaks JSON] [--set NAME=VALUE]... -- PYTHON -u SCRIPT ARGUMENT...

The controller is `PYTHON -u -m benchmarks.search.controller ARGUMENT...`; it listens at A:P, and its output goes to
`DIR/controller.out.log`. A worker is R ranks (0: all M of the node), which `utils.node` starts with SCRIPT and with a
rendezvous of their own: RANK and WORLD_SIZE are the worker's, LOCAL_RANK is the node's. The end of its first rank is a
worker's end; one that fails is started again, MOST_RESTARTS times. On the first node the controller's end is the end
of all, with its exit code. Standard library, Python 3.8 or later.
"""

from __future__ import annotations

import argparse
import hmac
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from utils.case_form import ROLES_TOKEN
from utils.node import exit_code_of
from utils.search.events import CONTROLLER_LOG

CONTROLLER = "benchmarks.search.controller"
# Which workers the controller is to expect: how many in all, of how many ranks each, on how many nodes.
WORKERS, RANKS, NODES = "FLAGPERF_SEARCH_WORKERS", "FLAGPERF_SEARCH_RANKS", "FLAGPERF_SEARCH_NODES"
# What their chips can do at most, by precision: a JSON object of FLOP/s.
PEAKS = "FLAGPERF_SEARCH_PEAKS"
# Where it is (host:port), and what it knows a worker by.
ADDRESS = "FLAGPERF_SEARCH_CONTROLLER"
WORKER, SESSION, START = "FLAGPERF_SEARCH_WORKER", "FLAGPERF_SEARCH_SESSION", "FLAGPERF_SEARCH_START"
MOST_RESTARTS = 3
LEAVE_S = 5.0  # from the controller's end until workers are told to end
GRACE_S = 20.0  # from SIGTERM to SIGKILL: utils.node needs half of it for its ranks
POLL_S = 0.1


@dataclass
class Role:
    """A process of the search on this node; `worker` is its number, None of the controller."""

    worker: int | None
    starts: int = 0

    @property
    def name(self) -> str:
        """As the log says it."""
        return "controller" if self.worker is None else f"worker {self.worker}"


class Roles:
    """The roles of this node that live."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._session = secrets.token_hex(16)
        self._living: dict[int, tuple[Role, subprocess.Popen[bytes]]] = {}
        self._exit_code: int | None = None
        self._failure = 0
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self.stop_signal: int | None = None

    def run(self) -> int:
        """Start all, wait for their end; the exit code."""
        for role in self._roles():
            self._start(role)
        while self._living:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                self._ended(pid, exit_code_of(status))
            else:
                self._end_overdue()
                time.sleep(POLL_S)
        if self.stop_signal is not None:
            return 128 + self.stop_signal
        code = self._failure if self._exit_code is None else self._exit_code
        return code if code >= 0 else 128 - code

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Handles the launcher's own signals."""
        self.stop_signal = number
        self._term_at = time.monotonic()

    def _roles(self) -> list[Role]:
        options = self._options
        count = options.nproc // options.ranks_per_worker
        workers = [Role(options.node_rank * count + place) for place in range(count)]
        return [*([] if options.node_rank else [Role(None)]), *workers]

    def _start(self, role: Role) -> None:
        role.starts += 1
        if role.worker is None:
            argv, environment = controller_command(self._options)
            with (Path(self._options.log_dir) / CONTROLLER_LOG).open("ab") as log:
                process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
        else:
            argv = worker_command(self._options, role.worker, self._session, role.starts)
            token = token_of(os.environ[ROLES_TOKEN], role.worker)
            process = subprocess.Popen(argv, env={**os.environ, ROLES_TOKEN: token})
        self._living[process.pid] = (role, process)
        print(f"{role.name}: process {process.pid}", flush=True)

    def _ended(self, pid: int, code: int) -> None:
        """Of a process that is no role (its parent has died) nothing is to be done."""
        role, process = self._living.pop(pid, (None, None))
        if role is None or process is None:
            return
        process.returncode = code
        print(f"{role.name}: exit code {code}", flush=True)
        if role.worker is None:
            self._exit_code = code
            self._term_at = self._term_at or time.monotonic() + LEAVE_S
        elif code and self._term_at is None:
            self._restart(role, code)

    def _restart(self, role: Role, code: int) -> None:
        if role.starts > MOST_RESTARTS:
            self._failure = self._failure or code
            print(f"{role.name}: is done without, after {role.starts} starts", flush=True)
        else:
            self._start(role)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        if self._kill_at is not None and now > self._kill_at:
            self._signal(signal.SIGKILL)
        elif self._kill_at is None and self._term_at is not None and now >= self._term_at:
            self._signal(signal.SIGTERM)
            self._kill_at = now + GRACE_S

    def _signal(self, number: int) -> None:
        for _, process in self._living.values():
            os.kill(process.pid, number)  # it is our child and not yet waited for: the PID is still its own


def controller_command(options: argparse.Namespace) -> tuple[Sequence[str], Mapping[str, str]]:
    """The controller's command and environment."""
    script = next(place for place, word in enumerate(options.argv) if word.endswith(".py"))
    argv = [*options.argv[:script], "-m", CONTROLLER, *options.argv[script + 1 :]]
    own = {
        "MASTER_ADDR": options.master_addr,
        "MASTER_PORT": str(options.master_port),
        WORKERS: str(options.nnodes * (options.nproc // options.ranks_per_worker)),
        RANKS: str(options.ranks_per_worker),
        NODES: str(options.nnodes),
        PEAKS: options.peaks,
    }
    return argv, {**os.environ, **own}


def worker_command(options: argparse.Namespace, worker: int, session: str, start: int) -> Sequence[str]:
    """The command of a worker's launcher, with a port that is free just now."""
    ranks = options.ranks_per_worker
    own = {
        "RANK": "{index}",
        "LOCAL_WORLD_SIZE": options.nproc,
        "NODE_RANK": options.node_rank,
        ADDRESS: f"{options.master_addr}:{options.master_port}",
        WORKER: worker,
        SESSION: session,
        START: start,
    }
    place = {
        "--nnodes": 1,
        "--node-rank": worker,
        "--nproc": ranks,
        "--first-local-rank": worker * ranks - options.node_rank * options.nproc,
        "--master-addr": "127.0.0.1",
        "--master-port": _free_port(),
        "--log-dir": options.log_dir,
    }
    words = [word for name, value in place.items() for word in (name, str(value))]
    words += [word for each in options.set for word in ("--set", each)]
    words += [word for name, value in own.items() for word in ("--set", f"{name}={value}")]
    return [sys.executable, "-m", "utils.node", *words, "--leader", "--", *options.argv]


def worker_token(token: str, worker: int) -> str:
    """What a worker has in place of the run's token: it says who it is, and no other worker can make it of its own."""
    return f"{worker}.{hmac.digest(token.encode(), str(worker).encode(), 'sha256').hex()}"


def tokens_of_node(token: str, node_rank: int, workers: int) -> str:
    """What a node is given: the first one, where the controller is, the run's token; another those of its own workers.

    So none of the others can speak for a worker of another node. workers: of each node.
    """
    first = node_rank * workers
    return ",".join(worker_token(token, first + place) for place in range(workers)) if node_rank else token


def token_of(given: str, worker: int) -> str:
    """A worker's token, of what its node was given."""
    own = [each for each in given.split(",") if each.startswith(f"{worker}.")]
    return own[0] if own else worker_token(given, worker)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port


def main(argv: Sequence[str]) -> int:
    """Run the node's roles to their end; the exit code."""
    options = _options(argv)
    roles = Roles(options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, roles.on_signal)
    return roles.run()


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m utils.roles", allow_abbrev=False)
    for name in ("--nnodes", "--node-rank", "--nproc", "--master-port"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--master-addr", "--log-dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--ranks-per-worker", type=int, default=0)
    parser.add_argument("--peaks", default="{}")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("argv", nargs="+", metavar="ARGV")
    options = parser.parse_args(argv)
    options.ranks_per_worker = options.ranks_per_worker or options.nproc
    if options.ranks_per_worker < 0 or options.nproc % options.ranks_per_worker:
        parser.error(
            f"--ranks-per-worker {options.ranks_per_worker} does not divide the node's {options.nproc} ranks"
        )
    if not os.environ.get(ROLES_TOKEN):
        parser.error(f"{ROLES_TOKEN} is not set: by it workers and controller know each other")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
