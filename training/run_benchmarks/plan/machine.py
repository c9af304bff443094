"""`machine_conf.py`: what runs on this machine need, whatever is run; it says what `test_conf.py` leaves open.

It lies in the checkout and not in the folder of `--config`, for it is about the machine, and git ignores it.
`quickstart.sh` writes it; anybody may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_benchmarks.plan.config_file import ConfigFile, Entry, is_set, read_config_file, subject
from run_benchmarks.plan.machine_use import MachineUse
from run_benchmarks.plan.pip_record import PipConf
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.reader import Reader, fields_of
from run_benchmarks.plan.records import MachineVendors, VendorSettings
from run_benchmarks.plan.redact import HIDDEN, redact_text
from run_benchmarks.plan.secrets import Secrets

MACHINE_CONF = "machine_conf.py"
_OF_RUNS = ("RUNTIME", "CONTAINER_ENGINE", "PROCESS_PYTHON", *fields_of(PipConf))

Section = Mapping[str, Any]


@dataclass(frozen=True)
class Machine:
    """The file; `vendors`: vendor -> those of its VendorSettings that the file has, by their names in it."""

    file: ConfigFile | None = None
    vendors: Mapping[str, Section] = field(default_factory=dict)

    def below(self, test_conf: ConfigFile) -> ConfigFile:
        """`test_conf` over the file, but for what they say of vendors."""
        return test_conf if self.file is None else test_conf.over(self.file, _OF_RUNS)

    def use(
        self,
        merged: ConfigFile,
        secrets: Secrets,
        sections: Mapping[str, Section],
        vendors: Collection[str] = (),
    ) -> MachineUse:
        """What of the file is in force.

        Args:
            merged: what `below` gave.
            sections: vendor -> what the file and `test_conf.py` come to.
            vendors: those that the run has cases of.
        """
        if self.file is None:
            return MachineUse()
        names = [name for name, file in merged.below.items() if file is self.file]
        taken: dict[Entry, Any] = {(name,): merged.values[name] for name in names}
        for vendor in sorted(self.vendors.keys() & vendors):
            final = dict(_leaves(sections[vendor]))
            own = _leaves(self.vendors[vendor])
            taken |= {("VENDORS", vendor, *leaf): value for leaf, value in own if final.get(leaf) == value}
        shown = {subject(entry): _shown(str(entry[-1]), value, secrets) for entry, value in taken.items()}
        return MachineUse(str(self.file.path), shown)


def read_machine(training_dir: Path, problems: Problems) -> Machine:
    """The file of this checkout; what is wrong with it is among `problems`. There need be none."""
    path = training_dir / "run_benchmarks" / "config" / MACHINE_CONF
    if not path.exists() and not path.is_symlink():  # a link that leads nowhere was meant to be read
        return Machine()
    file = read_config_file(path, problems, "make it a file, or remove it: quickstart.sh writes it")
    if file is None:
        return Machine()
    reader = Reader(file, problems)
    choice = reader.read(MachineVendors) or MachineVendors()
    vendors = {name: section for name, section in choice.vendors.items() if _is_right(name, section, reader)}
    reader.names.update(_OF_RUNS)
    reader.report_rest(lambda name, value: False)
    return Machine(file, vendors)


def _is_right(vendor: str, section: Section, reader: Reader) -> bool:
    entry = ("VENDORS", vendor)
    before = len(reader.problems.all)
    reader.report_unknown_keys(entry, section, list(fields_of(VendorSettings)))
    reader.read(VendorSettings, section, entry)
    return len(reader.problems.all) == before


def _leaves(section: Section) -> Iterator[tuple[Entry, Any]]:
    """What a vendor's section says, of its build arguments each by itself."""
    for name, value in section.items():
        if isinstance(value, Mapping):
            yield from (((name, key), item) for key, item in value.items())
        elif is_set(value) or value == "":  # "" says that there is none
            yield (name,), value


def _shown(name: str, value: Any, secrets: Secrets) -> Any:
    if isinstance(value, (list, tuple)):
        return [_shown(name, item, secrets) for item in value]
    if isinstance(value, str):
        return HIDDEN if secrets.are_named(name) else secrets.hide(redact_text(value))
    return value
