"""Units without containers: a process tree that outlives the connection which started it.

    python3 process_unit.py start FOLDER WORKDIR K=V... -- ARGV...    K=V: labels
    python3 - wait FOLDER                                prints the exit code, once there is one
    python3 - stop FOLDER GRACE_S                        SIGTERM to the tree, SIGKILL to what is left
    python3 - list UNITS [RUN]                           a line of JSON a unit, of one run or of all
    python3 - remove UNITS RUN GRACE_S                   end and remove a run's units; prints their names

A unit's processes are found by a mark in their environment, which all that they start inherit, and by descent: no PID
is written down, so none can be taken for another. FOLDER is UNITS/NAME, with unit.json, output.log and exit_code. What
is no unit of ours is left alone: UNITS may have gone since, and another user's be in its place, so that this file comes
by standard input later on. Standard library, Python 3.8 or later, Linux.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

UNIT_MARK, RUN_MARK, SUPERVISOR_MARK = "FLAGPERF_UNIT", "FLAGPERF_RUN", "FLAGPERF_SUPERVISOR"
MARK = re.compile(rb"FLAGPERF_\w+=")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # of a unit: a path that is made of it stays in its folder
RUN_LABEL = "flagperf.run"
REFUSED = 125  # as `docker run` exits where it starts nothing
UNKNOWN_END = 137  # nobody saw how the main process ended: never taken for a success
KILL_PATIENCE_S = 10.0
PR_SET_CHILD_SUBREAPER = 36
DELETE = (  # $0: a unit. What it has closed to us is opened; unit.json goes last, by which the unit is listed
    '[ -d "$0" ] || exec rm -f "$0"; find "$0" -xdev -type d ! -perm -700 -exec chmod u+rwx {} \\;; '
    'find "$0" -xdev -mindepth 1 ! -path "$0/unit.json" -delete && exec rm -rf "$0"'
)


class Process(NamedTuple):
    """A live process; marks: those of its environment entries that are FlagPerf's, as `NAME=value`."""

    pid: int
    parent: int
    marks: frozenset[str]


def start(folder: Path, *words: str) -> None:
    """Start a unit in the background, with this command's environment; returns once its main process runs."""
    end = words.index("--")
    argv, labels = words[end + 1 :], dict(word.split("=", 1) for word in words[1:end])
    if not NAME.fullmatch(folder.name):
        _fail(f"not a name for a unit: {folder.name!r}", REFUSED)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        _fail(f"a unit named {folder.name} exists: {folder}", REFUSED)
    about = {"name": folder.name, "labels": labels, "argv": argv, "host": os.uname().nodename}
    marks = {UNIT_MARK: folder.name, RUN_MARK: labels.get(RUN_LABEL, ""), SUPERVISOR_MARK: folder.name}
    try:
        (folder / "unit.json.partial").write_text(json.dumps(about))
        (folder / "unit.json.partial").replace(folder / "unit.json")  # whoever reads it reads all of it
        (folder / "exit_code").write_text("    ")  # room for it: the disk may be full by then
        trouble = _supervised(folder, {**os.environ, **marks}, [words[0], *argv])
    except OSError as error:  # a full disk, say: a folder that no unit.json tells of would never be removed
        trouble = str(error)
    if trouble:
        subprocess.run(["rm", "-rf", "--", str(folder)])
        _fail(trouble, REFUSED)


def _supervised(folder: Path, env: dict[str, str], words: list[str]) -> str:
    """Start the supervisor; why the main process could not be started, if it could not."""
    (trouble_end, tell), null = os.pipe(), subprocess.DEVNULL
    argv = [sys.executable, "-I", __file__, "supervise", str(folder), str(tell), *words]
    with (folder / "output.log").open("ab") as log:
        subprocess.Popen(
            argv, env=env, stdin=null, stdout=log, stderr=log, pass_fds=[tell], start_new_session=True
        )
    os.close(tell)
    with os.fdopen(trouble_end) as pipe:
        return pipe.read()


