"""Errors that nobody foresaw: what is said of them, without credentials, and what they mean for the one host."""

from __future__ import annotations

import traceback

from run_benchmarks.full_disk import FULL, REMEDY, full_text, is_full, unwritten_file
from run_benchmarks.plan.redact import redact_text
from run_benchmarks.run_log import LOGGER, log_full_disk
from utils.errors import FlagPerfError, raised
from utils.records import FailureClass, Stage


class UnforeseenError(FlagPerfError):
    """What `contained` makes of an error: a fault of the program, or an answer that no host should give."""

    failure_class = FailureClass.CONTROLLER_ERROR


def contained(error: Exception) -> FlagPerfError:
    """The error as one of the host that it came from, so that no other is lost to it; the log has its traceback."""
    if isinstance(error, FlagPerfError):
        return error
    return UnforeseenError(_logged(error), remedy=remedy_for(error))


def log_traceback(stage: Stage, error: Exception) -> None:
    """Say that there was an error at a stage; where in the program it came from is kept in the log's file."""
    _logged(error, f" at the stage {stage.value}")


def _logged(error: Exception, where: str = "") -> str:
    if file := unwritten_file(error):
        log_full_disk(file)
        return full_text(file)
    what = FULL if is_full(error) else "an error that was not foreseen"
    message = f"{what}{where}: {sentence_of(error)}"
    LOGGER.bind(detail=traceback_text(error)).error(message)
    return message


def sentence_of(error: Exception) -> str:
    """An error in a line, without the credentials that a command in it may hold."""
    text = str(error) if isinstance(error, FlagPerfError) else raised(error)
    return redact_text(text.partition("\n")[0])


def traceback_text(error: Exception) -> str:
    """Where in the program `error` came from, without the credentials that a command in it may hold."""
    return redact_text("".join(traceback.format_exception(type(error), error, error.__traceback__))).rstrip()


def remedy_for(error: Exception) -> str:
    """What to do about an error of the controller."""
    if is_full(error):
        return REMEDY
    if isinstance(error, OSError):
        return "check the file on the controller that the message names"
    return "a fault of FlagPerf itself: report it with the traceback in flagperf_run.log"
