"""MLPerf's description of the system that a round ran on: what was measured, and what only its owner can say.

The fields are those of the MLPerf submission rules, which the package's `system_desc_checker` asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from run_benchmarks.exports.chosen import Round
from run_benchmarks.exports.mlperf_log import LABEL
from run_benchmarks.reading import read_object
from run_benchmarks.results.folder import as_list, section
from utils.errors import FlagPerfError, Problem, ProblemsError, nearest
from utils.inventory import HostInventory

OPTION = "--system"
NOT_RECORDED = "not recorded"
STATUSES = (
    "Available on-premise",
    "Available cloud",
    "Research, Development, or Internal (RDI)",
    "Preview",
)
FIELDS = (
    "submitter", "division", "status", "system_name", "number_of_nodes",
    "host_processors_per_node", "host_processor_model_name", "host_processor_core_count",
    "host_processor_vcpu_count", "host_processor_frequency", "host_processor_caches",
    "host_processor_interconnect", "host_memory_capacity", "host_storage_type", "host_storage_capacity",
    "host_networking", "host_networking_topology", "host_memory_configuration",
    "accelerators_per_node", "accelerator_model_name", "accelerator_host_interconnect",
    "accelerator_frequency", "accelerator_on-chip_memories", "accelerator_memory_configuration",
    "accelerator_memory_capacity", "accelerator_interconnect", "accelerator_interconnect_topology",
    "cooling", "hw_notes", "framework", "other_software_stack", "operating_system", "sw_notes",
)  # fmt: skip
_OF_THE_RUN = ("division", "number_of_nodes", "accelerators_per_node")
_TAKEN_AS_IT_IS = {"submitter": NOT_RECORDED, "status": STATUSES[2], "sw_notes": LABEL}


def read_owners_words(path: Path | None) -> dict[str, str]:
    """What the system's owner says of it: a JSON object with fields of the description.

    Raises:
        ProblemsError: everything that is wrong with it.
    """
    if path is None:
        return {}
    content = read_object(path.resolve())  # the user's own, who may have it behind a link
    if content is None:
        raise FlagPerfError("there is no such file", where=f"{OPTION} {path}")
    problems = [Problem(str(path), name, value, *wrong) for name, value, wrong in _wrong(content)]
    if problems:
        raise ProblemsError(problems)
    return dict(content)


def system_description(each: Round, division: str, owners: Mapping[str, str], name: str) -> dict[str, str]:
    """Every field of it, all texts; what was not measured, and the owner does not say, says that."""
    described = dict.fromkeys(FIELDS, NOT_RECORDED)
    measured = {**_of_plan(each), **_of_hosts(each), **_of_software(each)}
    return {
        **described,
        **_TAKEN_AS_IT_IS,
        "system_name": name,
        **{field: value for field, value in measured.items() if value},
        **owners,
        "division": division,
    }


def _wrong(content: Mapping[str, Any]) -> Iterator[tuple[str, Any, tuple[str, str]]]:
    open_fields = [name for name in FIELDS if name not in _OF_THE_RUN]
    for name, value in content.items():
        if name in _OF_THE_RUN:
            yield name, value, ("is the run's to say", "remove it")
        elif name not in FIELDS:
            hint = nearest(name, open_fields) or f"there are {', '.join(open_fields)}"
            yield name, value, ("is no field of a system description", hint)
        elif not isinstance(value, str) or not value.strip():
            yield name, value, ("is no text", 'write it in quotes, e.g. "8"')
        elif name == "status" and value not in STATUSES:
            yield name, value, ("is no status", f"write one of {'; '.join(STATUSES)}")
        elif name in ("system_name", "submitter") and not re.fullmatch(r"[\w .+-]{1,80}", value):
            remedy = "write letters, digits, blanks, `.`, `+`, `-`"
            yield name, value, ("cannot stand in a file's name", remedy)


def _of_plan(each: Round) -> dict[str, str]:
    case = each.case
    if case is None:
        return {}
    plans = [entry for entry in as_list(each.folder.plan.get("cases")) if isinstance(entry, dict)]
    own = [entry for entry in plans if section(entry, "settings").get("name") == case.settings.name]
    without = any(section(entry, "vendor").get("device_type") == "cpu" for entry in own)
    memory = each.result.figures.get("mem_total")
    return {
        "number_of_nodes": str(case.settings.nnodes),
        "accelerators_per_node": "0" if without else str(case.settings.nproc),
        "accelerator_model_name": "none" if without else case.chip.name if case.chip else "",
        "accelerator_memory_capacity": f"{memory.value:.1f} GiB" if memory and memory.value else "",
    }


def _of_hosts(each: Round) -> dict[str, str]:
    """What the nodes' monitors recorded; where nodes differ, each value once."""
    provenance = each.result.provenance
    hosts = [_of_host(host) for host in (provenance.hosts if provenance else ()) if host]
    values = {
        name: dict.fromkeys(host[name] for host in hosts if host[name]) for name in next(iter(hosts), {})
    }
    return {name: "; ".join(each) for name, each in values.items()}


def _of_host(host: HostInventory) -> dict[str, str]:
    """By `lscpu` and the kernel; empty texts for what they do not say."""
    cpu = host.cpu
    sockets, cores = cpu.get("Socket(s)", ""), cpu.get("Core(s) per socket", "")
    is_counted = all(re.fullmatch(r"\d{1,6}", count) for count in (sockets, cores))
    caches = [f"{name} {size}" for name, size in cpu.items() if re.fullmatch(r"L\d[di]?( cache)?", name)]
    return {
        "host_processors_per_node": sockets,
        "host_processor_model_name": cpu.get("Model name", ""),
        "host_processor_core_count": str(int(sockets) * int(cores)) if is_counted else "",
        "host_processor_vcpu_count": cpu.get("CPU(s)", ""),
        "host_processor_frequency": f"{cpu['CPU max MHz']} MHz at most" if "CPU max MHz" in cpu else "",
        "host_processor_caches": ", ".join(caches),
        "host_memory_capacity": f"{host.memory_bytes / 2**30:.1f} GiB" if host.memory_bytes else "",
        "host_networking": ", ".join(sorted(host.nics)),
    }


def _of_software(each: Round) -> dict[str, str]:
    provenance = each.result.provenance
    if provenance is None:
        return {}
    framework = each.case.settings.framework.partition("_")[0] if each.case else ""
    versions = {name: value for name, value in provenance.versions.items() if value}
    systems = dict.fromkeys(filter(None, (software.system for software in provenance.software)))
    own = next(((name, value) for name, value in versions.items() if name != "collectives"), None)
    return {
        "framework": f"{framework} ({' '.join(own)})" if own else framework,
        "other_software_stack": ", ".join(f"{name} {value}" for name, value in versions.items()),
        "operating_system": "; ".join(systems),
    }
