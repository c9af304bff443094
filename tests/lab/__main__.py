"""The lab by hand: python3 -m tests.lab up 2; ... ssh 1 docker ps; ... cut 2; ... down."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tests.lab.census import leftovers
from tests.lab.commands import LabError
from tests.lab.lab import Lab
from tests.lab.requirements import why_not

# verb -> what it does to host I (the method of Lab of that name)
VERBS = {
    "kill": "power off: ssh is refused",
    "start": "power on after kill",
    "cut": "pull the network cable",
    "heal": "put the cable back",
    "unslow": "take the limit of slow away",
    "freeze": "stop every process where it is",
    "thaw": "let them go on",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(_do(options) or 0)
    except (LabError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.lab", description="Several hosts on this machine."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    up = verbs.add_parser("up", help="make hosts h1 to hN; they stay until down")
    up.add_argument("hosts", type=int, metavar="N")
    up.add_argument(
        "--image", action="append", default=[], help="an image of this machine that they shall have"
    )
    up.add_argument("--share", action="append", default=[], help="a folder that they shall see, read-only")
    up.add_argument("--wait", type=float, default=0, metavar="S", help="wait for another lab to end, seconds")
    verbs.add_parser("down", help="remove the hosts and all that was made for them")
    verbs.add_parser("status", help="what there is of a lab on this machine")
    verbs.add_parser("env", help='environment of a program that shall reach the hosts: eval "$(... env)"')
    for verb, text in VERBS.items():
        verbs.add_parser(verb, help=text).add_argument("host", type=int, metavar="I")
    slow = verbs.add_parser("slow", help="limit the network both ways")
    slow.add_argument("host", type=int, metavar="I")
    slow.add_argument("rate", help="in tc's notation: 1mbit")
    cpu = verbs.add_parser("cpu", help="limit the CPU time")
    cpu.add_argument("host", type=int, metavar="I")
    cpu.add_argument("percent", type=int, help="of one CPU; 0: no limit")
    ssh = verbs.add_parser("ssh", help="run a command on host I, or a shell")
    ssh.add_argument("host", type=int, metavar="I")
    ssh.add_argument("argv", nargs=argparse.REMAINDER)
    return parser


def _do(options: argparse.Namespace) -> int | None:
    if options.verb == "up":
        return _up(options)
    lab = Lab.attach()
    if options.verb == "ssh":
        argv = lab.ssh_argv(options.host, options.argv)
        os.execvp(argv[0], argv)  # noqa: S606 - ssh, with what was asked for
    elif options.verb == "status":
        print("\n".join(leftovers(lab.place)))
    elif options.verb == "env":
        print("\n".join(f"export {name}={value}" for name, value in lab.env.items()))
    elif options.verb == "down":
        lab.down()
    elif options.verb == "slow":
        lab.slow(options.host, options.rate)
    elif options.verb == "cpu":
        lab.cpu(options.host, options.percent or None)
    else:
        getattr(lab, options.verb)(options.host)
    return None


def _up(options: argparse.Namespace) -> int:
    if reason := why_not():
        print(f"lab: {reason}", file=sys.stderr)
        return 1
    lab = Lab(options.hosts, images=options.image, share=options.share, wait_seconds=options.wait)
    lab.up(keep=True)
    for host in lab.hosts:
        print(f"{host.name}  {host.address}  ssh -F {lab.ssh_config} {host.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
