"""The figures of telemetry: power, energy, and what accelerators say of themselves."""

from __future__ import annotations

from utils.figure_records import FULL_COVERAGE, HIGHER, LEAST_COVERAGE, LOWER, TRAINING, Definition

BEFORE = "first sample..start of the node's first rank"
_NO_POWER = (
    "a node has no source, the nodes' speak of different parts of a machine, "
    f"or less than {LEAST_COVERAGE:.0%} of the window was sampled"
)
_NO_READING = (
    "a node's vendor has no monitor that reads it, "
    f"or less than {LEAST_COVERAGE:.0%} of the window was sampled"
)
TELEMETRY_FIGURES = (
    Definition(
        "energy", "J/node", TRAINING, LOWER, "energy, mean over the nodes", _NO_POWER, None, heading="energy J",
    ),
    Definition(
        "avg_power", "W/node", TRAINING, None, "energy / time it was measured in, mean over the nodes", _NO_POWER,
        heading="mean W", of_power=True,
    ),
    Definition(
        "max_power", "W/node", TRAINING, None,
        "largest sample of all devices of a node together, mean over the nodes", _NO_POWER,
        heading="max W", of_power=True,
    ),
    Definition(
        "idle_power", "W/node", BEFORE, LOWER, "mean power before the training's processes, mean over the nodes",
        f"{_NO_POWER}, or the monitor began less than 2 s before them",
        heading="idle W", of_power=True,
    ),
    Definition(
        "energy_above_idle", "J/node", TRAINING, LOWER,
        "`energy` less `idle_power` x the time it was measured in, mean over the nodes",
        "one of the two is not measured",
        heading="above idle J", of_power=True,
    ),
    Definition(
        "energy_to_target", "J/node", "TRAIN_START..end of the evaluation that met the target", LOWER,
        "energy until the target was met, mean over the nodes", f"none did, {_NO_POWER}",
        heading="to target J", of_power=True,
    ),
    Definition(
        "utilisation", "1", TRAINING, None,
        "part of the time in which accelerators were busy, as their vendor counts it: mean of the readings of all",
        _NO_READING,
        heading="busy", of_power=True,
    ),
    Definition(
        "max_device_memory", "GiB", TRAINING, LOWER,
        "largest memory in use on an accelerator, by whomever: largest reading of all", _NO_READING,
    ),
    Definition(
        "avg_temperature", "°C", TRAINING, LOWER, "accelerators: mean of the readings of all", _NO_READING,
    ),
    Definition(
        "max_temperature", "°C", TRAINING, LOWER, "accelerators: largest reading of all", _NO_READING,
        heading="max °C", of_power=True,
    ),
    Definition(
        "throttled", "1", TRAINING, LOWER,
        "part of the readings in which something held an accelerator back, mean over all", _NO_READING,
        heading="throttled", of_power=True,
    ),
    Definition(
        "samples_per_joule", "samples/J", TRAINING, HIGHER, "samples / energy of all nodes",
        f"there is no energy, or less than {FULL_COVERAGE:.0%} of the window was sampled",
        heading="samples/J", of_power=True,
    ),
    Definition(
        "carbon_estimate", "gCO2e", TRAINING, LOWER, "energy of all nodes x CARBON_G_PER_KWH of test_conf.py",
        "there is no such factor, no energy, or not all of it was sampled",
    ),
    Definition(
        "cost_estimate", "1", TRAINING, LOWER,
        "energy of all nodes x COST_PER_KWH of test_conf.py; the currency is the unit",
        "there is no such factor, no energy, or not all of it was sampled",
    ),
)  # fmt: skip
