"""What Slurm's commands print of a job, read: `scontrol show job`, and its energy from `sacct`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from run_benchmarks.hosts.base import NoAnswerError
from run_benchmarks.plan.slurm import nodes_in
from utils.numbers import whole
from utils.text_files import shortened

# Characters that are shown: of a record, of one of its fields, and in an error. The whole record is read before.
LONGEST_RECORD, LONGEST_FIELD, LONGEST_QUOTE = 2**14, 2**10, 200
SHOW_JOB = "scontrol show job --oneliner"
PENDING, RUNNING, COMPLETING = "PENDING", "RUNNING", "COMPLETING"
SUSPENDED, STOPPED = "SUSPENDED", "STOPPED"
LIVE = frozenset(
    {
        PENDING,
        RUNNING,
        COMPLETING,
        "CONFIGURING",
        SUSPENDED,
        "RESIZING",
        "SIGNALING",
        STOPPED,
        "STAGE_OUT",
    }
)
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*)=(\S*)")
_NOTHING = ("", "(null)", "N/A", "Unknown", "None", "n/a")


class SlurmError(NoAnswerError):
    """A command of Slurm's failed."""


class UnreadableError(SlurmError):
    """Slurm has answered, and what it printed cannot be read; to ask again may not help."""

    may_pass = False

    def __init__(self, why: str, command: str) -> None:
        remedy = (
            f"see what `{command}` prints: where that is as it should be, it is a fault of FlagPerf's, to be reported; "
            "of hosts that HOSTS lists by name no record of Slurm's is read"
        )
        super().__init__(f"what `{command}` prints cannot be read: {why}", where="slurm", remedy=remedy)


@dataclass(frozen=True)
class Job:
    """A job as `scontrol` tells of it; `fields` by Slurm's names, `text` all of it, as far as it is shown."""

    id: str
    state: str
    nodes: tuple[str, ...]
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Whether it is still to come, runs, or is being ended."""
        return self.state in LIVE

    @property
    def has_begun(self) -> bool:
        """Whether it has its nodes and keeps them: it runs, or goes on once Slurm lets it, as where it is suspended."""
        return self.is_live and self.state not in (PENDING, COMPLETING)

    def time(self, name: str) -> float | None:
        """A moment, in seconds since the epoch."""
        try:
            return datetime.fromisoformat(self.fields.get(name, "")).timestamp()
        except (ValueError, OverflowError):
            return None


def fields_of(record: str) -> dict[str, str]:
    """What stands in a line of scontrol. Of a field that stands twice the first counts: texts come later."""
    return dict(reversed(_FIELD.findall(record)))


def record_of(job: str, printed: str) -> str:
    """The job's own record in what `scontrol show job` has printed: of an array's job it prints all; else all of it."""
    records = re.split(r"^(?=JobId=)", printed, flags=re.MULTILINE)
    return next((each for each in records if each.startswith(f"JobId={job} ")), printed).strip()


def job_in(record: str, asked: str = "") -> Job:
    """The job of a line of `scontrol show job`.

    Args:
        asked: its ID, where that is known.

    Raises:
        UnreadableError: it is none, or another.
    """
    told = {name: value for name, value in fields_of(record).items() if value not in _NOTHING}
    missing = {"JobId", "JobState"} - told.keys()
    if missing:
        quoted = shortened(record, LONGEST_QUOTE)
        raise UnreadableError(f"there is no {' and no '.join(sorted(missing))}: {quoted!r}", SHOW_JOB)
    if asked and told["JobId"] != asked:
        raise UnreadableError(
            f"it is of job {shortened(told['JobId'], LONGEST_FIELD)}, not of {asked}", SHOW_JOB
        )
    listed = told.get("NodeList", "")
    try:
        nodes = nodes_in(listed)
    except ValueError as error:
        quoted, why = shortened(listed, LONGEST_QUOTE), shortened(str(error), LONGEST_QUOTE)
        raise UnreadableError(f"the NodeList of job {told['JobId']}, {quoted!r}: {why}", SHOW_JOB) from error
    known = {name: shortened(value, LONGEST_FIELD) for name, value in told.items()}
    return Job(known["JobId"], known["JobState"], nodes, shortened(record, LONGEST_RECORD), known)


def energy_in(accounting: Sequence[Sequence[str]], nodes: int) -> float | None:
    """J of all nodes from a job's start to its end; None where Slurm's accounting has none.

    Steps that run side by side on a node each count all of its energy, so they are never added: the `extern` step alone
    is on all nodes for all of that time.
    """
    for job, *_, count, energy in accounting:
        joules = whole(energy) or 0
        if job.endswith(".extern") and count == str(nodes) and joules > 0:
            return float(joules)
    return None
