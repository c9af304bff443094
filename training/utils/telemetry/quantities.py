"""What can be sampled: one registry, from which records, charts, metrics and docs/telemetry.md are made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """Something that a source reads of a device.

    name: its field in a `Sample`, with the unit that it is recorded in. title, unit: as people are shown it, where a
    value is `factor` times the recorded one. decimals: so many of the recorded value are kept. A counter only grows,
    since the driver or the machine was started; what is no counter is the value of that moment.
    """

    name: str
    title: str
    unit: str
    factor: float = 1.0
    decimals: int = 3
    is_counter: bool = False
    may_be_negative: bool = False


QUANTITIES = (
    Quantity("power_w", "Power", "W"),
    Quantity("power_instant_w", "Power, instantaneous", "W"),
    Quantity("energy_mj", "Energy", "J", 1e-3, is_counter=True),
    Quantity("energy_range_mj", "Energy at which the counter wraps", "J", 1e-3),
    Quantity("utilisation", "Utilisation", "%", 100, 4),
    Quantity("load", "Load, mean of a minute", "processes"),
    Quantity("memory_used_mib", "Memory used", "GiB", 1 / 1024),
    Quantity("memory_total_mib", "Memory", "GiB", 1 / 1024),
    Quantity("memory_peak_mib", "Memory used at most", "GiB", 1 / 1024),
    Quantity("swap_used_mib", "Swap used", "GiB", 1 / 1024),
    Quantity("temperature_c", "Temperature", "°C", may_be_negative=True),
    Quantity("memory_temperature_c", "Temperature of the memory", "°C", may_be_negative=True),
    Quantity("clock_mhz", "Clock", "MHz"),
    Quantity("memory_clock_mhz", "Clock of the memory", "MHz"),
    Quantity("cpu_s", "Processor time", "s", is_counter=True),
    Quantity("cpu_limited_s", "Time held back by a limit of processors", "s", is_counter=True),
    Quantity("memory_kills", "Processes killed for want of memory", "", is_counter=True),
    Quantity("processes", "Processes on the device", ""),
    Quantity("read_bytes", "Read", "MiB", 2**-20, is_counter=True),
    Quantity("written_bytes", "Written", "MiB", 2**-20, is_counter=True),
    Quantity("received_bytes", "Received", "MiB", 2**-20, is_counter=True),
    Quantity("sent_bytes", "Sent", "MiB", 2**-20, is_counter=True),
    Quantity("pcie_received_bytes_per_s", "Received by PCIe", "MiB/s", 2**-20),
    Quantity("pcie_sent_bytes_per_s", "Sent by PCIe", "MiB/s", 2**-20),
    Quantity("nvlink_received_bytes", "Received by NVLink", "MiB", 2**-20, is_counter=True),
    Quantity("nvlink_sent_bytes", "Sent by NVLink", "MiB", 2**-20, is_counter=True),
    Quantity("ecc_corrected", "Corrected memory errors", "", is_counter=True),
    Quantity("ecc_uncorrected", "Uncorrected memory errors", "", is_counter=True),
    Quantity("remapped_rows", "Remapped rows", "", is_counter=True),
)
BY_NAME = {quantity.name: quantity for quantity in QUANTITIES}
