"""A machine's power by its BMC's Redfish service: found once, then one request a sample.

What a BMC has differs: newer ones the EnvironmentMetrics of a chassis, older ones PowerControl of its Power resource,
some only their power supplies or sensors. They are tried in this order, and the first that has a reading is taken.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from run_benchmarks.meters.base import MeterSource, UnreachableError
from run_benchmarks.meters.https import PATH, Bmc
from run_benchmarks.plan.meters import Meter
from run_benchmarks.reading import parsed
from utils.errors import FlagPerfError
from utils.text_files import one_line, shortened_to_words

T = TypeVar("T")
ROOT = "/redfish/v1"
MOST_CHASSIS, MOST_PARTS, MOST_SENSORS = 64, 32, 2_000
LONGEST_NAME, LONGEST_PATH = 60, 1024
# By their paths: sensors that name the power of the whole chassis.
_TOTAL = re.compile(
    r"(.*_)?(total|system|sys|chassis|server|node)_?(input_?)?(power|pwr|watts)(_\d+)?", re.ASCII
)


def _reading(value: Any) -> float | None:
    """A power as it stands there; BMCs write null, 0 or a text where they do not measure it."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value <= sys.float_info.max else None


Watts = Annotated[float | None, BeforeValidator(_reading)]


def _shown(name: str) -> str:
    """A name of the BMC's own, as a part of a line."""
    return shortened_to_words(one_line(name), LONGEST_NAME)


Name = Annotated[str, BeforeValidator(lambda value: _shown(str(value or "")))]


@dataclass(frozen=True)
class Link:
    """Where a resource lies, on this BMC."""

    path: Annotated[str, Field(alias="@odata.id", pattern=f"^{PATH}$", max_length=LONGEST_PATH)]


Links = Annotated[tuple[Link, ...], Field(max_length=MOST_PARTS)]


@dataclass(frozen=True)
class Root:
    """The service's first resource."""

    chassis: Annotated[Link, Field(alias="Chassis")]


@dataclass(frozen=True)
class Collection:
    """Resources of a kind."""

    members: Annotated[tuple[Link, ...], Field(alias="Members", max_length=MOST_SENSORS)]


@dataclass(frozen=True)
class ChassisLinks:
    """What a chassis belongs to, and what belongs to it."""

    systems: Annotated[Links, Field(alias="ComputerSystems")] = ()
    contained_by: Annotated[Link | None, Field(alias="ContainedBy")] = None


@dataclass(frozen=True)
class Chassis:
    """A box, a board in it, or a part of that: a BMC may have dozens."""

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

    power: Annotated[Reading, Field(alias="PowerWatts")] = field(default_factory=Reading)


@dataclass(frozen=True)
class Control:
    """A member of PowerControl."""

    name: Annotated[Name, Field(alias="Name")] = ""
    watts: Annotated[Watts, Field(alias="PowerConsumedWatts")] = None


@dataclass(frozen=True)
class Supply:
    """A member of PowerSupplies. What it takes in is the machine's power; what it gives is that without its losses."""

    taken: Annotated[Watts, Field(alias="PowerInputWatts")] = None


@dataclass(frozen=True)
class Power:
    """The Power resource of a chassis."""

    controls: Annotated[tuple[Control, ...], Field(alias="PowerControl", max_length=MOST_PARTS)] = ()
    supplies: Annotated[tuple[Supply, ...], Field(alias="PowerSupplies", max_length=MOST_PARTS)] = ()


@dataclass(frozen=True)
class Subsystem:
    """PowerSubsystem."""

    supplies: Annotated[Link | None, Field(alias="PowerSupplies")] = None


@dataclass(frozen=True)
class NewSupply:
    """A power supply of PowerSubsystem."""

    metrics: Annotated[Link | None, Field(alias="Metrics")] = None


@dataclass(frozen=True)
class SupplyMetrics:
    """Its metrics."""

    taken: Annotated[Reading, Field(alias="InputPowerWatts")] = field(default_factory=Reading)


@dataclass(frozen=True)
class Way:
    """How a chassis tells its power: the sum of what `watts` takes from each of `paths`. what: in words."""

    what: str
    paths: tuple[str, ...]
    watts: Callable[[Mapping[str, Any]], float | None]


