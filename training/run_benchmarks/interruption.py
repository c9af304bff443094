"""How a run is asked to end in order: by a signal, or by `run.py stop` on any machine that sees its result folder."""

from __future__ import annotations

import asyncio
import os
import platform
import pwd
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from run_benchmarks.program import signals_restored
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import Session
from utils.errors import FlagPerfError
from utils.text_files import entered, one_line, opened, shortened

REQUEST = "stop_requested"  # in the run's folder, until it is heeded
LOOK_EVERY_S = 1.0
LONGEST_NAME = 200  # bytes of who asks


def asker_here() -> str:
    """Who asks on this machine."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may have no name for it
        user = f"the user {os.getuid()}"
    return f"{user} on {platform.node()}"


def stop_of(asker: str) -> str:
    """What ends a run that is stopped from elsewhere."""
    return f"`run.py stop` of {asker}"


def request_stop(folder: Path) -> None:
    """Ask the controller of the run in `folder` to end it; asking twice is asking once.

    Args:
        folder: without a link on the way to it. Its owner may put one there meanwhile, to the folder of another run.

    Raises:
        FlagPerfError: the folder cannot be written.
    """
    try:
        with entered(folder, Path(folder.anchor)) as place:
            number = os.open(REQUEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=place)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(asker_here())
    except (
        FileExistsError
    ):  # it is asked again: of a request of before this a controller that takes over thinks nothing
        with suppress(OSError):
            os.utime(folder / REQUEST, follow_symlinks=False)
    except OSError as error:
        remedy = "ask as the user whose run it is, or end it on its machine: Ctrl-C, `kill PID`"
        raise FlagPerfError(
            f"the run cannot be asked to stop: {error.strerror}", where=str(folder), remedy=remedy
        ) from error


def take_request(folder: Path) -> str | None:
    """Who has asked for the end of the run in `folder`; None where nobody has. The request is gone then."""
    path = folder / REQUEST
    if not path.is_symlink() and not path.exists():
        return None
    asker = "somebody"
    with suppress(FlagPerfError), opened(path, LONGEST_NAME) as file:
        asker = one_line(shortened(file.read(LONGEST_NAME).decode("utf-8", "replace"), LONGEST_NAME)) or asker
    with suppress(OSError):
        path.unlink()
    return asker


def request_in(folder: Path) -> tuple[int, int] | None:
    """Which request lies in the folder of a run, by its inode and its last change in ns; None for none."""
    try:
        status = (folder / REQUEST).lstat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def drop_request(folder: Path, earlier: tuple[int, int] | None) -> None:
    """Forget a request that a controller which has died did not heed.

    Args:
        earlier: which one lay there before this controller had the run; what was asked since then is heeded.
    """
    if earlier is not None and request_in(folder) == earlier:
        take_request(folder)


@contextmanager
def interruptible(
    session: Session, earlier: Sequence[signal.Signals], stopped_by: str = ""
) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM, the loss of the terminal and `run.py stop` end the run in order.

    A further one skips no clean-up. `earlier`: signals that have come already. stopped_by: who asked `run.py stop`
    for the end of this run before it was taken up, or empty.
    """
    loop = asyncio.get_running_loop()

    def ask(by: str) -> None:
        if session.interrupt.is_set():
            session.hurried.set()
            LOGGER.warning("still stopping and cleaning up on every host; please wait")
        else:
            session.interrupt.ask(by)
            session.display.interrupted()
            LOGGER.warning(f"interrupted by {by}: stopping and cleaning up on every host")
            session.journal.write("interrupted", by=by)

    def ask_by_signal(by: str) -> None:
        session.signalled.ask(by)
        ask(by)

    async def heed_requests() -> None:
        while (asker := take_request(session.log_dir)) is None:
            await asyncio.sleep(LOOK_EVERY_S)
        ask(stop_of(asker))

    with signals_restored() as numbers:
        for number in numbers:
            loop.add_signal_handler(number, partial(ask_by_signal, number.name))
        if stopped_by:
            ask(stop_of(stopped_by))
        for number in earlier:
            ask_by_signal(number.name)
        heeding = loop.create_task(heed_requests())
        try:
            yield
        finally:
            heeding.cancel()
            for number in numbers:
                loop.remove_signal_handler(number)
