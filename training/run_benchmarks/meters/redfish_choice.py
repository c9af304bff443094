"""What of a Redfish service is the whole machine: by what its resources say they are, not by which has a value now.

The schemas give members of PowerControl no order, and a BMC lists boards and their parts beside the box. A reading of a
part must not pass for the machine's: what is not clear is for the user to say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from run_benchmarks.meters.redfish_lists import id_of, place
from run_benchmarks.meters.redfish_resources import Chassis, Control, Power, shown

# Words for parts, in names and in PhysicalContext. "HGX" is NVIDIA's board of GPUs, which has a chassis of its own in
# the server's. A numbered power supply is one of several. PhysicalContext has PowerSubsystem for all of the supplies.
_PART = re.compile(
    r"[cg]pu|(?<![a-z])([ntd]pu|fan|nic|mem(?!ber)|psu?[ _-]?\d)|power[ _-]?supply[ _-]?\d"
    r"|processor|accelerator|fpga|hgx|dimm|dram|storage|drive|disk|network|switch|pcie|riser|backplane|cooling"
    r"|(?<!power)(?<!power[ _-])sub[ _-]?system",
    re.ASCII,
)
# What is built into a box, and by its name no box: bmcweb has each resource as a RackMount that holds the system.
_BOARD = re.compile(r"board|panel|mid[ _-]?plane|(?<![a-z])(pdb|bmc)(?![a-z])", re.ASCII)
_MACHINE = re.compile(r"(?<![a-z])(system|sys|server|machine|chassis|node|host|total|platform)", re.ASCII)
# ChassisType (DSP2046) of what is built into, or stands beside, the box with the system; and of what is one machine.
_KINDS_OF_PARTS = (
    "Card", "Component", "Expansion", "HeatExchanger", "ImmersionTank", "IPBasedDrive", "Module", "PowerStrip",
    "Sidecar", "StorageEnclosure", "Zone",
)  # fmt: skip
_KINDS_OF_MACHINES = ("Blade", "Cartridge", "RackMount", "Sled", "StandAlone")
# Sensors that name the power of the whole chassis, by the last part of their paths. A word before that, or a number,
# may tell several of them apart: node1_total_power, system_input_power_2.
_PLAIN_TOTAL = r"(total|system|sys|chassis|server|node)_?(input_?)?(power|pwr|watts)"
_TOTAL = re.compile(rf"(.*_)?{_PLAIN_TOTAL}(_\d+)?", re.ASCII)
_CLEAR_TOTAL = re.compile(rf"(power_)?{_PLAIN_TOTAL}", re.ASCII)
_FIRST_NUMBERS = {"", "0", "1"}


def names_a_part(name: str) -> bool:
    """Whether a name says that it is of a part of a machine: total_gpu_power is."""
    return bool(_PART.search(name.lower()))


def machines(every: Mapping[str, Chassis]) -> dict[str, Chassis]:
    """The chassis that may be the whole machine, by path: the outermost of those that hold a system, if any does."""
    boxes = _boxes(every)
    holding = {path: each for path, each in boxes.items() if each.links.systems} or boxes
    return {path: each for path, each in holding.items() if not _is_within(path, holding, every)}


def rivals(path: str, every: Mapping[str, Chassis]) -> list[str]:
    """The other chassis that say as much as this one that they are the machine, whether they tell a power or not.

    A silent board is none of a box.
    """
    return [
        other
        for other, each in _boxes(every).items()
        if other != path
        and (_is_board(path) or not _is_board(other))
        and _evidence(each) >= _evidence(every[path])
        and not _is_within(other, {path}, every)
    ]


def labels(paths: Iterable[str]) -> dict[str, str]:
    """Chassis by path -> what each is called: its ID, or its path where another has that ID too."""
    ids = {place(path): id_of(path) for path in paths}
    counts = Counter(ids.values())
    return {path: name if counts[name] == 1 else path for path, name in ids.items()}


def totals_of(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of a chassis's sensors those whose power is clearly the whole chassis's, and those of which it is not clear."""
    names = {path: id_of(path).lower() for path in paths}
    totals = [path for path, name in names.items() if _TOTAL.fullmatch(name) and not names_a_part(name)]
    # one of several that a number tells apart may be a part of what they measure together
    count = Counter(re.sub(r"_\d+$", "", names[path]) for path in totals)
    clear = [path for path in totals if _CLEAR_TOTAL.fullmatch(names[path]) and count[names[path]] == 1]
    if len(totals) == 1 and _FIRST_NUMBERS.issuperset(re.split(r"[^0-9]+", names[totals[0]])):
        clear = totals
    return clear, [] if clear else totals


def control_of_machine(controls: Sequence[Control]) -> Control | None:
    """The member of PowerControl that is the machine's: the one that says so, or the only one if it is of no part."""
    named = [each for each in controls if not _is_of_a_part(each) and _says_machine(each)]
    if not named and len(controls) == 1 and not _is_of_a_part(controls[0]):
        return controls[0]
    return named[0] if len(named) == 1 else None


def power_of_control(power: Power) -> float | None:
    """What the machine's member of PowerControl tells."""
    control = control_of_machine(power.controls) if power.has_all_controls else None
    return control.watts if control else None


def control_in_words(power: Power) -> str:
    """Which one that is, for a note; or that none is."""
    names = listed([each.name for each in power.controls])
    if not power.has_all_controls:
        return f"PowerControl, of whose members not all are listed ({names})"
    control = control_of_machine(power.controls)
    if control is None:
        return f"PowerControl, of whose members ({names}) none is clearly the machine"
    unclear = "" if _says_machine(control) else "its only member, which does not say of what it is"
    says = ", ".join(filter(None, (control.name or control.context, unclear)))
    return f"PowerControl {list(power.controls).index(control)} ({says})"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names of the BMC's own, not too many of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(shown(name) or "no name" for name in names[:most]) or "none") + more


def _is_of_a_part(control: Control) -> bool:
    return names_a_part(control.name) or names_a_part(control.context)


def _says_machine(control: Control) -> bool:
    return bool(_MACHINE.search(control.name.lower())) or control.context == "Chassis"


def _boxes(every: Mapping[str, Chassis]) -> dict[str, Chassis]:
    """Those that are no part of a machine by what they are called or say."""
    return {
        path: each
        for path, each in every.items()
        if not names_a_part(id_of(path)) and each.kind not in _KINDS_OF_PARTS
    }


def _is_board(path: str) -> bool:
    return bool(_BOARD.search(id_of(path).lower()))


def _evidence(chassis: Chassis) -> int:
    """How much it says that it is a machine."""
    return bool(chassis.links.systems) + (chassis.kind in _KINDS_OF_MACHINES)


def _is_within(path: str, outer: Container[str], every: Mapping[str, Chassis]) -> bool:
    """Whether a chassis is in one of the others, or in what is in that."""
    seen: set[str] = set()
    while path in every and path not in seen:
        seen.add(path)
        container = every[path].links.contained_by
        path = place(container.path) if container else ""
        if path in outer:
            return True
    return False