class RedfishMeter(MeterSource):
    """The power of a chassis by Redfish."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(meter)
        self._bmc = Bmc(meter)
        self._way: Way | None = None

    def close(self) -> None:
        """End the session."""
        self._bmc.close()

    def _read(self) -> float:
        if self._way is None:
            self._way = self._chosen()
        return _sum(self._bmc, self._way)

    def _chosen(self) -> Way:
        """The chassis that is the machine, and how it tells its power."""
        every = dict(self._every_chassis())
        wanted = self.meter.chassis
        if wanted and wanted not in every:
            remedy = f"write one of {', '.join(map(_shown, every)) or 'none'}"
            raise FlagPerfError(f"{self.meter.where}: there is no such chassis", remedy=remedy)
        chosen = {wanted: every[wanted]} if wanted else every
        ways = {name: way for name, each in _outermost(chosen).items() if (way := self._way_of(each))}
        if not ways and not wanted:
            ways = {name: way for name, each in chosen.items() if (way := self._way_of(each))}
        if not ways:
            raise FlagPerfError(
                f"{self.meter.where} tells no power: {', '.join(map(_shown, chosen)) or 'it has no chassis'}",
                remedy="see whether another user may read it, or a licence is missing; or remove the meter",
            )
        if len(ways) > 1:
            raise FlagPerfError(
                f"{self.meter.where} has several chassis that tell a power: {', '.join(map(_shown, ways))}",
                remedy='write which of them is the host: "chassis": "NAME"',
            )
        ((name, way),) = ways.items()
        self._describe(f"{way.what} of chassis {_shown(name)}", is_shared=len(every[name].links.systems) > 1)
        return way

    def _every_chassis(self) -> Iterator[tuple[str, Chassis]]:
        """The last part of each one's path, which is its ID, and the chassis."""
        root = self._get(Root, ROOT)
        for link in self._get(Collection, root.chassis.path).members[:MOST_CHASSIS]:
            yield link.path.rstrip("/").rpartition("/")[2], self._get(Chassis, link.path)

    def _way_of(self, chassis: Chassis) -> Way | None:
        for ways in (self._of_environment, self._of_power, self._of_subsystem, self._of_sensors):
            try:
                for way in ways(chassis):
                    if self._tells(way):
                        return way
            except UnreachableError:
                raise
            except FlagPerfError:  # a resource that is not there, or not what it should be: the next may do
                continue
        return None

    def _tells(self, way: Way) -> bool:
        try:
            return _sum(self._bmc, way) > 0
        except UnreachableError:
            raise
        except FlagPerfError:
            return False

    def _of_environment(self, chassis: Chassis) -> Iterator[Way]:
        if chassis.environment:
            path = chassis.environment.path
            yield Way("EnvironmentMetrics", (path,), _taker(Environment, path, lambda each: each.power.watts))

    def _of_power(self, chassis: Chassis) -> Iterator[Way]:
        if not chassis.power:
            return
        path = chassis.power.path
        power = self._get(Power, path)
        for place, control in enumerate(power.controls):
            what = f"PowerControl {place}" + (f" ({control.name})" if control.name else "")
            yield Way(what, (path,), _taker(Power, path, partial(_of_control, place)))
        if power.supplies:
            what = f"input of {len(power.supplies)} power supplies"
            yield Way(what, (path,), _taker(Power, path, lambda each: _added(s.taken for s in each.supplies)))

    def _of_subsystem(self, chassis: Chassis) -> Iterator[Way]:
        supplies = self._get(Subsystem, chassis.subsystem.path).supplies if chassis.subsystem else None
        if supplies:
            members = self._get(Collection, supplies.path).members[:MOST_PARTS]
            metrics = [self._get(NewSupply, link.path).metrics for link in members]
            paths = tuple(each.path for each in metrics if each)
            what = f"input of {len(paths)} power supplies"
            yield Way(what, paths, _taker(SupplyMetrics, supplies.path, lambda each: each.taken.watts))

    def _of_sensors(self, chassis: Chassis) -> Iterator[Way]:
        sensors = self._get(Collection, chassis.sensors.path).members if chassis.sensors else ()
        for link in sensors:
            name = link.path.rstrip("/").rpartition("/")[2]
            if _TOTAL.fullmatch(name.lower()):
                yield Way(
                    f"sensor {_shown(name)}",
                    (link.path,),
                    _taker(Reading, link.path, lambda each: each.watts),
                )

    def _get(self, kind: type[T], path: str) -> T:
        return parsed(kind, self._bmc.get(path), f"{self.meter.where}{path}")


def _outermost(every: Mapping[str, Chassis]) -> dict[str, Chassis]:
    """Those that are in no other one: boards and their parts are in the box."""
    return {name: each for name, each in every.items() if each.links.contained_by is None}


def _taker(
    kind: type[T], where: str, take: Callable[[T], float | None]
) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda content: take(parsed(kind, content, where))


def _of_control(place: int, power: Power) -> float | None:
    return power.controls[place].watts if place < len(power.controls) else None


def _added(parts: Iterator[float | None]) -> float | None:
    """The sum; None where a part is missing: a power supply that tells nothing may carry half of the load."""
    values = list(parts)
    return None if None in values else sum(filter(None, values))


def _sum(bmc: Bmc, way: Way) -> float:
    """The power now; FlagPerfError where a part of it is not told."""
    watts = _added(way.watts(bmc.get(path)) for path in way.paths)
    if watts is None:
        raise FlagPerfError(f"{way.what}: no power is told")
    return watts
