"""Where a search's workers are, and how many chips each has: by the plan, whatever they say themselves."""

from __future__ import annotations

from dataclasses import dataclass

from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.planned import PlannedCase
from utils.numbers import number_in


@dataclass(frozen=True)
class Places:
    """workers: of all nodes. of_node: those of each, numbered on from node to node. ranks: of a worker, a chip each."""

    workers: int
    of_node: int
    ranks: int

    @classmethod
    def of(cls, case: CasePlan | PlannedCase) -> Places:
        """As `utils.roles` starts them."""
        nproc = case.settings.nproc
        ranks = int(number_in(case.parameters, "ranks_per_worker") or 0)
        ranks = ranks if 0 < ranks <= nproc else nproc
        of_node = max(1, nproc // max(1, ranks))
        return cls(case.settings.nnodes * of_node, of_node, ranks)

    def node_of(self, worker: int) -> int:
        """The rank of its node."""
        return worker // self.of_node
