"""A machine's power by its BMC's Redfish service: found once, then one request a sample.

What a BMC has differs: newer ones the EnvironmentMetrics of a chassis, older ones PowerControl of its Power resource,
some only their power supplies or sensors. They are tried in this order, and the first that has a reading is taken: each
of them is of the whole machine (`redfish_choice`), so that it does not matter which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from run_benchmarks.meters.base import MeterSource, UnreachableError
from run_benchmarks.meters.https import Bmc
from run_benchmarks.meters.redfish_choice import (
    control_in_words,
    control_of_machine,
    id_of,
    listed,
    machines,
    names_a_part,
)
from run_benchmarks.meters.redfish_resources import (
    Chassis,
    Collection,
    Environment,
    Power,
    Reading,
    Root,
    Subsystem,
    Supplies,
    Supply,
    SupplyMetrics,
    shown,
)
from run_benchmarks.plan.meters import Meter
from run_benchmarks.reading import parsed
from utils.errors import FlagPerfError
from utils.numbers import counted

T = TypeVar("T")
ROOT = "/redfish/v1"
MOST_CHASSIS, MOST_REASONS = 64, 4
NAME_CHASSIS = 'write which of them is the host: "chassis": "NAME"'
NO_POWER = "see whether another user may read it, or a licence is missing; or remove the meter"
NO_READING = (
    'one that has just started may tell it later; else ask the BMC by IPMI, where "sensors" names those of the host; '
    "or remove the meter"
)
# By their paths: sensors that name the power of the whole chassis.
_TOTAL = re.compile(
    r"(.*_)?(total|system|sys|chassis|server|node)_?(input_?)?(power|pwr|watts)(_\d+)?", re.ASCII
)


@dataclass(frozen=True)
class Way:
    """How a chassis tells its power: the sum of what `watts` takes from each of `paths`. what, silent: in words."""

    what: str
    paths: tuple[str, ...]
    watts: Callable[[Mapping[str, Any]], float | None]
    silent: str = "no power is told"


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
        candidates = self._candidates(every)
        ways = {name: its_ways for name, each in candidates.items() if (its_ways := self._ways_of(each))}
        if not ways:
            parts = [name for name in every if name not in candidates]
            but_parts = f" (but for what is a part of it: {listed(parts)})" if parts else ""
            message = f"{self.meter.where} tells no power: {listed([*candidates])}{but_parts}"
            raise FlagPerfError(message, remedy=NO_POWER)
        if len(ways) > 1:  # also where just one of them has a reading now: the other may be the machine
            message = f"{self.meter.where} has several chassis that tell a power: {listed([*ways])}"
            raise FlagPerfError(message, remedy=NAME_CHASSIS)
        ((name, of_machine),) = ways.items()
        way = self._first_with_reading(name, of_machine)
        is_shared = len(every[name].links.systems) > 1
        self._describe(f"{way.what} of chassis {shown(name)}", is_shared=is_shared)
        return way

    def _candidates(self, every: Mapping[str, Chassis]) -> Mapping[str, Chassis]:
        """Those that may be the machine: the one that the user named, if any."""
        names = listed([*every], MOST_CHASSIS)
        wanted = self.meter.chassis
        if wanted and wanted not in every:
            raise FlagPerfError(
                f"{self.meter.where}: there is no such chassis", remedy=f"write one of {names}"
            )
        candidates = {wanted: every[wanted]} if wanted else machines(every)
        if every and not candidates:
            message = f"{self.meter.where} has no chassis that is clearly a machine: {names}"
            raise FlagPerfError(message, remedy=NAME_CHASSIS)
        return candidates

    def _every_chassis(self) -> Iterator[tuple[str, Chassis]]:
        """The last part of each one's path, which is its ID, and the chassis."""
        root = self._get(Root, ROOT)
        for link in self._get(Collection, root.chassis.path).members[:MOST_CHASSIS]:
            yield id_of(link.path), self._get(Chassis, link.path)

    def _first_with_reading(self, name: str, ways: Iterable[Way]) -> Way:
        reasons = []
        for way in ways:
            reason = self._why_silent(way)
            if not reason:
                return way
            reasons.append(reason)
        why = "; ".join(reasons[:MOST_REASONS])
        message = f"{self.meter.where} tells no power of the whole machine: chassis {shown(name)}: {why}"
        raise FlagPerfError(message, remedy=NO_READING)

    def _ways_of(self, chassis: Chassis) -> Iterator[Way] | None:
        """Its ways, each looked for when it is its turn: a list of sensors can take a BMC longer than it may."""
        ways = self._every_way(chassis)
        first = next(ways, None)
        return chain([first], ways) if first else None

    def _every_way(self, chassis: Chassis) -> Iterator[Way]:
        for ways in (self._of_environment, self._of_power, self._of_subsystem, self._of_sensors):
            try:
                yield from ways(chassis)
            except UnreachableError:
                raise
            except FlagPerfError:  # a resource that is not there, or not what it should be: the next may do
                continue

    def _why_silent(self, way: Way) -> str:
        """Why this tells no power now; empty where it does."""
        try:
            return "" if _sum(self._bmc, way) > 0 else f"{way.what}: 0 W"
        except UnreachableError:
            raise
        except FlagPerfError as error:
            return error.message

    def _of_environment(self, chassis: Chassis) -> Iterator[Way]:
        if chassis.environment and self._get(Environment, chassis.environment.path).power:
            path = chassis.environment.path
            yield Way("EnvironmentMetrics", (path,), _taker(Environment, path, _of_environment))

    def _of_power(self, chassis: Chassis) -> Iterator[Way]:
        if not chassis.power:
            return
        path = chassis.power.path
        power = self._get(Power, path)
        if power.controls:
            yield Way(control_in_words(power.controls), (path,), _taker(Power, path, _of_control))
        if power.supplies:
            yield _of_supplies(power.supplies, (path,), _taker(Power, path, _of_each_supply))

    def _of_subsystem(self, chassis: Chassis) -> Iterator[Way]:
        link = self._get(Subsystem, chassis.subsystem.path).supplies if chassis.subsystem else None
        if link:
            members = self._get(Supplies, link.path).members
            supplies = {member.path: self._get(Supply, member.path) for member in members}
            # an empty bay is read itself: once it has a supply in it, the sum without that is not the machine's power
            paths = tuple(
                path if each.status.is_absent or not each.metrics else each.metrics.path
                for path, each in supplies.items()
            )
            taker = _taker(SupplyMetrics, link.path, lambda each: each.taken)
            yield _of_supplies(supplies.values(), paths, taker)

    def _of_sensors(self, chassis: Chassis) -> Iterator[Way]:
        sensors = self._get(Collection, chassis.sensors.path).members if chassis.sensors else ()
        for link in sensors:
            name = id_of(link.path)
            if _TOTAL.fullmatch(name.lower()) and not names_a_part(name):
                yield Way(
                    f"sensor {shown(name)}",
                    (link.path,),
                    _taker(Reading, link.path, lambda each: each.watts),
                )

    def _get(self, kind: type[T], path: str) -> T:
        return parsed(kind, self._bmc.get(path), f"{self.meter.where}{path}")


