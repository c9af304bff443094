"""`run.py serve`: all runs of a result directory as a local page; nothing is written there."""

from __future__ import annotations

import argparse
from functools import partial

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, put
from run_benchmarks.verbs import options

NAME = "serve"
HELP = "show all runs as a page in a browser: filters, charts, reports, comparisons, and a run that goes on"
PORT = 8640


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of which runs, and where."""
    options.add_config(parser)
    options.add_log_path(parser)
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        help="where to listen (default: 127.0.0.1, this machine alone); any other asks for a token: that in "
        "FLAGPERF_SERVE_TOKEN of the environment (16 to 256 letters, digits and . _ ~ -), else one that is made up and "
        "shown",
    )
    parser.add_argument("--port", type=_port, default=PORT, help=f"0: any that is free (default: {PORT})")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    import secrets

    from run_benchmarks.exports.redaction import shown_here
    from run_benchmarks.history.index import Index
    from run_benchmarks.history.server import address_of, bound, given_token, is_local, serve
    from run_benchmarks.verbs.list import fill

    given = given_token()
    with bound(arguments.address, arguments.port) as listener:
        made = None if given or is_local(listener) else secrets.token_urlsafe(32)
        index = Index(
            options.log_path_of(arguments), partial(shown_here, arguments.config, options.TRAINING_DIR)
        )
        try:
            fill(index)
            put(f"{address_of(listener, made)}\nshows the runs in {index.log_path} until Ctrl-C")
            if given:
                complain("open it once with ?token= and the token behind it")
            if not is_local(listener):
                complain(
                    "others on the network can read along: ssh -L brings this port to another machine unseen"
                )
            serve(listener, index, given or made)
        finally:
            index.close()
    complain("ended")
    return ExitCode.SUCCESS


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 2**16):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to 65535")
    return int(text)
