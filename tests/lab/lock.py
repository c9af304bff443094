"""One lab of a number at a time: a file lock, which the kernel drops however its holder ends."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab.commands import LabError


@dataclass(frozen=True)
class Record:
    """What the lock file says about the lab.

    `kept`: it was made by hand and outlives the process `pid` that made it. `forwarded`: this machine
    forwarded packets before.
    """

    pid: int
    folder: str
    hosts: int
    kept: bool
    forwarded: bool


class MachineLock:
    """The lock; held from `acquire` to `release` or to the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def acquire(self, wait_seconds: float) -> None:
        """Takes the lock.

        Raises:
            LabError: another process still has it after `wait_seconds`, or this one has it already.
        """
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + wait_seconds
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = self.read()
                mine = holder is not None and holder.pid == os.getpid()
                if mine or time.monotonic() > deadline:
                    os.close(file)
                    raise LabError(
                        self._refusal(holder), "end it first, or make another lab: FLAGPERF_LAB=2"
                    ) from None
                if not told:
                    print(f"lab: waiting: {self._refusal(holder)}", file=sys.stderr, flush=True)
                    told = True
                time.sleep(0.2)
        self._file = file

    def _refusal(self, holder: Record | None) -> str:
        return f"process {holder.pid if holder else '(unknown)'} has this lab (lock {self.path})"

    def read(self) -> Record | None:
        """What stands in the lock file; None: there is no lab."""
        try:
            return Record(**json.loads(self.path.read_text()))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def write(self, record: Record | None) -> None:
        """Notes which lab there is (None: none); only for the holder."""
        self.path.write_text(json.dumps(asdict(record)) if record else "")

    @property
    def held(self) -> bool:
        return self._file is not None

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
