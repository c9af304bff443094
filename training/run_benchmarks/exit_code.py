"""What `run.py` exits with."""

from __future__ import annotations

from collections.abc import Mapping


class ExitCode:
    """The exit codes; `run.py --help`, the last line of a run's log and the README say them to the user."""

    SUCCESS = 0
    NOT_CONVERGED = 1
    CHECK_FAILED = 1
    BAD_CONFIG = 2
    UNHEALTHY = 3
    NO_VALID_CASE = 4
    GATE_FAILED = 5
    NOT_COMPARABLE = 6
    NOT_PRINTED = 74  # EX_IOERR of sysexits.h
    INTERRUPTED = 130
    NOBODY_READ_ON = 141  # as a shell says of a command that SIGPIPE ended


MEANINGS: Mapping[int, str] = {
    ExitCode.SUCCESS: "every round of every case converged, or was measured where it has no target",
    ExitCode.NOT_CONVERGED: "a round did not converge, or the run broke off; or a check of `vendor check` failed",
    ExitCode.BAD_CONFIG: "the configuration or the command line is wrong: nothing was launched, written or removed",
    ExitCode.UNHEALTHY: "a host is not healthy",
    ExitCode.NO_VALID_CASE: "no case is valid",
    ExitCode.GATE_FAILED: "a condition of `compare --fail-if` holds, or nobody can tell",
    ExitCode.NOT_COMPARABLE: "`compare` was given what is not comparable",
    ExitCode.NOT_PRINTED: "what `plan`, `show` or `cleanup` had to say could not be printed",
    ExitCode.INTERRUPTED: "interrupted",
}
