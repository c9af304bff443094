"""What the energy of a round comes to in carbon and money, by factors that the user gives: estimates, and marked so."""

from __future__ import annotations

from dataclasses import replace

from run_benchmarks.plan.energy_factors import EnergyFactors
from utils.figures import DEFINITIONS, FULL_COVERAGE, Figure
from utils.numbers import counted

J_PER_KWH = 3.6e6
CARBON, COST = "carbon_estimate", "cost_estimate"
NAMES = (CARBON, COST)


def estimates(energy: Figure, nodes: int, factors: EnergyFactors) -> dict[str, Figure]:
    """Each of NAMES, of the energy of all nodes; null without a factor, or where not all of the training was sampled.

    Args:
        energy: J, the mean over the nodes.
    """
    price, currency = factors.cost_per_kwh or (None, "")
    carbon = _estimate(CARBON, energy, nodes, factors.carbon_g_per_kwh, "g/kWh, CARBON_G_PER_KWH")
    cost = _estimate(COST, energy, nodes, price, f"{currency}/kWh, COST_PER_KWH")
    return {CARBON: carbon, COST: replace(cost, unit=currency or cost.unit)}


def _estimate(name: str, energy: Figure, nodes: int, factor: float | None, what: str) -> Figure:
    definition = DEFINITIONS[name]
    if factor is None:
        return definition.figure(None, f"no factor is given: {what.partition(', ')[2]} of test_conf.py")
    if energy.value is None or (energy.coverage or 0.0) < FULL_COVERAGE:
        return replace(definition.figure(None, energy.caveat or energy.source), coverage=energy.coverage)
    kwh = energy.value * nodes / J_PER_KWH
    source = f"{kwh:.4g} kWh of {counted(nodes, 'node')} x {factor:.6g} {what} of test_conf.py"
    caveats = ("an estimate, by a factor that the user gave", energy.caveat)
    figure = definition.figure(kwh * factor, source)
    return replace(
        figure, coverage=energy.coverage, scope=energy.scope, caveat="; ".join(filter(None, caveats))
    )
