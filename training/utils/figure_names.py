"""The names that a case may give its own figures: the case is told before it measures, the controller holds to it."""

from __future__ import annotations

import re

from utils.figures import DEFINITIONS

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
OF_PEAK = "_of_peak"


def name_problem(name: str) -> str:
    """What is wrong with the name of a figure; nothing where it may be used."""
    if not NAME.fullmatch(name):
        return "its name is not a letter with up to 63 letters, digits and underscores behind it"
    if name in DEFINITIONS:
        return "its name is that of a figure of FlagPerf's own"
    if name.endswith(OF_PEAK):
        return f"names that end in {OF_PEAK} are derived from a rate and its `peak`"
    return ""
