"""What workers begin with: there is a trial for each as it joins, before any of them can have made a proposal."""

from __future__ import annotations

from random import Random

import msgspec

from benchmarks.search.architecture import as_json
from benchmarks.search.controller.architectures import checked, identity_of
from benchmarks.search.controller.proposals import Facts
from benchmarks.search.hyperparameters import Space
from benchmarks.search.morphism import neighbours
from benchmarks.search.protocol import Hyperparameters, Proposed

MOST_ROUNDS = 1000  # of neighbours, which may be the same ones again where few are possible


def first_proposals(space: Space, count: int, seed: int) -> list[tuple[Proposed, Facts]]:
    """The start, and networks that are an edit away from it; `count` in all, or as many as there are."""
    random, point = Random(seed), Hyperparameters(0.0, 3, space.batch_sizes[0])
    made = {identity_of(space.start): Proposed(None, (), msgspec.Raw(as_json(space.start)), point)}
    for _ in range(MOST_ROUNDS):
        for edit, architecture in neighbours(space.start, random, space.limits):
            edits = (msgspec.Raw(msgspec.json.encode(edit)),)
            proposed = Proposed(None, edits, msgspec.Raw(as_json(architecture)), point)
            made.setdefault(identity_of(architecture), proposed)
        if len(made) >= count:
            break
    return [checked(proposed, None, space) for proposed in list(made.values())[:count]]
