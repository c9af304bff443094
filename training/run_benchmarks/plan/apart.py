"""Code of configuration files and vendors, executed in a process of its own.

The controller goes on whatever that code does: it may end its process, never end, fill the memory, replace what
Python has, leave threads and processes. That is for its mistakes, not for its malice: it has the user's rights.
"""

from __future__ import annotations

import ctypes
import marshal
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from run_benchmarks.plan.printed import Printed
from utils.config_files import failure_in
from utils.errors import FlagPerfError
from utils.loading import code_name
from utils.text_files import shortened

# A file is read in a hundredth of a second; a framework that it imports may take many from a disk far away.
LIMIT_S = 30.0
# So much later a process is killed that does not even heed its own alarm: it hangs in a call to C.
GRACE_S = 3.0
MOST_BYTES = 2**26
SIZE_BYTES = 8  # of the number that goes before an answer: how many bytes it has
MARK_BYTES = 16  # before that number: what the code itself writes to the pipe begins otherwise
PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that comes when the parent ends
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST_TEXT = 2000  # characters of what an exception says
_FORK = multiprocessing.get_context("fork")  # of what is loaded here nothing has to be loaded again
_ENDLESS: dict[tuple[str, int, int], str] = {}  # what did not end, by its version, and where


def apart(work: Callable[[], Any], path: Path) -> Any:
    """What `work`, which executes the Python file `path`, returns: plain data.

    Raises:
        FlagPerfError: it raised something, ended its process, or was not done in LIMIT_S. A file that did not end once
            is not executed again: many cases may load the same one.
    """
    _refuse_endless(path)
    until = time.monotonic() + LIMIT_S + GRACE_S
    receiver, sender = _FORK.Pipe(duplex=False)
    printed, mark = Printed(path), os.urandom(MARK_BYTES)
    process = _FORK.Process(target=_work_and_end, args=(work, path, sender, mark, printed))
    # What a signal raises within a fork is swallowed there, and may leave a lock held.
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        process.start()
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        raise
    try:
        sender.close()
        printed.writer.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        if _received(receiver, printed, MARK_BYTES, until) != mark:
            raise _written_to(path)
        size = int.from_bytes(_received(receiver, printed, SIZE_BYTES, until), "big")
        if size > MOST_BYTES:
            raise ValueError(f"an answer of {size} bytes")
        answer = _received(receiver, printed, size, until)
        is_value, content = marshal.loads(answer)  # noqa: S302 - our own child wrote it
    except (EOFError, OSError, ValueError, TypeError) as error:  # no answer, or half of one
        process.join(GRACE_S)
        raise _ended(path, process.exitcode) from error
    finally:
        process.kill()
        if process.pid:
            with suppress(ProcessLookupError, PermissionError):  # it had no group yet
                os.killpg(process.pid, signal.SIGKILL)
        process.join()
        receiver.close()
        printed.end()
    if is_value:
        return content
    message, where, remedy, endless = content
    if endless:
        _ENDLESS[_version(Path(endless))] = where
    raise FlagPerfError(message, where=where, remedy=remedy)


def _received(receiver: Connection, printed: Printed, count: int, until: float) -> bytes:
    """The next `count` bytes. Half an answer is waited for no longer than a whole one, which `recv_bytes` would."""
    content = bytearray()
    while len(content) < count:
        pipes = [receiver] if printed.reader.closed else [receiver, printed.reader]
        left = until - time.monotonic()
        ready = wait(pipes, left) if left > 0 else []
        if not ready:
            raise _too_slow(str(printed.path))
        if printed.reader in ready:
            printed.pass_on()
        if receiver not in ready:
            continue
        chunk = os.read(receiver.fileno(), min(count - len(content), 2**16))
        if not chunk:
            raise EOFError
        content += chunk
    return bytes(content)


