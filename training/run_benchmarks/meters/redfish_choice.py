"""What of a Redfish service is the whole machine: by what its resources say they are, not by which has a value now.

The schemas give members of PowerControl no order, and a BMC lists boards and their parts beside the box. A reading of a
part must not pass for the machine's: what is not clear is for the user to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from run_benchmarks.meters.redfish_resources import Chassis, Control, shown

# Words for parts, in names and in PhysicalContext. "HGX" is NVIDIA's board of GPUs, which has a chassis of its own in
# the server's. A numbered power supply is one of several. PhysicalContext has PowerSubsystem for all of the supplies.
_PART = re.compile(
    r"[cg]pu|(?<![a-z])([ntd]pu|fan|nic|mem(?!ber)|psu?[ _-]?\d)|power[ _-]?supply[ _-]?\d"
    r"|processor|accelerator|fpga|hgx|dimm|dram|storage|drive|disk|network|switch|pcie|riser|backplane|cooling"
    r"|(?<!power)(?<!power[ _-])sub[ _-]?system",
    re.ASCII,
)
_MACHINE = re.compile(r"(?<![a-z])(system|sys|server|machine|chassis|node|host|total|platform)", re.ASCII)
# ChassisType of what is built into, or stands beside, the box with the system (DSP2046).
_KINDS_OF_PARTS = ("Card", "Component", "Expansion", "IPBasedDrive", "Module", "StorageEnclosure")


def names_a_part(name: str) -> bool:
    """Whether a name says that it is of a part of a machine: total_gpu_power is."""
    return bool(_PART.search(name.lower()))


def machines(every: Mapping[str, Chassis]) -> dict[str, Chassis]:
    """The chassis, by ID, that may be the whole machine: the outermost of those that hold a system, if any says so."""
    boxes = {
        name: each
        for name, each in every.items()
        if not names_a_part(name) and each.kind not in _KINDS_OF_PARTS
    }
    holding = {name: each for name, each in boxes.items() if each.links.systems} or boxes
    return {name: each for name, each in holding.items() if _id_of_container(each) not in holding}


def control_of_machine(controls: Sequence[Control]) -> Control | None:
    """The member of PowerControl that is the machine's: the one that says so, or the only one if it is of no part."""
    named = [each for each in controls if not _is_of_a_part(each) and _says_machine(each)]
    if not named and len(controls) == 1 and not _is_of_a_part(controls[0]):
        return controls[0]
    return named[0] if len(named) == 1 else None


def control_in_words(controls: Sequence[Control]) -> str:
    """Which one that is, for a note; or that none is."""
    control = control_of_machine(controls)
    if control is None:
        names = listed([each.name for each in controls])
        return f"PowerControl, of whose members ({names}) none is clearly the machine"
    unclear = "" if _says_machine(control) else "its only member, which does not say of what it is"
    says = ", ".join(filter(None, (control.name or control.context, unclear)))
    return f"PowerControl {list(controls).index(control)} ({says})"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names of the BMC's own, not too many of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(shown(name) or "no name" for name in names[:most]) or "none") + more


def _is_of_a_part(control: Control) -> bool:
    return names_a_part(control.name) or names_a_part(control.context)


def _says_machine(control: Control) -> bool:
    return bool(_MACHINE.search(control.name.lower())) or control.context == "Chassis"


def _id_of_container(chassis: Chassis) -> str:
    container = chassis.links.contained_by
    return id_of(container.path) if container else ""


def id_of(path: str) -> str:
    """The last part of a resource's path, which is its ID."""
    return path.rstrip("/").rpartition("/")[2]
