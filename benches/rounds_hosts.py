"""Simulated hosts of whole rounds: as scale_hosts.py serves them, with a task that has ended at once.

    rounds_hosts.py FOLDER PORT ADDRESS...

Code is there already, units start and end as on the hosts of a rehearsal, and a node's folder is listed and sent by the
real commands: FOLDER/nodes/first for the node of rank 0, FOLDER/nodes/other for each of the others.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from benches.scale_hosts import ANSWERS, RUN_ALL, Answer, Memory, main, run_here  # noqa: E402
from run_benchmarks.rehearsal import Rehearsal, RehearsedHost  # noqa: E402
from run_benchmarks.stages.collect_listing import LIST  # noqa: E402
from run_benchmarks.stages.collect_stream import SEND  # noqa: E402
from run_benchmarks.stages.deploy import IS_THERE, LOOK  # noqa: E402
from run_benchmarks.transports.ssh.remote import END  # noqa: E402


class MemoryOfRounds(Memory):
    """Answers of healthy hosts that have taken part in a round before."""

    def __init__(self, nodes: str) -> None:
        super().__init__()
        self._nodes = nodes
        self._healthy = RehearsedHost("", Rehearsal())

    async def answer(self, argv: tuple[str, ...], stdin: bytes) -> Answer:
        script = argv[2] if argv[:2] == ("sh", "-c") else ""
        if script in (LIST, SEND):
            # that of rank 0 is asked of one host, and written anew for each round
            is_first = argv[4].endswith("_noderank0")
            moved = (*argv[:3], self._nodes, "first" if is_first else "other", *argv[5:])
            return await (run_here if is_first else self.run_once)(moved, stdin)
        if script == RUN_ALL:
            return await super().answer(argv, stdin)
        if script.endswith(LOOK) or script == IS_THERE or END in argv:
            return 0, b"", b""
        if argv[0] == "date":
            return ANSWERS["date"]()
        code, out, err = self._healthy.answer(argv)
        return code, out.encode(), err.encode()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:], memory=MemoryOfRounds(f"{sys.argv[1]}/nodes")))
