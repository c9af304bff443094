"""CARBON_G_PER_KWH and COST_PER_KWH of test_conf.py: what energy comes to where it is taken, as the user says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from run_benchmarks.plan.problems import UnfitError

CURRENCY = re.compile("[A-Z]{3}")  # as ISO 4217 names them
MOST_PER_KWH = 1e9


@dataclass(frozen=True)
class EnergyFactors:
    """Of a kWh: g of CO2 equivalent, and its price with the currency; None where the user says nothing."""

    carbon_g_per_kwh: float | None = None
    cost_per_kwh: tuple[float, str] | None = None


NO_FACTORS = EnergyFactors()


def check_price(value: Any) -> Any:
    """See that it is an amount of at least 0 with its currency.

    Raises:
        UnfitError: it is none.
    """
    example = 'write both, e.g. COST_PER_KWH = (0.31, "EUR")'
    if value is None:
        return None
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise UnfitError("is no price: an amount and its currency", example)
    amount, currency = value
    if type(amount) not in (int, float) or not 0 <= amount <= MOST_PER_KWH:
        raise UnfitError(f"has {amount!r}, which is no amount of at least 0", example)
    if not isinstance(currency, str) or not CURRENCY.fullmatch(currency):
        raise UnfitError(f"has {currency!r}, which is no currency of three capitals", example)
    return (float(amount), currency)
