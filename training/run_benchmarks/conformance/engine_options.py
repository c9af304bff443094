"""Container options, read by the engine's own parser: no container is made, for there is no such image."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from run_benchmarks.conformance.records import Check, failed, not_proven
from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE

ENGINES = ("docker", "podman")
# RFC 6761: no host has such a name. And it is not asked for: --pull=never.
NO_IMAGE = "no-registry.invalid/flagperf/conformance:none"
NO_SUCH_IMAGE = ("no such image", "image not known", "unable to find image")
# What its server says of a host without the vendor's driver, once its client has taken the options.
HOST_LACKS = ("unknown runtime", "bind source path does not exist")
NO_ANSWER = ("cannot connect", "permission denied", "is the docker daemon running")
RANKS = 2
LIMIT_S = 60.0


def options_trouble(vendor: Vendor) -> Iterator[Check]:
    """What the engine says of the options that containers of the vendor get, other than that there is no image."""
    engine = next((path for path in map(shutil.which, ENGINES) if path), None)
    file = read_config_file(vendor.folder / VENDOR_FILE, Problems(), "")
    where = file.where("CONTAINER_OPTIONS") if file else str(vendor.folder / VENDOR_FILE)
    if engine is None:
        yield not_proven(
            f"there is neither of {', '.join(ENGINES)} here to read them", where, "check it where one is"
        )
        return
    try:
        words = _refusal(engine, vendor.options_for(RANKS))
    except (OSError, subprocess.TimeoutExpired) as error:
        yield not_proven(f"{engine} does not answer: {error}", where)
        return
    if any(each in words.lower() for each in (*NO_SUCH_IMAGE, *HOST_LACKS)):
        return
    if any(each in words.lower() for each in NO_ANSWER):
        yield not_proven(f"{engine} does not answer: {words}", where, "start it, or let this user ask it")
    elif not engine.endswith(ENGINES[0]):  # an option may be one engine's own
        yield not_proven(f"{engine} refuses them: {words}; there is no {ENGINES[0]} to ask", where)
    else:
        yield failed(f"{engine} refuses them: {words}", where, f"correct the option: {engine} create --help")


def _refusal(engine: str, options: tuple[str, ...]) -> str:
    """Why the engine makes no container with these options; it never does."""
    argv = (engine, "create", "--pull=never", *options, NO_IMAGE)
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"it ended with {done.returncode} and says nothing"
