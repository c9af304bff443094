"""A whole controller, whose proposals are made up: what one is worth is computed of nothing.

python -m tests.benchmarks.search.made_controller FOLDER PORT TOKEN SETTINGS
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from benchmarks.search.controller.conduct import conduct
from benchmarks.search.controller.proposals import Facts
from benchmarks.search.controller.server import listen
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.protocol import Proposed
from tests.benchmarks.search.with_parent import end_with_parent
from utils.errors import FlagPerfError


def made_facts(proposed: Proposed, parent: Proposed | None) -> tuple[Proposed, Facts]:
    """Of any architecture the same."""
    edits = tuple(bytes(edit).decode() for edit in proposed.edits)
    return proposed, Facts(bytes(proposed.architecture).decode(), 10, 1000, 10**6, 3 * 10**6, edits)


def main(folder: str, port: str, token: str, settings: str) -> int:
    """As benchmarks.search.controller, without a case."""
    try:
        return conduct(
            msgspec.json.decode(settings, type=SearchSettings),
            folder=Path(folder),
            earlier=None,
            listener=listen("127.0.0.1", int(port)),
            token=token,
            check=made_facts,
            out=sys.stdout,
        )
    except FlagPerfError as error:
        print(f"controller: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(*sys.argv[1:]))
