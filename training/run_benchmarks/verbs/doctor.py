"""`run.py doctor`: examine the hosts, with what cases want of them or without; nothing is launched or left there."""

from __future__ import annotations

import argparse
import json
import secrets
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from run_benchmarks.commands import place_options, run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, put
from run_benchmarks.verbs import options
from utils.errors import ProblemsError

if TYPE_CHECKING:
    from run_benchmarks.doctor.examine import Findings
    from run_benchmarks.plan.records import Plan

NAME = "doctor"
HELP = "examine every host: what the cases need, and what makes hosts slow or unlike each other; leaves nothing there"
EPILOG = """\
as a run's preflight: reachable, engine, deploy path, free disk, data, devices,
precision, clock, master port, leftovers, software, peers, caches, checkpoints,
build secrets, power meter
beside these: host key, system, processors, cpu governor, memory, huge pages,
limits, mtu, accelerators, image space, container, and the link to the next host;
then what differs between hosts that should be alike

each check is ok, a warning or an ERROR, with what to do about it;
docs/doctor.md says what each of them wants

exit codes: 0: no check forbids a run; 2: the configuration or the command line
is wrong, and no host was asked; 3: a check forbids a run, or a scheduler did not
take its hosts back"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which hosts, for which cases."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    options.add_config(parser)
    options.add_cases(parser)
    parser.add_argument(
        "--no-cases", action="store_true", help="look at the hosts alone, whatever cases there are"
    )
    options.add_log_path(parser)
    parser.add_argument("--json", action="store_true", help="all that was seen, as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Examine the hosts; the exit code says whether a run may begin there."""
    import asyncio

    from run_benchmarks.doctor.report import as_dict, text_of

    plan = _plan(arguments)
    if plan.run.machine.settings:
        complain(plan.run.machine.sentence())
    findings, are_given_back = asyncio.run(_examine(plan, arguments))
    if arguments.json:
        put(json.dumps(plan.secrets.hide_in(as_dict(findings), names=False), indent=1))
    else:
        # first in what was found: of a text that is cut the rest of a secret would not be known any more
        put(plan.secrets.hide(text_of(plan.secrets.hide_in(findings))))
    return ExitCode.SUCCESS if findings.is_healthy and are_given_back else ExitCode.UNHEALTHY


async def _examine(plan: Plan, arguments: argparse.Namespace) -> tuple[Findings, bool]:
    """What was found, and whether a scheduler took its hosts back; that it did not is said here."""
    from run_benchmarks.doctor.examine import examine
    from run_benchmarks.hosts import standing_hosts
    from run_benchmarks.hosts.base import NotGivenBackError
    from run_benchmarks.plan.load import load_vendors

    # with cases, hosts under no vendor's name are those of the cases' vendors, whatever VENDOR says
    named = plan.cluster.groups or not plan.cases
    vendors = load_vendors(arguments.config, options.TRAINING_DIR) if named else {}
    held, are_given_back = AsyncExitStack(), True
    there, allocator = await held.enter_async_context(standing_hosts(plan, f"doctor-{secrets.token_hex(3)}"))
    try:
        findings = await examine(there, vendors, allocator)
    finally:
        try:
            await held.aclose()
        except NotGivenBackError as error:
            complain(plan.secrets.hide(f"the hosts could not be given back: {error}"))
            are_given_back = False
    return findings, are_given_back


def _plan(arguments: argparse.Namespace) -> Plan:
    """What the files say; without cases where none is asked for, or none is valid, which is said."""
    from run_benchmarks.plan.load import load_hosts
    from run_benchmarks.plan.problems import NoValidCaseError

    if not arguments.no_cases:
        try:
            return options.plan_of(arguments)
        except NoValidCaseError as error:
            for problem in error.problems:
                complain(problem)
            complain("no case is valid: the hosts are examined without one")
        except ProblemsError:
            alone = run_command(NAME, "--no-cases", *place_options(arguments.config, arguments.log_path))
            complain(f"to examine the hosts all the same: {alone}")
            raise
    return load_hosts(arguments.config, options.TRAINING_DIR, arguments.log_path)
