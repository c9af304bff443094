"""What `run.py` exits with."""

from __future__ import annotations


class ExitCode:
    """The exit codes; `run.py --help` and the README say them to the user."""

    SUCCESS = 0
    NOT_CONVERGED = 1
    BAD_CONFIG = 2
    UNHEALTHY = 3
    NO_VALID_CASE = 4
    INTERRUPTED = 130
    NOBODY_READ_ON = 141  # as a shell says of a command that SIGPIPE ended