def supervise(folder: Path, tell: str, workdir: str, *argv: str) -> None:
    """Start the main process, wait for it, end what it leaves behind, write down its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # not SIG_IGN, which would be inherited
        signal.signal(number, lambda *_: None)
    # the parent of what loses its own, so that descent is never broken; without it the mark must do
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    env = {name: value for name, value in os.environ.items() if name != SUPERVISOR_MARK}
    # now: the unit may put anything in the place of the one, and close the other
    exit_code, own = os.open(folder / "exit_code", os.O_WRONLY), os.open(folder, os.O_RDONLY)
    try:
        main = subprocess.Popen(argv, cwd=workdir, env=env, start_new_session=True)
    except OSError as error:
        os.write(int(tell), f"{error.filename or argv[0]}: {error.strerror}".encode())
        return
    os.close(int(tell))
    code = _reap(main.pid)
    _kill_until_none(lambda: _tree(f"{UNIT_MARK}={folder.name}"))
    _reap()
    os.write(exit_code, b"%d" % code)
    os.fchmod(own, 0o700)


def wait(folder: Path) -> None:
    """Print the unit's exit code, once it has ended."""
    _wait_for_supervisor(folder.name)
    print(_code_of_ended(folder))


def stop(folder: Path, grace_s: str) -> None:
    """End the unit; it is no error if it has ended."""
    _end(lambda: _tree(f"{UNIT_MARK}={folder.name}"), float(grace_s))
    _end_supervisor(folder.name)
    _code_of_ended(folder)


def list_units(units: Path, run: str | None = None) -> None:
    """Print this host's units: those with a folder, and those whose folder is gone but that still run."""
    _enter(units)
    table = _processes()
    for name, labels in _labels_by_name(table, run).items():
        running = any(f"{UNIT_MARK}={name}" in process.marks for process in table)
        print(json.dumps({"name": name, "labels": labels, "running": running}))


def remove(units: Path, run: str, grace_s: str) -> None:
    """End and remove the run's units on this host; print the names of those that were there."""
    _enter(units)
    names = _labels_by_name(_processes(), run)
    _end(lambda: _tree(f"{RUN_MARK}={run}"), float(grace_s))
    for name in names:
        _end_supervisor(name)
        subprocess.run(["sh", "-c", DELETE, name])
        print(name)
    if left := list(filter(os.path.lexists, names)):
        _fail(f"could not be deleted as a whole, see `ls -lR {units}`: {', '.join(left)}", 1)


def _enter(units: Path) -> None:
    """Go into the folder of units, and stay in it whatever becomes of its path; nowhere where it is not this user's."""
    try:
        for folder, open_to_others in ((units.parent, 0o022), (units.name, 0)):
            os.chdir(handle := os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW))
            if os.fstat(handle).st_uid != os.geteuid() or os.fstat(handle).st_mode & open_to_others:
                raise PermissionError("others may write there")
    except OSError as error:
        os.chdir("/proc/sys")  # nobody can put a unit there
        if not isinstance(error, FileNotFoundError):
            print(f"left alone, for it is no folder of ours: {str(units)!r}: {error}", file=sys.stderr)


def _tree(mark: str) -> list[int]:
    """Processes with the mark and all their descendants; a supervisor that is none of these ends later."""
    table = _processes()
    tree = {process.pid for process in table if mark in process.marks}
    while children := {process.pid for process in table if process.parent in tree} - tree:
        tree |= children
    claim = {each.pid for each in table if any(mark.startswith(SUPERVISOR_MARK) for mark in each.marks)}
    return [each.pid for each in table if each.pid in tree and (each.parent in tree or each.pid not in claim)]


def _processes() -> list[Process]:
    return list(filter(None, map(_process, Path("/proc").glob("[0-9]*"))))


def _process(entry: Path) -> Process | None:
    try:
        status = (entry / "status").read_bytes()
        values = dict(line.split(b":", 1) for line in status.splitlines() if b":" in line)
        # anybody can start a program with our marks, and by sudo as root: only what is this user's alone has any
        is_ours = set(values[b"Uid"].split()) == {b"%d" % os.geteuid()}
        environ = (entry / "environ").read_bytes() if is_ours else b""
    except OSError:  # it has ended, or nobody may look at it
        return None
    if values[b"State"].split()[0] in (b"Z", b"X") or not (is_ours or os.geteuid() == 0):
        return None
    marks = (item.decode(errors="replace") for item in environ.split(b"\0") if MARK.match(item))
    return Process(int(entry.name), int(values[b"PPid"]), frozenset(marks))


def _supervisors(name: str) -> list[int]:
    return [process.pid for process in _processes() if f"{SUPERVISOR_MARK}={name}" in process.marks]


