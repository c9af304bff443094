"""The job that holds a round's nodes: what is asked of sbatch, and the script that waits in it."""

from __future__ import annotations

from collections.abc import Collection

from run_benchmarks.plan.slurm import SlurmSettings

BEAT = " has a controller at "
ABANDONED = 75  # the script's exit code where no controller was heard of
# Of a job's options those that say by what right there is one.
RIGHTS = ("partition", "account", "qos", "reservation", "wckey")
_COMMON = ("--no-requeue", "--export=ALL", "--chdir=/", "--output=/dev/null")
LEAST_BEAT_S, MOST_BEAT_S = 2, 60
# How the script of each job begins.
HEAD = """\
#!/bin/sh
# The token that sbatch was called with is its user's alone, and good for minutes only: a node asks as itself.
[ -z "${SLURM_JWT-}" ] || exec env --unset=SLURM_JWT sh "$0"
"""
# Nothing but Slurm itself is between the controller and this: they may share no file system, and the controller may
# be taken up on another machine. A Slurm that does not answer is no controller that is silent. A controller's words
# alone count: a site's wrapper of squeue may print lines around them, such as the time.
SCRIPT = """\
# Holds the nodes of a run of FlagPerf, which gives them back. Its controller writes into this job's comment all the
# while; where nobody has for {limit} s, it has died, and the nodes are given back here.
left={limit} last=
while [ "$left" -gt 0 ]; do
    sleep {every}
    printed=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%k) && [ -n "$printed" ] || continue
    now=$(printf '%s\\n' "$printed" | grep '{beat}')
    if [ "$now" = "$last" ]; then left=$((left - {every})); else left={limit} last=$now; fi
done
exit {abandoned}
"""


def beat_of(name: str, time_s: float) -> str:
    """A controller's words in the comment of a run's job."""
    return f"{name}{BEAT}{time_s:.0f}"


def job_name(run: str) -> str:
    """The name by which a run's jobs are found again."""
    return f"flagperf-{run}"


def beat_s(settings: SlurmSettings) -> int:
    """How often the controller says that it lives."""
    return round(min(max(settings.abandoned_after / 5, LEAST_BEAT_S), MOST_BEAT_S))


def script(settings: SlurmSettings) -> str:
    """What waits in the job."""
    return HEAD + SCRIPT.format(
        limit=round(settings.abandoned_after), every=beat_s(settings), abandoned=ABANDONED, beat=BEAT
    )


def sbatch_argv(
    settings: SlurmSettings, name: str, nodes: int, avoided: Collection[str] = (), *, is_search: bool = False
) -> tuple[str, ...]:
    """The command that asks for a job of so many nodes, and none of those `avoided`; `script` is its standard input.

    A search goes on without nodes that fail, by which Slurm would end the job of another case.

    Its environment goes with it, and is kept by Slurm: `Slurm.submit` leaves little of it. To name variables here would
    have the node start a log-in shell for the rest of them.
    """
    alone = ["--exclusive"] if settings.exclusive else []
    if settings.exclusive and not any(word.startswith("--mem") for word in settings.options):
        alone.append(
            "--mem=0"
        )  # all of it: a node that is ours alone has a shared one's default without this
    exclude = "--exclude="
    excluded = [word.removeprefix(exclude) for word in settings.options if word.startswith(exclude)]
    excluded += sorted(avoided)
    return (
        "sbatch",
        "--parsable",
        f"--job-name={name}",
        f"--nodes={nodes}",
        *_COMMON,
        *((f"--time={settings.time}",) if settings.time else ()),
        *alone,
        *(("--no-kill",) if is_search else ()),
        *settings.options,
        *((f"{exclude}{','.join(excluded)}",) if avoided else ()),
    )


def visit_argv(settings: SlurmSettings, name: str, node: str) -> tuple[str, ...]:
    """The command that asks for a small job on a node, beside those of others; after a while it is not wanted any more.

    It may last as short as Slurm likes, so that it fits in before larger ones.
    """
    return (
        "sbatch",
        "--parsable",
        f"--job-name={name}",
        f"--nodelist={node}",
        "--nodes=1",
        "--ntasks=1",
        "--mem=256M",
        "--time-min=1",
        "--deadline=now+20minutes",
        *_COMMON,
        *((f"--time={settings.time}",) if settings.time else ()),
        *(word for word in settings.options if word.startswith(tuple(f"--{name}=" for name in RIGHTS))),
    )
