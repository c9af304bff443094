"""What controller and training script agree on about checkpoints: where they lie and how they are named.

A training script is told by its environment, because its arguments are the launch contract's and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from utils.numbers import number_in

# The folder that this round's checkpoints are written to, by global rank 0.
CHECKPOINT_DIR = "FLAGPERF_CHECKPOINT_DIR"
# The folder with the checkpoints of the round that this one goes on with.
CONTINUE_FROM = "FLAGPERF_CONTINUE_FROM"
# "1": where that folder has no checkpoint the round begins anew. The controller has looked, and said so.
MAY_BEGIN_ANEW = "FLAGPERF_MAY_BEGIN_ANEW"

CHECKPOINT_PATTERN = "step*.ckpt"
# Of those that were passed over so many are named.
MOST_SKIPPED = 10
# Of the parameters that an earlier part changed so many, and so much of a name.
MOST_CHANGED, LONGEST_NAME = 100, 100


def checkpoint_name(step: int) -> str:
    """The file of the checkpoint after `step` optimizer steps; names sort as their steps do."""
    return f"step{step:08d}.ckpt"


def continued_of(values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What an event says of the earlier part that a run goes on from: `step`, `samples`, `train_time` (s), `file`.

    `skipped` and `changed`, where they are told, are texts. None where nothing is told, or no step.
    """
    continued = values.get("continued")
    if not isinstance(continued, Mapping) or number_in(continued, "step") is None:
        return None
    lists = {
        "skipped": _texts(continued.get("skipped"), MOST_SKIPPED),
        "changed": [name[:LONGEST_NAME] for name in _texts(continued.get("changed"), MOST_CHANGED)],
    }
    return {**continued, **{name: texts for name, texts in lists.items() if name in continued}}


def _texts(value: Any, most: int) -> list[str]:
    return list(map(str, value[:most])) if isinstance(value, list) else []
