"""`run.py cleanup`: list what runs left on the hosts, and remove what one of them left, or what none needs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.commands import place_options, run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError, told_of
from utils.numbers import counted
from utils.text_files import one_line

if TYPE_CHECKING:
    from run_benchmarks.left_behind import Removed, Survey
    from run_benchmarks.plan.records import ClusterSettings, Plan, RunSettings
    from run_benchmarks.unused import Item

NAME = "cleanup"
HELP = "list what runs left on the hosts, or remove what one left; a run that goes on is not touched unasked"
KEPT = {"code": "used", "copy": "used", "image": "made", "checkpoints": "written"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, on the hosts of which configuration."""
    options.add_config(parser)
    options.add_log_path(parser)
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        type=options.run_id,
        help="the run's ID; without it the runs are listed",
    )
    parser.add_argument(
        "--unused",
        action="store_true",
        help="remove code, images and checkpoints that no run needs; of RUN also checkpoints that would be kept",
    )
    parser.add_argument(
        "-y",
        "--yes",
        action="store_true",
        help="remove without a question; of RUN also where it may still run",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask every host; the cases of test_conf.py need not be valid, for they may have changed since."""
    import asyncio

    from run_benchmarks.hosts.slurm.check import check_own_job
    from run_benchmarks.left_behind import survey
    from run_benchmarks.plan.load import load_settings
    from run_benchmarks.unused import needs_of

    cluster, settings = load_settings(arguments.config, options.TRAINING_DIR, arguments.log_path)
    if settings.machine.settings:
        complain(settings.machine.sentence())
    if cluster.slurm and cluster.slurm.inside:
        check_own_job()
    wants_all = arguments.unused or arguments.run is None
    needs = needs_of(_plan(arguments), settings.log_path, arguments.run or "") if wants_all else None
    seen = asyncio.run(survey(cluster, settings, needs))
    for host, error in seen.unreached.items():
        complain(told_of(host, error))
    code = ExitCode.UNHEALTHY if seen.unreached else ExitCode.SUCCESS
    if arguments.unused:
        return _remove_unused(seen, cluster, settings, arguments) or code
    if arguments.run is None:
        _list(seen, settings.log_path)
        _list_kept(seen, arguments)
        return code
    uid = _uid(arguments.run, seen, settings.log_path)
    if uid is None:
        return code
    _see_that_it_may_go(uid, seen, settings.log_path, arguments)
    return _remove(uid, seen, cluster, settings)


def _remove(uid: str, seen: Survey, cluster: ClusterSettings, settings: RunSettings) -> int:
    """Remove the run from every host and report it; the exit code."""
    import asyncio

    from run_benchmarks.left_behind import remove_run

    code = ExitCode.SUCCESS
    for host, removed in asyncio.run(remove_run(cluster, settings, uid)).items():
        if not isinstance(removed, FlagPerfError):
            _report(host, removed, seen, uid)
            continue
        code = ExitCode.UNHEALTHY
        if host not in seen.unreached:
            complain(told_of(host, removed))
    return code


def _put_line(text: str) -> None:
    """Print what a host has said as one line, whatever it has put into a name."""
    put(one_line(text))


def _report(host: str, removed: Removed, seen: Survey, uid: str) -> None:
    """What was removed of a run from a host, and what stays there."""
    left = seen.of_run(uid).get(host)
    names = (*removed.names, *((*left.pip_folders, *left.copies) if left else ()))
    nothing = f"nothing of this run is left to remove here (looked at {seen.places})"
    _put_line(f"{host}: removed {', '.join(names)}" if names else f"{host}: {nothing}")
    if removed.logs:
        _put_line(f"{host}: its logs that were not collected stay in {removed.logs}")


def _list(seen: Survey, log_path: Path) -> None:
    from run_benchmarks.left_behind import fate_of

    for uid in seen.runs():
        _put_line(f"{uid}: {fate_of(uid, log_path)}")
        for host, left in seen.of_run(uid).items():
            if str(left):
                _put_line(f"    {host}: {left}")
    empty = [host for host, runs in seen.hosts.items() if not runs and host not in seen.unreached]
    if empty:
        _put_line(f"{', '.join(empty)}: no run has left anything here (looked at {seen.places})")


def _plan(arguments: argparse.Namespace) -> Plan | None:
    """Today's plan, whose code and images stay; None where the configuration gives none."""
    try:
        return options.plan_of(arguments)
    except FlagPerfError:
        return None


def _list_kept(seen: Survey, arguments: argparse.Namespace) -> None:
    """Everything that hosts keep, with size and age, and what becomes of it."""
    _put_alike(
        (host, f"{_described(item)}: {f'kept: {reason}' if reason else 'no run needs it'}")
        for host, items in seen.kept.items()
        for item, reason in items.items()
    )
    if any(not reason for items in seen.kept.values() for reason in items.values()):
        places = place_options(arguments.config, arguments.log_path)
        put(f"what no run needs is removed by: {run_command('cleanup', '--unused', *places)}")


def _put_alike(texts: Iterable[tuple[str, str]]) -> None:
    """Print what is to be said of hosts; those of whom the same is said share a line."""
    from run_benchmarks.plan.host_ranges import fold

    hosts_of: dict[str, list[str]] = {}
    for host, text in texts:
        hosts_of.setdefault(text, []).append(host)
    for text, hosts in hosts_of.items():
        _put_line(f"{fold(hosts)}: {text}")


def _described(item: Item) -> str:
    from run_benchmarks.stages.progress import size_text

    minutes = item.age_s / 60
    units = (("day", 1440), ("hour", 60), ("minute", 1))
    age = next(
        counted(round(minutes / each), unit) for unit, each in units if minutes >= 2 * each or each == 1
    )
    return f"{item.kind} {item.name}, {size_text(item.size)}, {KEPT[item.kind]} {age} ago"


def _remove_unused(
    seen: Survey, cluster: ClusterSettings, settings: RunSettings, arguments: argparse.Namespace
) -> int:
    """Remove what no run needs, once the user has seen what it is; the exit code."""
    import asyncio

    from run_benchmarks.left_behind import remove_unused

    going = {host: [item for item, why in items.items() if not why] for host, items in seen.kept.items()}
    going = {host: items for host, items in going.items() if items}
    if not going:
        _list_kept(seen, arguments)
        _put_line(f"nothing to remove on {', '.join(seen.kept) or 'any host that answered'}")
        return ExitCode.SUCCESS
    if not arguments.yes:
        _ask_for(going, arguments)
    code = ExitCode.SUCCESS
    for host, stayed in asyncio.run(remove_unused(cluster, settings, going)).items():
        if isinstance(stayed, FlagPerfError):
            code = ExitCode.UNHEALTHY
            if host not in seen.unreached:
                complain(told_of(host, stayed))
        elif host in going:
            names = [item.name for item in going[host] if item.name not in stayed]
            _put_line(f"{host}: removed {', '.join(names) or 'nothing'}")
            if stayed:
                _put_line(f"{host}: used meanwhile, and kept: {', '.join(stayed)}")
    return code


def _ask_for(going: Mapping[str, Sequence[Item]], arguments: argparse.Namespace) -> None:
    """Name everything that goes, and ask; FlagPerfError where the user does not want it, or nobody can be asked."""
    _put_alike((host, _described(item)) for host, items in going.items() for item in items)
    if sys.stdin.isatty() and _agreed("Remove all of this? [y/N] "):
        return
    words = (*((arguments.run,) if arguments.run else ()), "--unused", "--yes")
    command = run_command("cleanup", *words, *place_options(arguments.config, arguments.log_path))
    raise FlagPerfError("nothing was removed", remedy=f"to remove all of this: {command}")


def _agreed(question: str) -> bool:
    return input(question).strip().lower() in ("y", "yes")


def _uid(given: str, seen: Survey, log_path: Path) -> str | None:
    """The uid of the run that the user named by it or by its name; None where a host that may know it is silent.

    Raises:
        FlagPerfError: there is no such run, or there are several.
    """
    from run_benchmarks.names import RUN_UID
    from run_benchmarks.results.find import uid_of

    own = uid_of(log_path / given.partition("-")[0])
    runs = sorted({*seen.runs(), *([own] if RUN_UID.fullmatch(own) else [])})
    named = [uid for uid in runs if given in (uid, uid.partition("-")[0])]
    if len(named) == 1:
        return named[0]
    if named:
        raise FlagPerfError(f"there are several runs {given}", remedy=f"name one of {', '.join(named)}")
    if seen.unreached:
        complain(f"nothing of a run {given} on the other hosts (looked at {seen.places})")
        return None
    there = f"those that left something: {', '.join(seen.runs())}" if seen.runs() else "no run left anything"
    raise FlagPerfError(
        f"there is no run {given!r}: looked at {seen.places}; and on this machine at {log_path}",
        where=", ".join(seen.hosts),
        remedy=f"{there}; name another configuration with --config, or its results with --log-path",
    )


def _see_that_it_may_go(uid: str, seen: Survey, log_path: Path, arguments: argparse.Namespace) -> None:
    """Ask where the run may still go on; FlagPerfError where that is not to be lost, or nobody can be asked."""
    from run_benchmarks.left_behind import fate_of, still_runs

    alive = still_runs(uid, log_path)
    running = any(left.running for left in seen.of_run(uid).values())
    if arguments.yes or alive is False or (alive is None and not running):
        return
    doubt = f"{uid}: {fate_of(uid, log_path)}" + ("" if alive else f" ({log_path} has no results of it)")
    if sys.stdin.isatty():
        if _agreed(f"{doubt}. End and remove its units all the same? [y/N] "):
            return
        raise FlagPerfError("nothing was removed")
    places = place_options(arguments.config, arguments.log_path)
    raise FlagPerfError(
        f"{doubt}; nothing was removed",
        remedy=f"if it is over, or may be lost: {run_command('cleanup', uid, '--yes', *places)}",
    )
