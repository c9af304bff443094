"""What ranks say of the code: they run a copy of it, and the user mends the original."""

from __future__ import annotations

import re
from dataclasses import replace

from utils.records import Failure

CHECKOUT = "training"


def in_checkout(failure: Failure, tree: str) -> Failure:
    """The failure, whose texts name files of code as the checkout has them: `training/benchmarks/...`.

    Args:
        tree: where the ranks saw `training/`; empty where that is not known.
    """
    if not tree:
        return failure
    # code alone: data and results of the user may lie below the same path inside a container
    code = re.compile(rf"(?<![\w./-]){re.escape(tree)}/(?=[^\s\"':]{{1,300}}\.(?:py|sh)\b)")
    message, evidence, remedy = (
        code.sub(f"{CHECKOUT}/", text) for text in (failure.message, failure.evidence, failure.remedy)
    )
    return replace(failure, message=message, evidence=evidence, remedy=remedy)
