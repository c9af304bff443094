"""What a round's vendor replaced of the driver, from rank 0's HOOKS event and from the files that the plan saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from pydantic import Field

from run_benchmarks.reading import parsed
from utils.code_files import digest_of
from utils.errors import FlagPerfError
from utils.events import Event, EventName
from utils.numbers import counted

NOT_REPORTED = "the vendor's extern/ was there, and the run ended before it was seen what it changes"
OWN_SCRIPT = "the vendor's extern/ was given to the case's own script: what it changes is not checked"
SHOWN_OF_A_DIGEST = 12
# Of what rank 0 reports: all of it stands in each result.
LONGEST_TEXT, Few = 500, Field(max_length=300)


@dataclass(frozen=True)
class HookDifference:
    """What a hook changed beyond the rules: `what` was `case` and is `vendor`."""

    hook: str
    what: str
    case: str
    vendor: str
    __pydantic_config__: ClassVar = {"str_max_length": LONGEST_TEXT}

    def __str__(self) -> str:
        return f"{self.hook}: {self.what}: {self.vendor}, in place of {self.case}"


@dataclass(frozen=True)
class HooksSeen:
    """The vendor's code in a round.

    in_force: hook -> the file of `extern/` that defines it. files: all that lie there, path -> SHA-256; digest: of
    them together (`utils/code_files.py`). differs: what they changed beyond the rules. unchecked: what could not be
    seen. flops: what was counted of a micro-batch.
    """

    in_force: Annotated[Mapping[str, str], Few] = field(default_factory=dict)
    files: Annotated[Mapping[str, str], Few] = field(default_factory=dict)
    digest: str = ""
    differs: Annotated[tuple[HookDifference, ...], Few] = ()
    unchecked: Annotated[tuple[str, ...], Few] = ()
    flops: Annotated[Mapping[str, float], Few] = field(default_factory=dict)
    __pydantic_config__: ClassVar = {"str_max_length": LONGEST_TEXT}

    def summary(self) -> str:
        """The hooks in force and the digest of their folder, in a line; empty where there is no code of a vendor."""
        if not self.files:
            return ""
        listed = ", ".join(f"{name} ({file})" for name, file in self.in_force.items()) or "none"
        code = f"extern/ has {counted(len(self.files), 'file')}, SHA-256 {self.digest[:SHOWN_OF_A_DIGEST]}"
        return f"hooks in force: {listed}; {code}"


def hooks_seen(
    events: Sequence[Event], planned: Mapping[str, str] | None, *, own_script: bool
) -> tuple[HooksSeen | None, str]:
    """The hooks of a round, None where the case reports none; and why they cannot be judged, or nothing.

    Args:
        planned: the files of the checkout's `extern/`; None where the plan does not say, as of earlier versions.
        own_script: the case does without the driver.
    """
    from_plan = HooksSeen(files=planned, digest=digest_of(planned)) if planned else None
    if own_script:
        return from_plan, OWN_SCRIPT if from_plan else ""
    value = next((event.value for event in events if event.name == EventName.HOOKS), None)
    if value is None:
        return from_plan, NOT_REPORTED if from_plan else ""
    try:
        seen = parsed(HooksSeen, value, "HOOKS")
    except FlagPerfError as error:
        return from_plan, f"the event HOOKS cannot be read: {error.message}"
    seen = replace(seen, digest=digest_of(seen.files))
    return (seen if planned is None else _compared(seen, digest_of(planned))), ""


def _compared(seen: HooksSeen, planned: str) -> HooksSeen:
    """With a difference where the code that ran is not the checkout's."""
    if seen.digest == planned:
        return seen
    other = HookDifference(
        "extern/", "SHA-256 of its files", planned or "no files", seen.digest or "no files"
    )
    return replace(seen, differs=(*seen.differs, other))
