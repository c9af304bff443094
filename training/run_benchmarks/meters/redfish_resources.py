"""What Redfish's resources say of power: those parts of DMTF's schemas (DSP8010) that are read, bounded."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from run_benchmarks.meters.https import PATH
from utils.text_files import one_line, shortened_to_words

MOST_PARTS, MOST_SENSORS = 32, 2_000
LONGEST_NAME, LONGEST_PATH = 60, 1024


def _reading(value: Any) -> float | None:
    """A power as it stands there; BMCs write null or a text where they do not measure it."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= sys.float_info.max else None


Watts = Annotated[float | None, BeforeValidator(_reading)]


def _count(value: Any) -> int | None:
    """How many members there are, as it stands there; None where it is no number, for a list stands without one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


Count = Annotated[int | None, BeforeValidator(_count)]
# Where a list goes on, if all of it does not stand here (DSP0266); whatever it is, it says that something is missing.
NextPage = Annotated[
    str, BeforeValidator(lambda value: value if isinstance(value, str) else str(value or ""))
]


def shown(name: str) -> str:
    """A name of the BMC's own, as a part of a line."""
    return shortened_to_words(one_line(name), LONGEST_NAME)


Name = Annotated[str, BeforeValidator(lambda value: shown(str(value or "")))]


@dataclass(frozen=True)
class Link:
    """Where a resource lies, on this BMC."""

    path: Annotated[str, Field(alias="@odata.id", pattern=f"^{PATH}$", max_length=LONGEST_PATH)]


def _first(value: Any) -> Any:
    """Some BMCs write a list where one link belongs (DSP0268: Chassis, Links, ContainedBy)."""
    return next(iter(value), None) if isinstance(value, list) else value


Links = Annotated[tuple[Link, ...], Field(max_length=MOST_PARTS)]


@dataclass(frozen=True)
class Root:
    """The service's first resource."""

    chassis: Annotated[Link, Field(alias="Chassis")]


@dataclass(frozen=True)
class Collection:
    """Resources of a kind."""

    members: Annotated[tuple[Link, ...], Field(alias="Members", max_length=MOST_SENSORS)]
    count: Annotated[Count, Field(alias="Members@odata.count")] = None
    next_page: Annotated[
        NextPage, Field(validation_alias=AliasChoices("Members@odata.nextLink", "@odata.nextLink"))
    ] = ""


@dataclass(frozen=True)
class ChassisLinks:
    """What a chassis belongs to, and what belongs to it."""

    systems: Annotated[Links, Field(alias="ComputerSystems")] = ()
    system_count: Annotated[Count, Field(alias="ComputerSystems@odata.count")] = None
    contained_by: Annotated[Link | None, BeforeValidator(_first), Field(alias="ContainedBy")] = None

    @property
    def has_several_systems(self) -> bool:
        """Whether it is of several machines."""
        return max(len(self.systems), self.system_count or 0) > 1


@dataclass(frozen=True)
class Chassis:
    """A box, a board in it, or a part of that: a BMC may have dozens."""

    kind: Annotated[Name, Field(alias="ChassisType")] = ""
    links: Annotated[ChassisLinks, Field(alias="Links")] = field(default_factory=ChassisLinks)
    environment: Annotated[Link | None, Field(alias="EnvironmentMetrics")] = None
    power: Annotated[Link | None, Field(alias="Power")] = None
    subsystem: Annotated[Link | None, Field(alias="PowerSubsystem")] = None
    sensors: Annotated[Link | None, Field(alias="Sensors")] = None


@dataclass(frozen=True)
class Reading:
    """A power as newer resources have it."""

    watts: Annotated[Watts, Field(alias="Reading")] = None


@dataclass(frozen=True)
class Environment:
    """EnvironmentMetrics."""

    power: Annotated[Reading | None, Field(alias="PowerWatts")] = None


@dataclass(frozen=True)
class Control:
    """A member of PowerControl: of the machine, or of a part of it. context: PhysicalContext, which part."""

    name: Annotated[Name, Field(alias="Name")] = ""
    context: Annotated[Name, Field(alias="PhysicalContext")] = ""
    watts: Annotated[Watts, Field(alias="PowerConsumedWatts")] = None


@dataclass(frozen=True)
class Status:
    """The status of a part."""

    state: Annotated[Name, Field(alias="State")] = ""

    @property
    def is_absent(self) -> bool:
        """An empty bay, whatever stands there of its power."""
        return self.state == "Absent"


@dataclass(frozen=True)
class Supply:
    """A power supply. What it takes in is the machine's power; what it gives is that without its losses."""

    status: Annotated[Status, Field(alias="Status")] = field(default_factory=Status)
    input_watts: Annotated[Watts, Field(alias="PowerInputWatts")] = None  # a member of Power
    metrics: Annotated[Link | None, Field(alias="Metrics")] = None  # one of PowerSubsystem

    @property
    def taken(self) -> float | None:
        """What it takes in, in W; None where nobody knows."""
        return 0.0 if self.status.is_absent else self.input_watts


@dataclass(frozen=True)
class Power:
    """The Power resource of a chassis."""

    controls: Annotated[tuple[Control, ...], Field(alias="PowerControl", max_length=MOST_PARTS)] = ()
    supplies: Annotated[tuple[Supply, ...], Field(alias="PowerSupplies", max_length=MOST_PARTS)] = ()
    control_count: Annotated[Count, Field(alias="PowerControl@odata.count")] = None
    supply_count: Annotated[Count, Field(alias="PowerSupplies@odata.count")] = None
    more_controls: Annotated[NextPage, Field(alias="PowerControl@odata.nextLink")] = ""
    more_supplies: Annotated[NextPage, Field(alias="PowerSupplies@odata.nextLink")] = ""

    @property
    def has_all_controls(self) -> bool:
        """Whether every member of PowerControl stands here."""
        return not self.more_controls and (self.control_count or 0) <= len(self.controls)

    @property
    def has_all_supplies(self) -> bool:
        """Whether every power supply stands here."""
        return not self.more_supplies and (self.supply_count or 0) <= len(self.supplies)


@dataclass(frozen=True)
class Subsystem:
    """PowerSubsystem."""

    supplies: Annotated[Link | None, Field(alias="PowerSupplies")] = None


@dataclass(frozen=True)
class SupplyMetrics:
    """The metrics of one of them; or of an empty bay, which has none, itself."""

    status: Annotated[Status, Field(alias="Status")] = field(default_factory=Status)
    reading: Annotated[Reading, Field(alias="InputPowerWatts")] = field(default_factory=Reading)

    @property
    def taken(self) -> float | None:
        """As of `Supply`."""
        return 0.0 if self.status.is_absent else self.reading.watts
