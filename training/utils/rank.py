"""Start one rank: `python3 -m utils.rank --log-dir DIR -- ARGV...`.

The launcher (utils.node, torchrun) starts this once a process. It sends the rank's output to
`DIR/rank<global rank>.out.log` and then *becomes* the training script, so that no pipe can hide the
script's exit code and no wrapper has to pass signals on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The variable in which each launcher tells a rank the rank of its node.
NODE_RANK_SOURCES = ("NODE_RANK", "GROUP_RANK", "PADDLE_NODE_RANK")
GLOBAL_RANK_SOURCES = ("RANK", "PADDLE_TRAINER_ID")


def rank_log_name(global_rank: int | str) -> str:
    """The file that holds the output of one rank."""
    return f"rank{global_rank}.out.log"


def main(argv: list[str]) -> None:
    """Redirect standard output and error, then replace this process by the training script."""
    if len(argv) < 4 or argv[0] != "--log-dir" or argv[2] != "--":
        sys.exit("usage: python3 -m utils.rank --log-dir DIR -- ARGV...")
    folder, command = Path(argv[1]), argv[3:]
    rank = _first_set(GLOBAL_RANK_SOURCES, "0")
    os.environ["NODE_RANK"] = _first_set(NODE_RANK_SOURCES, "0")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    log = os.open(folder / rank_log_name(rank), flags, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.execvp(command[0], command)


def _first_set(names: tuple[str, ...], default: str) -> str:
    return next((os.environ[name] for name in names if name in os.environ), default)


if __name__ == "__main__":
    main(sys.argv[1:])
