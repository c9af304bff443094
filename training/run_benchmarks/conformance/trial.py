"""The part `trial`: the vendor's own configuration of BERT, run by run.py as a user would.

Without the vendor's chips a device stands in for them (`standin/`), under the chip's own name, and the run is shrunk to
seconds: configuration, driver, launcher, process group, mixed precision, optimizer, checkpoints, preflight and monitor
are the real ones. With the chips there it is the true thing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from run_benchmarks.conformance import on_chip, without_chip
from run_benchmarks.conformance.folder import vendor_in
from run_benchmarks.conformance.records import CheckOutcome, CheckResult, Options, failed, named, not_proven
from run_benchmarks.conformance.sandbox import QUICK_S, Sandbox, end_left
from utils.errors import FlagPerfError
from utils.monitors.tool import run_tool

RUN = "a run of BERT"
# What the ranks need; asked of the Python that is to run them.
NEEDED = ("torch", "numpy", "h5py", "safetensors", "psutil")
ASK = "import importlib.util, sys; print(*(n for n in sys.argv[1:] if importlib.util.find_spec(n) is None))"


def checks(vendor: Path, options: Options) -> Iterator[CheckResult]:
    """What a run shows, on the chips that are here or on what stands in for them."""
    record, _ = vendor_in(vendor)
    if record is None:
        yield from named(RUN, [not_proven("vendor.py cannot be read: the part `static` says why", vendor)])
        return
    plugins = record.plugin.values() if options.devices else ()
    if lacking := _lacking(options.python, (*NEEDED, *plugins)):
        yield from named(RUN, [lacking])
        return
    folder = Path(tempfile.mkdtemp(prefix="flagperf-trial-"))
    has_failed = False
    sandbox = Sandbox(folder, vendor.name, options.python)
    try:
        sandbox.prepare(vendor)
        tried = (
            on_chip.checks(sandbox, record, options.devices)
            if options.devices
            else without_chip.checks(sandbox, record)
        )
        for check in tried:
            has_failed |= check.outcome is CheckOutcome.FAILED
            yield check
    except FlagPerfError as error:
        has_failed = True
        yield from named(RUN, [failed(error.message, error.where, error.remedy)])
    finally:
        end_left(folder)
        if not has_failed:
            shutil.rmtree(folder, ignore_errors=True)
    if has_failed:
        left = not_proven("logs and results of what was tried are left", folder, "read them, then remove it")
        yield from named("logs", [left])


def _lacking(python: Path, modules: Iterable[str]) -> CheckResult | None:
    """What forbids that this Python runs the ranks."""
    remedy = "name a Python that has them: --python PYTHON"
    try:
        lacks = run_tool((str(python), "-c", ASK, *modules), QUICK_S).split()
    except FlagPerfError as error:
        return not_proven(error.message, python, remedy)
    return not_proven(f"this Python lacks {', '.join(lacks)}", python, remedy) if lacks else None
