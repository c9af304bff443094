"""The rules of the game: whether a vendor kept to what the case lets a vendor change.

The case names which parameters may be changed (`config/mutable_params.py`); the plan compares the vendor's file with
the case's own `_base.py`, and the driver what it was given, and says in INIT_START what else differs. What the plan
says always counts: the vendor's code runs where INIT_START is written. What a vendor's hooks change, the driver says in
HOOKS. A result with differences is *open*: it stands for itself. A *closed* one may be compared with other closed ones
of the case. What ran on a device that only stood in for a chip is no result of the chip at all: *stand-in*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from run_benchmarks.plan.redact import holds_hidden
from run_benchmarks.results.hooks import SHOWN_OF_A_DIGEST, HooksSeen, hooks_seen
from utils.checkpoints import continued_of
from utils.events import Event, EventName
from utils.text_files import shortened

CLOSED = "closed"
OPEN = "open"
STAND_IN = "stand-in"
LONGEST_EXPLANATION = 4_000  # characters: all of it stands in `result.json`
WRITABLE = "its script works in a copy of its code that it may change (CASE_WRITABLE)"
MODEL_HOOK = "convert_model"
_NOT_REPORTED = "the case does not report what was changed"


@dataclass(frozen=True)
class Rules:
    """The stamp, and what it follows from.

    stamp: None where nobody can tell, and `doubt` says why. differs: parameter -> the value it ran with.
    hooks: the vendor's; None where nothing tells of them, as in the logs of earlier versions. vendors_case: the
    folder of a case that is the vendor's own, else empty. environment: the vendor's file that is sourced before the
    ranks start, by its path, with its SHA-256. stand_in: what stood in for the chip, else empty. earlier: the
    parameters that differed in an earlier part of a continued round.
    """

    stamp: str | None = None
    differs: Mapping[str, Any] = field(default_factory=dict)
    hooks: HooksSeen | None = None
    doubt: str = ""
    vendors_case: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    stand_in: str = ""
    earlier: tuple[str, ...] = ()

    def explanation(self) -> str:
        """What the stamp says, in a line."""
        if self.stamp == STAND_IN:
            return f"{STAND_IN}: {self.stand_in}"
        if self.stamp is None:
            return self.doubt or _NOT_REPORTED
        if self.stamp == CLOSED:
            return "closed: nothing differs but what the case lets a vendor change"
        reasons = "; ".join(self.reasons())
        return shortened(
            f"open: changed beyond what the case lets a vendor change: {reasons}", LONGEST_EXPLANATION
        )

    def reasons(self) -> list[str]:
        """Everything that makes it open."""
        parameters = ", ".join(f"{name} = {value!r}" for name, value in self.differs.items())
        own = [f"the whole case: {self.vendors_case} is the vendor's own"] if self.vendors_case else []
        return [
            *own,
            *([parameters] if parameters else []),
            *([f"in an earlier part: {', '.join(self.earlier)}"] if self.earlier else []),
            *map(str, self.hooks.differs if self.hooks else ()),
        ]

    @property
    def has_another_model(self) -> bool:
        """Whether a hook of the vendor changed the model that the case builds."""
        return any(each.hook == MODEL_HOOK for each in (self.hooks.differs if self.hooks else ()))

    def hooks_line(self) -> str:
        """The hooks in force, and what of them was not checked; empty where no code of a vendor ran in the ranks."""
        summary = self.hooks.summary() if self.hooks else ""
        unchecked = "; ".join(self.hooks.unchecked if self.hooks else ())
        line = f"{summary}; not checked: {unchecked or self.doubt or 'nothing'}" if summary else ""
        return shortened(line, LONGEST_EXPLANATION)

    def environment_line(self) -> str:
        """The vendor's shell code that ran before the ranks, which nothing checks; empty where there was none."""
        files = (f"{path}, SHA-256 {digest[:SHOWN_OF_A_DIGEST]}" for path, digest in self.environment.items())
        listed = "; ".join(files)
        return shortened(
            f"sourced before the ranks, not checked: {listed}" if listed else "", LONGEST_EXPLANATION
        )


