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
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from run_benchmarks.commands import run_command
from run_benchmarks.plan.host_ranges import MOST_HOSTS
from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets
from run_benchmarks.plan.values import host_name
from run_benchmarks.run_log import LOGGER, LineFile
from utils.errors import FlagPerfError
from utils.text_files import shortened

ATTEMPTS, RETRY_S = 20, 0.05
# Characters of a text. A failure has three that a host may fill, and an attempt fails once: with its notes that is some
# 20 KB, so that what ten thousand rounds say stays a file that is read whole.
LONGEST_FACT = 2000
MOST_SAID = 5  # of what is wrong in one
ROOM = 2**20  # bytes, for what becomes of rounds when the disk is full: of 256 nodes a stage has some 100 KiB


class Journal:
    """Appends to `<run>/journal.jsonl`, which it makes with mode 0600.

    Each line: `time` (seconds since the epoch), `event` and its facts.

    Args:
        secrets: what no fact shows.
        is_taken_over: it is that of a run whose controller has died, to be continued.

    Raises:
        FlagPerfError: nobody can be certain that no other process continues it too.
    """

    def __init__(self, path: Path, secrets: Secrets = NO_SECRETS, *, is_taken_over: bool = False) -> None:
        self._secrets = secrets
        flags = os.O_NOFOLLOW if is_taken_over else os.O_CREAT
        # for its owner alone, as plan.json: who can open it can lock it, and so speak for the controller
        number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
        self._lock = os.fdopen(number, "rb")
        try:
            doubt = "" if _hold(self._lock) else "another process has locked it"
        except OSError as error:  # a file system without locks
            doubt = f"it cannot be locked ({error.strerror})"
        if doubt and is_taken_over:
            self._lock.close()
            remedy = f"see whether that goes on: {run_command('status', str(path.parent))}"
            raise FlagPerfError(f"the run may have a controller: {doubt}", where=str(path), remedy=remedy)
        if doubt:
            LOGGER.warning(f"{path}: {doubt}, so that nobody can tell how long this run goes on")
        self._file = LineFile(path, ROOM)

    def close(self) -> None:
        """Close the file and let go of it."""
        self._file.close()
        self._lock.close()

    def write(self, event: str, **facts: Any) -> None:
        """Record that `event` happened now."""
        shown = _bounded(self._secrets.hide_in(facts, names=False))
        record = {"time": round(time.time(), 3), "event": event, **shown}
        self._file.write(json.dumps(record, default=str) + "\n")


def _bounded(value: Any) -> Any:
    """Plain data, each text of which is bounded: who takes a round up needs no more of what a host has said."""
    if isinstance(value, str):
        return shortened(value, LONGEST_FACT)
    if isinstance(value, Mapping):
        return {name: _bounded(item) for name, item in value.items()}
    return [*map(_bounded, value)] if isinstance(value, (list, tuple)) else value


def _hold(file: BinaryIO) -> bool:
    """Lock the file as long as it is open; whether it could be. Who asks whether the run goes on has it for a moment.

    Raises:
        OSError: the file system has no locks.
    """
    for _ in range(ATTEMPTS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(RETRY_S)
    return False


def is_held(path: Path) -> bool | None:
    """Whether the controller that writes this journal lives; None where that cannot be told."""
    try:
        # a link may lead to any other file
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", 0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def nodes_of_run(
    journal: Sequence[Mapping[str, Any]], where: str
) -> tuple[list[str], dict[str, FlagPerfError]]:
    """The hosts that a scheduler had granted, by the entries `acquired`; and where -> what is wrong with them, if any.

    Args:
        where: the journal's file.
    """
    nodes: set[str] = set()
    wrong: dict[int, str] = {}
    for number, entry in enumerate(journal, 1):
        hosts = entry.get("hosts") if entry.get("event") == "acquired" else None
        for host in hosts if isinstance(hosts, list) else ():
            try:
                nodes.add(host_name(host if isinstance(host, str) else ""))
            except UnfitError as error:
                wrong[number] = f"entry {number}: {shortened(repr(host), 100)} {error.message}"
    said = [*islice(wrong.values(), MOST_SAID)]
    if len(nodes) > MOST_HOSTS:
        said.append(f"of {len(nodes)} only {MOST_HOSTS} are looked at")
    message, remedy = f"its nodes are not all known: {'; '.join(said)}", "correct it, and do this again"
    errors = {where: FlagPerfError(message, where=where, remedy=remedy)} if said else {}
    return sorted(nodes)[:MOST_HOSTS], errors


def kept_folders(journal: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The node folders that stay on their hosts, by the entries `kept` and `collected`."""
    kept: set[str] = set()
    for entry in journal:
        if entry.get("event") == "kept":
            kept.discard(str(entry.get("instead_of")))
            kept.add(str(entry.get("folder")))
        elif entry.get("event") == "collected":
            kept.discard(str(entry.get("folder")))
    return frozenset(kept)
