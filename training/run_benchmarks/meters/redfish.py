"""A machine's power by its BMC's Redfish service: found once, then one request a sample.

What a BMC has differs: newer ones the EnvironmentMetrics of a chassis, older ones PowerControl of its Power resource,
some only their power supplies or sensors. They are tried in this order, and the first that has a reading is taken: each
of them is of the whole machine (`redfish_choice`), so that it does not matter which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from run_benchmarks.meters.base import MeterSource, UnreachableError
from run_benchmarks.meters.https import Bmc
from run_benchmarks.meters.redfish_choice import (
    control_in_words,
    labels,
    listed,
    machines,
    power_of_control,
    rivals,
    totals_of,
)
from run_benchmarks.meters.redfish_lists import Listing, id_of, listing, place
from run_benchmarks.meters.redfish_resources import (
    MOST_PARTS,
    MOST_SENSORS,
    Chassis,
    Collection,
    Environment,
    Power,
    Reading,
    Root,
    Subsystem,
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
MOST_CHASSIS, MOST_REASONS = 128, 4
NAME_CHASSIS = 'write which of them is the host: "chassis": "NAME"'
NO_POWER = (
    "see whether another user may read it, or a licence is missing; where another chassis is the host, write that: "
    '"chassis": "NAME"; or remove the meter'
)
NO_READING = (
    'one that has just started may tell it later; else ask the BMC by IPMI, where "sensors" names those of the host; '
    "or remove the meter"
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
        every = self._every_chassis()
        names = labels(every)
        candidates = every if self.meter.chassis else machines(every)
        if every and not candidates:
            message = f"has no chassis that is clearly a machine: {listed([*names.values()], MOST_CHASSIS)}"
            raise self._unclear(message)
        ways = {path: its_ways for path, each in candidates.items() if (its_ways := self._ways_of(each))}
        if not ways:
            parts = [name for path, name in names.items() if path not in candidates]
            but_parts = f" (but for what is a part of it: {listed(parts)})" if parts else ""
            silent = listed([names[path] for path in candidates])
            message = f"{self.meter.where} tells no power: {silent}{but_parts}"
            raise FlagPerfError(message, remedy=NO_POWER)
        telling = listed([names[path] for path in ways])
        if len(ways) > 1:  # also where just one of them has a reading now: the other may be the machine
            raise self._unclear(f"has several chassis that tell a power: {telling}")
        ((path, of_machine),) = ways.items()
        others = [] if self.meter.chassis else rivals(path, every)
        if others:
            silent = listed([names[each] for each in others])
            raise self._unclear(f"tells a power of {telling} only, and the machine may as well be {silent}")
        way = self._first_with_reading(names[path], of_machine)
        what = f"{way.what} of chassis {shown(names[path])}"
        self._describe(what, is_shared=every[path].links.has_several_systems)
        return way

    def _every_chassis(self) -> Mapping[str, Chassis]:
        """The chassis by their paths; where the user named one, that alone."""
        found = self._list(self._get(Root, ROOT).chassis.path, MOST_SENSORS)
        if self.meter.chassis:
            path = self._named(found)
            return {place(path): self._get(Chassis, path)}
        missing = found.missing
        if len(found.paths) > MOST_CHASSIS:
            missing = f"it has {len(found.paths)}, of which at most {MOST_CHASSIS} are looked at"
        if missing:  # the machine may be among the others
            message = f"{self.meter.where} does not say of all its chassis what they are: {missing}"
            raise FlagPerfError(message, remedy=f"{NAME_CHASSIS}; or ask the BMC by IPMI")
        return {place(path): self._get(Chassis, path) for path in found.paths}

    def _named(self, found: Listing) -> str:
        """The path of the chassis that the user named, by its ID or, where several have that, its path."""
        wanted = place(self.meter.chassis)
        by_path = [path for path in found.paths if place(path) == wanted]
        those = by_path or [path for path in found.paths if id_of(path) == wanted]
        if len(those) == 1:
            return those[0]
        if those:
            raise self._unclear(f"has several chassis with this ID: {listed(those)}")
        missing = f" among those that it lists ({found.missing})" if found.missing else ""
        names = listed([*labels(found.paths).values()], MOST_CHASSIS)
        message = f"{self.meter.where}: there is no such chassis{missing}"
        raise FlagPerfError(message, remedy=f"write one of {names}")

    def _unclear(self, why: str) -> FlagPerfError:
        """Which chassis is the machine is for the user to say."""
        return FlagPerfError(f"{self.meter.where} {why}", remedy=NAME_CHASSIS)

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
            yield Way(control_in_words(power), (path,), _taker(Power, path, power_of_control))
        if power.supplies:
            yield _of_supplies(power.supplies, (path,), _taker(Power, path, _of_each_supply))

    def _of_subsystem(self, chassis: Chassis) -> Iterator[Way]:
        link = self._get(Subsystem, chassis.subsystem.path).supplies if chassis.subsystem else None
        if link:
            members = self._list(link.path, MOST_PARTS)
            if members.missing:  # a sum of some of them would be no machine's power
                yield _incomplete("power supplies", link.path, members.missing)
                return
            supplies = {path: self._get(Supply, path) for path in members.paths}
            # an empty bay is read itself: once it has a supply in it, the sum without that is not the machine's power
            paths = tuple(
                path if each.status.is_absent or not each.metrics else each.metrics.path
                for path, each in supplies.items()
            )
            taker = _taker(SupplyMetrics, link.path, lambda each: each.taken)
            yield _of_supplies(supplies.values(), paths, taker)

    def _of_sensors(self, chassis: Chassis) -> Iterator[Way]:
        if not chassis.sensors:
            return
        sensors = self._list(chassis.sensors.path, MOST_SENSORS)
        clear, unclear = totals_of(sensors.paths)
        if (clear or unclear) and sensors.missing:
            yield _incomplete("sensors", chassis.sensors.path, sensors.missing)
            return
        for path in clear:
            what = f"sensor {shown(id_of(path))}"
            yield Way(what, (path,), _taker(Reading, path, lambda each: each.watts))
        if unclear:
            what = (
                f"sensors, of which none is clearly of the whole machine ({listed([*map(id_of, unclear)])})"
            )
            yield Way(what, (unclear[0],), lambda _: None)

    def _list(self, path: str, most: int) -> Listing:
        return listing(lambda page: self._get(Collection, page), path, most)

    def _get(self, kind: type[T], path: str) -> T:
        return parsed(kind, self._bmc.get(path), f"{self.meter.where}{path}")


def _taker(
    kind: type[T], where: str, take: Callable[[T], float | None]
) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda content: take(parsed(kind, content, where))


def _of_environment(environment: Environment) -> float | None:
    return environment.power.watts if environment.power else None


def _incomplete(what: str, path: str, missing: str) -> Way:
    """A way that leads nowhere, for it says why: not all of a list is told."""
    return Way(what, (path,), lambda _: None, missing)


def _of_each_supply(power: Power) -> float | None:
    return _added(each.taken for each in power.supplies) if power.has_all_supplies else None


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
