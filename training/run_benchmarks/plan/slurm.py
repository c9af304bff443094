"""`HOSTS = slurm(...)` of `cluster_conf.py`: the job by which a case's hosts are asked for, or the one run.py is in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import islice
from operator import mul
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass as model

from run_benchmarks.plan import values
from run_benchmarks.plan.host_ranges import MOST_HOSTS, expand
from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.reader import Reader, fields_of

KEY = "slurm"  # of the dict that `slurm(...)` is; HOSTS = "slurm" stands for the job itself
# As sbatch reads it: minutes[:seconds], hours:minutes:seconds, days-hours[:minutes[:seconds]].
_TIME = r"\d+(:\d\d?){0,2}|\d+-\d\d?(:\d\d?){0,2}"
# Of a list of nodes: a comma in brackets ends none.
_ENTRY = re.compile(r"(?:[^,\[]|\[[^\]]*\]?)+")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
# What the job is for says these: another value would break it, or leave it behind.
_OURS = (
    "array", "chdir", "clusters", "comment", "error", "export", "export_file", "get_user_env", "input", "job_name",
    "no_kill", "no_requeue", "nodes", "output", "parsable", "quiet", "requeue", "test_only", "wait", "wrap",
)  # fmt: skip
# What is read of the others, by these names: what follows a job asks for the same.
_READ = ("account", "exclude", "partition", "qos", "reservation")


def slurm(**options: Any) -> dict[str, dict[str, Any]]:
    """What `cluster_conf.py` calls: plain data, which is checked later."""
    return {KEY: options}


def _time(value: Any) -> str:
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not re.fullmatch(_TIME, text, re.ASCII):
        remedy = 'write it as sbatch takes it: minutes, "hours:minutes:seconds" or "days-hours"'
        raise UnfitError("is no time limit", remedy)
    return text


def _seconds_of(time: str) -> float | None:
    """Seconds of a limit that `_time` lets pass, rounded up to the minute as Slurm does; None for 0, which is none."""
    days, dash, clock = time.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    units = [_HOUR_S, _MINUTE_S, 1] if dash or len(parts) > 2 else [_MINUTE_S, 1]
    seconds = int(days or 0) * _DAY_S + sum(map(mul, parts, units))
    return float(-(-seconds // _MINUTE_S) * _MINUTE_S) or None


@model(frozen=True)
class SlurmSettings:
    """The job that is asked for.

    time: its limit; empty leaves it to the partition. exclusive: no other job is on its nodes.
    hold: it is kept from case to case; else each round has a job of its own.
    save_before: seconds before its end at which a round is ended, so that its logs are saved.
    abandoned_after: seconds without a controller after which it ends itself; so long `run.py resume` may take it up.
    options: further words for sbatch. inside: none is asked for: run.py itself runs in it.
    """

    time: Annotated[str, BeforeValidator(lambda value: _time(value) if value else "")] = ""
    exclusive: values.Flag = True
    hold: values.Flag = False
    save_before: Annotated[values.NotNegative, Field(le=3600)] = 120.0
    abandoned_after: Annotated[values.Positive, Field(ge=10, le=86_400)] = 600.0
    options: tuple[str, ...] = field(default=())
    inside: bool = False

    @property
    def limit_s(self) -> float | None:
        """The job's time limit as Slurm takes it, in whole minutes; None where none is written here, or for 0."""
        return _seconds_of(self.time) if self.time else None

    @property
    def usable_s(self) -> float | None:
        """Of that, what a round has before it is ended for its logs' sake."""
        return self.limit_s and self.limit_s - min(self.save_before, self.limit_s / 4)


# In the settings of a cluster. HOSTS as the file has it is read by `read_slurm`.
HostsOfSlurm = Annotated[
    SlurmSettings | None, BeforeValidator(lambda hosts: hosts if isinstance(hosts, SlurmSettings) else None)
]


def read_slurm(reader: Reader) -> SlurmSettings | None:
    """What HOSTS asks of Slurm; None where it lists hosts. What is wrong is noted."""
    written = reader.file.values.get("HOSTS")
    if written == KEY:
        return SlurmSettings(inside=True)
    if not isinstance(written, dict) or not isinstance(section := written.get(KEY), dict):
        return None
    own = fields_of(SlurmSettings).keys() - {"options", "inside"}
    words = tuple(_words(reader, {name: value for name, value in section.items() if name not in own}))
    chosen = {name: value for name, value in section.items() if name in own}
    return reader.read(SlurmSettings, chosen, ("HOSTS", KEY), options=words, inside=False) or SlurmSettings()


def own_nodes() -> tuple[str, ...]:
    """The nodes of the job that this process is in, in Slurm's order; none where it is in none.

    Raises:
        ValueError: what the environment has of them cannot be read.
    """
    listed = os.environ.get("SLURM_JOB_NODELIST", "") if os.environ.get("SLURM_JOB_ID") else ""
    return nodes_in(listed)


def nodes_in(listed: str) -> tuple[str, ...]:
    """The nodes of a list as Slurm writes it: `gpu[01-03,07],login1`.

    Raises:
        ValueError: it is none, or names far too many, or something that is no host's name: it becomes a part of paths.
    """
    names = (values.host_name(node) for entry in _ENTRY.findall(listed) for node in expand(entry))
    nodes = tuple(islice(names, MOST_HOSTS + 1))
    if len(nodes) > MOST_HOSTS:
        raise ValueError(f"the list of nodes stands for more than {MOST_HOSTS}")
    return nodes


def _words(reader: Reader, options: Mapping[str, Any]) -> Iterator[str]:
    """Options as sbatch takes them; what is none is noted."""
    for name, value in options.items():
        whole = _whole_name(name)
        if whole in _OURS or name.startswith("_"):
            short = f"is read by sbatch as {whole}, which " if whole != name else ""
            message = f"{short}is set by FlagPerf itself, as the job is for one run"
            reader.problem(("HOSTS", KEY, name), message, "remove it", value)
        elif whole != name:
            message = f"is read by sbatch as {whole}"
            reader.problem(("HOSTS", KEY, name), message, f"write {whole}", value)
        elif value is True:
            yield _option(name)
        elif type(value) is int or (isinstance(value, str) and value and value.isprintable()):
            yield f"{_option(name)}={value}"
        elif value is not None and value is not False:
            message = "is neither text, a whole number, True, False nor None"
            reader.problem(
                ("HOSTS", KEY, name), message, f'write it as sbatch takes it, e.g. {name}="..."', value
            )


def _whole_name(name: str) -> str:
    """The option that sbatch may take a name for, as it takes the beginning of one for it; else the name itself."""
    name = name.replace("-", "_")
    return next((each for each in (*_READ, *_OURS) if name and each.startswith(name)), name)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