def _work_and_end(
    work: Callable[[], Any], path: Path, sender: Connection, mark: bytes, printed: Printed
) -> NoReturn:
    """Send what comes of `work` and end this process, which is the fork of one that has more to do."""
    with suppress(OSError, AttributeError):  # it hears nothing else where the code has blocked all signals
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()  # what it starts ends with it, and nothing of that waits for a terminal
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    signal.set_wakeup_fd(-1)  # an event loop's, which goes on in the other process
    printed.take_streams()
    signal.signal(signal.SIGALRM, lambda _, frame: _send(sender, mark, _not_done(path, frame)))
    sys.meta_path.insert(0, _NothingEndless(Path(code_name(path)).parent))
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        answer = marshal.dumps((True, work()))
        if len(answer) > MOST_BYTES:
            raise FlagPerfError(f"sets more than {MOST_BYTES} bytes", where=str(path), remedy="set less")
    except BaseException as error:  # the file's code may raise anything
        answer = _failed(error if isinstance(error, FlagPerfError) else _failure(path, error))
    _send(sender, mark, answer)


def _send(sender: Connection, mark: bytes, answer: bytes) -> NoReturn:
    signal.setitimer(signal.ITIMER_REAL, 0)
    with suppress(Exception):  # the code may have closed or replaced it
        sys.stderr.flush()
    with os.fdopen(sender.fileno(), "wb") as pipe:
        pipe.write(mark + len(answer).to_bytes(SIZE_BYTES, "big") + answer)
    os._exit(0)


def _failed(error: FlagPerfError, endless: str = "") -> bytes:
    texts = (error.message, error.where, error.remedy)
    return marshal.dumps((False, (*(shortened(text, LONGEST_TEXT) for text in texts), endless)))


def _not_done(path: Path, frame: FrameType | None) -> bytes:
    """What becomes of a `path` that was not done: the file of its folder is named that was being executed for it."""
    at, endless, folder = frame, "", Path(code_name(path)).parent
    while at is not None and not endless:
        file = at.f_code.co_filename
        is_its = at.f_code.co_name == "<module>" and Path(file).parent == folder
        at, endless = at.f_back, file if is_its else ""
    return _failed(_too_slow(_place(Path(endless) if endless else path, frame)), endless)


class _NothingEndless:
    """Stands before Python's own finders, and refuses a file of the folder that did not end once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if path is None:
            _refuse_endless(self.folder / f"{name}.py")


def _refuse_endless(path: Path) -> None:
    where = _ENDLESS.get(_version(path)) if _ENDLESS else None
    if where:
        raise _too_slow(where)


def _version(path: Path) -> tuple[str, int, int]:
    """What changes when a file is written."""
    with suppress(OSError):
        state = path.stat()
        return str(path), state.st_mtime_ns, state.st_size
    return str(path), 0, 0


def _failure(path: Path, error: BaseException) -> FlagPerfError:
    try:
        return failure_in(path, error)
    except Exception:  # the exception is the code's own, and so is the text of it
        return FlagPerfError(f"{type(error).__name__}, which cannot be shown", where=str(path))


def _place(path: Path, frame: FrameType | None) -> str:
    """`path` and the line of it that is executed."""
    name = code_name(path)
    while frame is not None:
        if frame.f_code.co_filename == name:
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return str(path)


def _too_slow(where: str) -> FlagPerfError:
    remedy = "see what it waits for there, or which loop does not end; it is executed as Python"
    return FlagPerfError(f"was not done after {LIMIT_S:g} s", where=where, remedy=remedy)


def _written_to(path: Path) -> FlagPerfError:
    message = "wrote to a descriptor that is not its own: the pipe by which FlagPerf reads what it sets"
    return FlagPerfError(message, where=str(path), remedy="remove os.write to what it has not opened itself")


def _ended(path: Path, code: int | None) -> FlagPerfError:
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    remedy = "remove what ends it (os._exit), or needs more memory than there is; it is executed as Python"
    return FlagPerfError(f"ended the process that executed it, {how}", where=str(path), remedy=remedy)
