"""The secrets that a vendor's folder holds, which `vendor check` neither shows nor writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from run_benchmarks.conformance.folder import CONFIGS
from run_benchmarks.conformance.image_files import shells
from run_benchmarks.plan.config_file import read_leniently
from run_benchmarks.plan.secrets import Secrets, by_name_alone
from run_benchmarks.plan.source_code import text_of
from run_benchmarks.plan.vendors import VENDOR_FILE

OPTIONS = "CONTAINER_OPTIONS"


def secrets_in_folder(vendor: Path) -> Secrets:
    """What its options, configurations and scripts give to the name of a secret, whatever else is wrong with them.

    What a text assigns to such a name is hidden, too, wherever it comes from.
    """
    secrets = by_name_alone().with_those_of(_settings(read_leniently(vendor / VENDOR_FILE)))
    for config in sorted(vendor.glob(CONFIGS)):
        secrets = secrets.with_those_of(read_leniently(config))
    for script in shells(vendor):
        secrets = secrets.with_those_of({}, (), text_of(script))
    return secrets


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """With the options as a user's `test_conf.py` has them: a text or a list, in which variables are looked for."""
    options = values.get(OPTIONS)
    options = list(options) if isinstance(options, Mapping) else options
    others = {name: value for name, value in values.items() if name != OPTIONS}
    return {**others, "ACCE_CONTAINER_OPT": options}
