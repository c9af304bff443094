"""Which vendors and cases of a checkout are asked for, and what to say where it has none such."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.imports.checkout import BENCHMARKS, Checkout, PublicCase
from utils.errors import FlagPerfError, nearest


def chosen_vendors(checkout: Checkout, vendors: Sequence[str]) -> list[str]:
    for name in vendors:
        if name not in checkout.vendors:
            remedy = nearest(name, checkout.vendors) or f"it has {', '.join(checkout.vendors) or 'none'}"
            raise FlagPerfError(f"the checkout has no vendor {name}", where="--vendor", remedy=remedy)
    return [name for name in checkout.vendors if not vendors or name in vendors]


def chosen_cases(checkout: Checkout, vendors: Sequence[str], names: Sequence[str]) -> list[PublicCase]:
    """Those that the names are of; a key of test_conf.py is one, of which the first two parts count."""
    cases = [case for vendor in vendors for case in checkout.cases(vendor)]
    wanted = {name: tuple(name.rpartition("/")[2].split(":")[:2]) for name in names}
    for name, parts in wanted.items():
        if not any(_is(case, parts) for case in cases):
            raise _no_case(checkout, vendors, name, parts, sorted({case.model for case in cases}))
    return [case for case in cases if not names or any(_is(case, parts) for parts in wanted.values())]


def _no_case(
    checkout: Checkout, vendors: Sequence[str], name: str, parts: Sequence[str], models: Sequence[str]
) -> FlagPerfError:
    """That there is none of this name; or that it is other vendors' alone."""
    everyone = (case for vendor in checkout.vendors for case in checkout.cases(vendor))
    others = sorted({case.vendor for case in everyone if _is(case, parts)})
    there = f"there is: {', '.join(models)}"
    if others or checkout.below(f"{BENCHMARKS}/{parts[0]}"):
        message = f"the checkout has {name}, but no configuration of it by {', '.join(vendors)}"
        remedy = f"it is {', '.join(others) or 'nobody'}'s; {there}"
    else:
        message, remedy = f"the checkout has no case {name}", nearest(parts[0], models) or there
    return FlagPerfError(message, where="--cases", remedy=remedy)


def _is(case: PublicCase, parts: Sequence[str]) -> bool:
    if case.model != parts[0]:
        return False
    return len(parts) == 1 or case.framework in (parts[1], parts[1].partition("_")[0])