def stand_in_of(events: Sequence[Event]) -> str:
    """What rank 0's INIT_END says of a device that stood in for the chip; empty of a true one."""
    of_end = (event.value.get("stand_in") for event in events if event.name == EventName.INIT_END)
    about = next(filter(None, of_end), None)
    if about is None:
        return ""
    name = about.get("device") if isinstance(about, Mapping) else about
    return shortened(
        f"a stand-in computed on the CPU under the name {name}: nothing here is a figure of the chip",
        LONGEST_EXPLANATION,
    )


def rules_of(
    events: Sequence[Event],
    planned: Mapping[str, Any] | None = None,
    extern: Mapping[str, str] | None = None,
    *,
    own_script: bool = False,
    vendors_case: str = "",
    parameters: Mapping[str, Any] | None = None,
    doubt: str = "",
) -> Rules:
    """The stamp of a round, from its INIT_START and HOOKS: the first of each, and a doubt where there are more.

    Args:
        planned: the differences that the plan names, if it looked: they count whatever the events say.
        extern, own_script: see `hooks_seen`.
        parameters: the plan's. What ran with another value, for whatever reason, differs.
        vendors_case: see `Rules`; such a case sets its own rules, so that nothing of it can be closed.
        doubt: why nothing of the round can be closed, beside what the events and the files tell.
    """
    value = next((event.value for event in events if event.name == EventName.INIT_START), {})
    hooks, unseen = hooks_seen(events, extern, own_script=own_script)
    doubt = "; ".join(filter(None, (unseen, *(() if own_script else _repetitions(events)), doubt)))
    differs = _differences(value, planned, parameters or {}, own_script=own_script)
    if stand_in := stand_in_of(events):
        return Rules(STAND_IN, differs or {}, hooks, doubt, vendors_case, stand_in=stand_in)
    earlier = _changed_earlier(events)
    if vendors_case or differs or earlier or (hooks and hooks.differs):
        return Rules(OPEN, differs or {}, hooks, doubt, vendors_case, earlier=earlier)
    if differs is None:
        return Rules(hooks=hooks, doubt=doubt)
    return Rules(None if doubt else CLOSED, differs, hooks, doubt)


def _differences(
    started: Mapping[str, Any],
    planned: Mapping[str, Any] | None,
    parameters: Mapping[str, Any],
    *,
    own_script: bool,
) -> dict[str, Any] | None:
    """What differs by the plan or by INIT_START, with the value that ran as far as that tells; None if nobody looked.

    The driver looks too, in the image: where it has not said so, nobody can tell that nothing differs.
    """
    changed = started.get("changed")
    if isinstance(changed, list):
        return {
            **(planned or {}),
            **_values(started, changed, planned or {}),
            **_strayed(started, parameters),
        }
    return dict(planned) if planned or (own_script and planned is not None) else None


def _changed_earlier(events: Sequence[Event]) -> tuple[str, ...]:
    """What was changed beyond the rules in the parts that the round goes on from."""
    parts = (continued_of(event.value) for event in events if event.name == EventName.INIT_END)
    return tuple(dict.fromkeys(name for part in parts if part for name in part.get("changed", ())))


def _repetitions(events: Sequence[Event]) -> Iterator[str]:
    """The driver writes each of these once; of two that a log has, nobody can tell which is true."""
    for name in (EventName.INIT_START, EventName.HOOKS):
        if sum(event.name == name for event in events) > 1:
            yield f"rank 0's log of the round has {name.value} more than once: the first was taken"


def _strayed(started: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What INIT_START says ran with another value than the plan's: the files on a host are not the controller's.

    What was hidden in `plan.json` cannot be compared when the round is judged again; it was when that was written.
    """
    config = started.get("config")
    values = config if isinstance(config, Mapping) else {}
    return {
        name: values[name]
        for name, value in parameters.items()
        if name in values and values[name] != value and not holds_hidden(value)
    }


def _values(started: Mapping[str, Any], changed: Sequence[Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """INIT_START's values of the parameters that it says were changed; the plan's where it has none."""
    config = started.get("config")
    values = {**planned, **(config if isinstance(config, Mapping) else {})}
    return {str(name): values.get(str(name)) for name in changed}
