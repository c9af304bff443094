"""The process beside a worker that makes proposals, while the worker's chips train: no trial stands still for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType

import msgspec

from benchmarks.search.protocol import Evaluations, Proposed, encode, proposed_of
from utils.case_form import ROLES_TOKEN

PROPOSER = (sys.executable, "-m", "benchmarks.search.proposer")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Proposer:
    """Its standard input and output: a line of JSON each way. It ends with its input, so also with the worker.

    Args:
        command: of the process. space: what is searched (`benchmarks.search.proposals.Space`), its first line.
    """

    def __init__(self, command: Sequence[str], space: object) -> None:
        environment = {**os.environ, **ONE_THREAD}
        environment.pop(ROLES_TOKEN, None)
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._tell(msgspec.json.encode(space))

    def __enter__(self) -> Proposer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def answer(self, evaluations: Evaluations) -> Proposed | None:
        """What it proposes now that it knows these too; None where nothing is wanted, or nothing new can be had.

        Raises:
            OSError: the process has ended. ProtocolError: it did while it was asked.
        """
        self._tell(encode(evaluations))
        return (
            proposed_of(self._process.stdout.readline())
            if evaluations.wanted and self._process.stdout
            else None
        )

    def _tell(self, line: bytes) -> None:
        if self._process.stdin:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
