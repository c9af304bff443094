"""The run's journal: one line of JSON a state change, flushed, so that a run can be followed and resumed.

Its controller holds a lock on it (flock), which the kernel lets go of however the controller ends: so whoever sees
the file can tell whether the run still goes on.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from run_benchmarks.plan.secrets import NO_SECRETS, Secrets
from run_benchmarks.run_log import LOGGER, LineFile

ATTEMPTS, RETRY_S = 20, 0.05


class Journal:
    """Appends to `<run>/journal.jsonl`, which it makes with mode 0600.

    Each line: `time` (seconds since the epoch), `event` and its facts.

    Args:
        secrets: what no fact shows.
    """

    def __init__(self, path: Path, secrets: Secrets = NO_SECRETS) -> None:
        self._secrets = secrets
        # for its owner alone, as plan.json: who can open it can lock it, and so speak for the controller
        self._lock = open(path, "a+b", opener=partial(os.open, mode=0o600))  # noqa: SIM115 - held on to
        self._file = LineFile(path)
        with suppress(OSError):  # a file system without locks: then nobody can tell, and the run goes on
            _hold(self._lock, path)

    def close(self) -> None:
        """Close the file and let go of it."""
        self._file.close()
        self._lock.close()

    def write(self, event: str, **facts: Any) -> None:
        """Record that `event` happened now."""
        record = {"time": round(time.time(), 3), "event": event, **self._secrets.hide_in(facts, names=False)}
        self._file.write(json.dumps(record, default=str) + "\n")


def _hold(file: BinaryIO, path: Path) -> None:
    """Lock the file as long as it is open. Who asks just now whether the run goes on has it for a moment."""
    for _ in range(ATTEMPTS):
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(RETRY_S)
        else:
            return
    LOGGER.warning(
        f"{path}: another process has locked it, so that nobody can tell how long this run goes on"
    )


def is_held(path: Path) -> bool | None:
    """Whether the controller that writes this journal lives; None where that cannot be told."""
    try:
        # NFS wants a file that can be written for this lock; a link may lead to any other one
        with os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "r+b", 0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False