def _taker(
    kind: type[T], where: str, take: Callable[[T], float | None]
) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda content: take(parsed(kind, content, where))


def _of_environment(environment: Environment) -> float | None:
    return environment.power.watts if environment.power else None


def _of_control(power: Power) -> float | None:
    control = control_of_machine(power.controls)
    return control.watts if control else None


def _of_each_supply(power: Power) -> float | None:
    return _added(each.taken for each in power.supplies)


def _of_supplies(
    supplies: Iterable[Supply], paths: tuple[str, ...], watts: Callable[[Mapping[str, Any]], float | None]
) -> Way:
    count = sum(not each.status.is_absent for each in supplies)
    silent = "not all of them tell theirs"
    return Way(f"input of {counted(count, 'power supply', 'power supplies')}", paths, watts, silent)


def _added(parts: Iterable[float | None]) -> float | None:
    """The sum; None where a part is missing: a power supply that tells nothing may carry half of the load.

    One that takes in 0 W is a part like another: in standby beside those that carry the load.
    """
    values = list(parts)
    return None if None in values else sum(filter(None, values))


def _sum(bmc: Bmc, way: Way) -> float:
    """The power now; FlagPerfError where a part of it is not told."""
    watts = _added(way.watts(bmc.get(path)) for path in way.paths)
    if watts is None:
        raise FlagPerfError(f"{way.what}: {way.silent}")
    return watts
