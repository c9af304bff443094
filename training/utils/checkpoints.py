"""What controller and training script agree on about checkpoints: where they lie and how they are named.

A training script is told by its environment, because its arguments are the launch contract's and no others.
"""

from __future__ import annotations

# The folder that this round's checkpoints are written to, by global rank 0.
CHECKPOINT_DIR = "FLAGPERF_CHECKPOINT_DIR"
# The folder with the checkpoints of the round that this one goes on with.
CONTINUE_FROM = "FLAGPERF_CONTINUE_FROM"
# "1": where that folder has no checkpoint the round begins anew. The controller has looked, and said so.
MAY_BEGIN_ANEW = "FLAGPERF_MAY_BEGIN_ANEW"

CHECKPOINT_PATTERN = "step*.ckpt"


def checkpoint_name(step: int) -> str:
    """The file of the checkpoint after `step` optimizer steps; names sort as their steps do."""
    return f"step{step:08d}.ckpt"
