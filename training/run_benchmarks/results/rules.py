"""The rules of the game: whether a vendor's config kept to what the case lets a vendor change.

The case names what may be changed (`config/mutable_params.py`); the driver compares what it was given
with the case's own `_base.py` and says in INIT_START what else differs. For a case that does not use the
driver the plan has compared the same files. A result with differences is *open*: it stands for itself. A
*closed* one may be compared with other closed ones of the case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from utils.events import Event, EventName

CLOSED = "closed"
OPEN = "open"


@dataclass(frozen=True)
class Rules:
    """`stamp` is None where the case does not say what was changed; `differs`: name -> the value it ran with."""

    stamp: str | None = None
    differs: Mapping[str, Any] = field(default_factory=dict)

    def explanation(self) -> str:
        """What the stamp says, in a line."""
        if self.stamp is None:
            return "the case does not report what was changed"
        if not self.differs:
            return "closed: nothing differs but what the case lets a vendor change"
        changed = ", ".join(f"{name} = {value!r}" for name, value in self.differs.items())
        return f"open: changed beyond what the case lets a vendor change: {changed}"


def rules_of(events: Sequence[Event], planned: Mapping[str, Any] | None = None) -> Rules:
    """The stamp of a run, from its INIT_START; else from the differences that the plan names, if it looked."""
    value = next((event.value for event in events if event.name == EventName.INIT_START), {})
    changed = value.get("changed")
    if not isinstance(changed, list):
        return Rules() if planned is None else Rules(OPEN if planned else CLOSED, planned)
    config = value.get("config")
    values = config if isinstance(config, Mapping) else {}
    differs = {str(name): values.get(str(name)) for name in changed}
    return Rules(OPEN if differs else CLOSED, differs)
