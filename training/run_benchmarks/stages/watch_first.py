"""Wait for a round that can do without its other nodes: on node 0 is a search's controller, and its task decides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from run_benchmarks.host_log import log_of_host
from run_benchmarks.names import Node
from run_benchmarks.stages.watch import SETTLE_S, Ended, Ending, Lost, Outcome, Watch


class WatchFirst(Watch):
    """Waits for the task of node 0; how those of the others end meanwhile stands in the outcome's `dispensable`."""

    async def run(self, nodes: Sequence[Node], deadline_s: float) -> Outcome:
        """Wait until the task of node 0 has ended; the others then have a moment to end too."""
        others = {node.rank: asyncio.create_task(self._other(node)) for node in nodes[1:]}
        try:
            outcome = await super().run(nodes[:1], deadline_s)
            if others and outcome.all_ended_well:
                await asyncio.wait(others.values(), timeout=SETTLE_S)
            ended = {rank: task.result() for rank, task in others.items() if task.done()}
        finally:
            for task in others.values():
                task.cancel()
            await asyncio.gather(*others.values(), return_exceptions=True)
        endings = {rank: ending for rank, ending in outcome.endings.items() if rank == nodes[0].rank}
        return replace(outcome, endings=endings, dispensable=ended)

    async def _other(self, node: Node) -> Ending:
        ending = await self._node(node)
        if why := went_without(ending):
            log_of_host("WARNING", node.host, f"the search goes on without it: {why}")
        return ending


def went_without(ending: Ending) -> str:
    """Why a node that the round could do without was none of it any more; empty where its task ended with 0."""
    if isinstance(ending, Ended):
        return f"its workers ended with exit code {ending.code}" if ending.code else ""
    return ending.message.partition("\n")[0]


def out_of_reach(outcome: Outcome) -> list[int]:
    """The ranks of the nodes that do not answer any more, and did not fail the round as such."""
    lost = (
        rank for rank, each in outcome.dispensable.items() if isinstance(each, Lost) and not each.answered
    )
    return [*outcome.out_of_contact, *lost]
