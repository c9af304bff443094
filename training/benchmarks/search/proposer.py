"""The process that makes proposals beside a worker: `python3 -m benchmarks.search.proposer`.

Its first line of standard input is the Space, each further one what became known since the one before: Evaluations. For
each of these that wants a proposal it prints one line: the proposal, or null where nothing new can be had.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import BinaryIO

import msgspec

from benchmarks.search.architecture import Architecture, as_json
from benchmarks.search.hyperparameters import Space
from benchmarks.search.morphism import Edit, apply
from benchmarks.search.proposals import Evaluated, ExhaustedError, propose
from benchmarks.search.protocol import (
    HISTORY,
    Evaluation,
    Evaluations,
    Proposed,
    encode,
    evaluations_of,
    reply_of,
)

POLITENESS = 10  # of its priority: what feeds the chips goes first


class Lineages:
    """All that was proposed. Architectures are made of their parents' when they are needed: most never are."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._all: dict[int, Evaluation] = {}
        self._trials: dict[int, int] = {}
        self._architecture = lru_cache(4 * HISTORY)(self._made)

    def add(self, evaluation: Evaluation) -> None:
        """What came of a proposal; the last one that was told of stands last."""
        self._all.pop(evaluation.proposal, None)
        self._all[evaluation.proposal] = evaluation
        if evaluation.trial is not None:
            self._trials[evaluation.trial] = evaluation.proposal

    def history(self) -> Iterator[Evaluated]:
        """What waits or is trained, and of what has ended the best and the newest."""
        ended = [each for each in self._all.values() if each.has_ended]
        best = sorted(ended, key=lambda each: -(each.accuracy or 0.0))[: HISTORY // 2]
        chosen = {each.proposal for each in (*best, *ended[-HISTORY // 2 :])}
        for each in self._all.values():
            if each.proposal in chosen or not each.has_ended:
                architecture = self._architecture(each.proposal)
                yield Evaluated(each.trial, architecture, each.accuracy, each.hyperparameters, each.tuned)

    def _made(self, proposal: int) -> Architecture:
        each = self._all[proposal]
        architecture = self._space.start
        if each.parent is not None:
            architecture = self._architecture(self._trials[each.parent])
        for edit in each.edits:
            architecture = apply(architecture, msgspec.json.decode(bytes(edit), type=Edit))
        return architecture


def proposed(lineages: Lineages, space: Space, evaluations: Evaluations) -> Proposed | None:
    """The next proposal; None where there is none."""
    try:
        random = Random(evaluations.seed)
        proposal = propose(list(lineages.history()), random, evaluations.round, space)
    except ExhaustedError as error:
        print(f"proposer: {error}", file=sys.stderr, flush=True)
        return None
    return Proposed(
        proposal.parent,
        tuple(msgspec.Raw(msgspec.json.encode(edit)) for edit in proposal.edits),
        msgspec.Raw(as_json(proposal.architecture)),
        proposal.hyperparameters,
        proposal.tuned,
    )


def main(lines: BinaryIO = sys.stdin.buffer) -> None:
    """Answer until there is no more input."""
    os.nice(POLITENESS)
    space = msgspec.json.decode(lines.readline(), type=Space)
    lineages = Lineages(space)
    for line in lines:
        evaluations = reply_of(line)
        if isinstance(evaluations, Evaluations):
            for each in evaluations_of(evaluations):
                lineages.add(each)
            if evaluations.wanted:
                print(encode(proposed(lineages, space, evaluations)).decode(), flush=True)


if __name__ == "__main__":
    main()
