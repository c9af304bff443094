"""The program around a verb: its standard streams, and the signals that end it wherever it is.

It imports hardly anything, for a signal may come while that is loaded.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from run_benchmarks.exit_code import ExitCode


def run_program(work: Callable[[], int]) -> int:
    """The exit code of `work`; a signal that ends the program is said in a sentence, and gives 130."""
    _open_closed_streams()
    # Of what is made here nothing may be open to everybody, or a run's folder is refused as soon as it is there. The
    # group is the user's choice, but not root's. A stricter umask stays as it is.
    os.umask(os.umask(0o077) | (0o022 if os.geteuid() == 0 else 0o002))
    for number in _ending_signals():
        signal.signal(number, _interrupt)
    try:
        return work()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python before 3.12 wraps what comes while a class is made
        interrupt = error.__cause__ if isinstance(error, RuntimeError) else error
        if not isinstance(interrupt, KeyboardInterrupt):
            raise
        _set_all(signal.SIG_IGN)  # a further one must not end this with a traceback
        with suppress(OSError):  # the terminal may be what has gone
            print(f"interrupted by {interrupt}" if str(interrupt) else "interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    finally:
        _flush_or_discard()
        _set_all(signal.SIG_DFL)  # Python takes a while to end, and has nothing more to say


def discard_output() -> None:
    """Let what is still buffered for standard output go nowhere: Python would end with an error of its own."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def signals_kept() -> Iterator[list[signal.Signals]]:
    """Signals that would end the program are put into the list meanwhile, for who asks for them."""
    kept: list[signal.Signals] = []
    with signals_restored() as numbers:
        for number in numbers:
            signal.signal(number, lambda number, _: kept.append(signal.Signals(number)))
        yield kept


@contextmanager
def signals_restored() -> Iterator[list[signal.Signals]]:
    """The signals that end the program; what they do is afterwards as it is now."""
    before = {number: signal.getsignal(number) for number in _ending_signals()}
    try:
        yield list(before)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending_signals() -> list[signal.Signals]:
    """Ctrl-C, SIGTERM, and the loss of the terminal, but where that is ignored, as `nohup` has it."""
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if outlives_terminal else [signal.SIGHUP])]


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _set_all(handler: signal.Handlers) -> None:
    for number in _ending_signals():
        signal.signal(number, handler)


def _open_closed_streams() -> None:
    """Give a standard stream that was closed (`>&-`) a file: no socket may take its number.

    What is written to standard output then fails as it does where it is closed; standard error says nothing.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _flush_or_discard() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
