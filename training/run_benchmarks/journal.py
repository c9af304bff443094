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
from pathlib import Path
from typing import Any

from run_benchmarks.plan.secrets import NO_SECRETS, Secrets
from run_benchmarks.run_log import LineFile


class Journal:
    """Appends to `<run>/journal.jsonl`. Each line: `time` (seconds since the epoch), `event` and its facts.

    Args:
        secrets: what no fact shows.
    """

    def __init__(self, path: Path, secrets: Secrets = NO_SECRETS) -> None:
        self._secrets = secrets
        self._file = LineFile(path)
        self._lock = path.open("r+b")
        with suppress(OSError):  # a file system without locks: then nobody can tell, and the run goes on
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def close(self) -> None:
        """Close the file and let go of it."""
        self._file.close()
        self._lock.close()

    def write(self, event: str, **facts: Any) -> None:
        """Record that `event` happened now."""
        record = {"time": round(time.time(), 3), "event": event, **self._secrets.hide_in(facts, names=False)}
        self._file.write(json.dumps(record, default=str) + "\n")


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