def _labels_by_name(table: Iterable[Process], run: str | None) -> dict[str, dict[str, str]]:
    """Name -> labels of this host's units, of a run or all. Their folder, which we are in, hosts may share (NFS)."""
    labels: dict[str, dict[str, str]] = {}
    for file in sorted(Path().glob("*/unit.json")):
        try:
            plain = file.is_file() and not file.is_symlink() and not file.parent.is_symlink()
            if not (plain and NAME.fullmatch(file.parent.name) and file.stat().st_size < 2**20):
                raise ValueError("its name, a link, or its size")
            about = json.loads(file.read_text())
            if about["host"] == os.uname().nodename:
                labels[file.parent.name] = {str(key): str(value) for key, value in about["labels"].items()}
        except Exception as error:  # whatever a stranger put there
            print(f"left alone, no unit of ours: {str(file.parent.absolute())!r}: {error!r}", file=sys.stderr)
    for process in table:
        values = dict(mark.split("=", 1) for mark in process.marks)
        if NAME.fullmatch(values.get(UNIT_MARK, "")):
            labels.setdefault(values[UNIT_MARK], {RUN_LABEL: values.get(RUN_MARK, "")})
    return {name: each for name, each in labels.items() if run in (None, each.get(RUN_LABEL))}


def _end(find: Callable[[], list[int]], grace_s: float) -> None:
    deadline = time.monotonic() + grace_s
    if grace_s > 0:
        pids = find()  # told to end, Slurm's srun has its tasks killed at once; left alone, it follows them
        _signal(list(filter(_is_no_srun, pids)) or pids, signal.SIGTERM)
    while time.monotonic() < deadline and find():
        time.sleep(0.05)
    _kill_until_none(find)


def _is_no_srun(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_bytes() != b"srun\n"
    return False


def _kill_until_none(find: Callable[[], list[int]]) -> None:
    """SIGKILL until none is left: one may have started another in between."""
    deadline = time.monotonic() + KILL_PATIENCE_S
    while pids := find():
        if time.monotonic() > deadline:
            _fail(f"these processes cannot be killed: {pids} (see `ps -o stat,wchan`)", 1)
        _signal(pids, signal.SIGKILL)
        time.sleep(0.02)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):  # has ended, or became another user's
            os.kill(pid, number)


def _end_supervisor(name: str) -> None:
    """Let it write down how its unit ended; one that somebody has stopped goes on, one that hangs is killed."""
    _signal(_supervisors(name), signal.SIGCONT)
    _wait_for_supervisor(name, KILL_PATIENCE_S)
    _signal(_supervisors(name), signal.SIGKILL)


def _wait_for_supervisor(name: str, patience_s: float | None = None) -> None:
    """Return when the unit's supervisor has ended: an event, except on Python 3.8 and before Linux 5.3."""
    for pid in _supervisors(name):
        try:
            handle = os.pidfd_open(pid)
        except (AttributeError, OSError):  # it may have ended, too
            while pid in _supervisors(name):
                time.sleep(0.2)
            continue
        if pid in _supervisors(name):  # and not another process that got its PID in between
            select.select([handle], [], [], patience_s)
        os.close(handle)


def _reap(until: int | None = None) -> int:
    """Reap children until the one with PID `until` ends, or all have; its exit code, as a shell gives it."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.wait()
            if pid == until:
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    return UNKNOWN_END


def _code_of_ended(folder: Path) -> int:
    """The exit code of a unit whose supervisor has gone. Where it was killed, the rest is ended here."""
    _enter(folder.parent)
    if not Path(folder.name).is_dir():
        _fail(f"the unit was removed: {folder}", 1)
    try:  # the unit, whose folder it is, may have put a pipe there, or a link
        return int(os.read(os.open(f"{folder.name}/exit_code", os.O_NOFOLLOW | os.O_NONBLOCK), 20))
    except (OSError, ValueError):
        _kill_until_none(lambda: _tree(f"{UNIT_MARK}={folder.name}"))
        return UNKNOWN_END


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


VERBS: dict[str, Callable[..., None]] = {
    verb.__name__.partition("_")[0]: verb for verb in (start, supervise, wait, stop, list_units, remove)
}

if __name__ == "__main__":
    VERBS[sys.argv[1]](Path(sys.argv[2]).absolute(), *sys.argv[3:])
