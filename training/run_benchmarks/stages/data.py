"""The data of the cases on a host: each folder is there, and its files are those of its manifest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from run_benchmarks.commands import preparation_command
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import QUICK_S, HostUse
from run_benchmarks.transports.base import WHOLE_BYTES
from utils import manifest as manifests
from utils.errors import FlagPerfError

LISTING_S = 300.0
PROBLEMS_SHOWN = 5
PREPARATION = "prepare/__main__.py"  # of a model's folder, beside those of its frameworks


async def data(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """Every case's data directory exists; where it has a manifest, each file has the size noted there.

    All folders are looked at, so that what is missing on a host is said at once.
    """
    users: dict[str, list[CasePlan]] = {}
    for case in use.cases:
        users.setdefault(case.settings.data_dir_host, []).append(case)
    details, errors = [], []
    for folder, cases in sorted(users.items()):
        try:
            details.append(await _data_in(use, folder, _how_made(plan, cases, folder)))
        except FlagPerfError as error:
            names = ", ".join(case.settings.name for case in cases)
            errors.append(FlagPerfError(f"{error.message} ({names})", remedy=error.remedy))
    if errors:
        remedies = dict.fromkeys(error.remedy for error in errors)
        raise FlagPerfError("; ".join(error.message for error in errors), remedy="; ".join(remedies))
    return "; ".join(details)


def _how_made(plan: Plan, cases: Sequence[CasePlan], folder: str) -> str:
    """What to do by the cases' own preparation of these data; empty where they have none."""
    folders = dict.fromkeys(Path(case.files.case_dir).parent for case in cases)
    models = [path.name for path in folders if (plan.training_dir / path / PREPARATION).is_file()]
    return "".join(
        f"; benchmarks/{model}/prepare makes it (--help: from what; its requirements.txt: with what): "
        + preparation_command(plan.training_dir, model, folder)
        for model in models
    )


async def _data_in(use: HostUse, folder: str, how_made: str) -> str:
    transport = use.transport
    if not (await transport.run(["test", "-d", folder], timeout=QUICK_S)).ok:
        remedy = "put the data there on this host, or correct the data directory in test_conf.py"
        raise FlagPerfError(f"{folder} does not exist", remedy=remedy + how_made)
    argv = ["cat", f"{folder}/{manifests.MANIFEST_NAME}"]
    text = await transport.run(argv, timeout=QUICK_S, held=WHOLE_BYTES)
    if not text.ok:
        return f"{folder} (no manifest)"
    manifest = manifests.parse(
        text.whole_stdout(), where=f"{transport.host}:{folder}/{manifests.MANIFEST_NAME}"
    )
    use.facts[folder] = manifest.digest
    argv = manifests.listing_command(manifest, folder)
    listed = await transport.run(argv, timeout=LISTING_S, held=WHOLE_BYTES)
    problems = manifests.compare_listing(manifest, listed.whole_stdout(), folder)
    if problems:
        wrong = "; ".join(f"{problem.name}: {problem.message}" for problem in problems[:PROBLEMS_SHOWN])
        hidden = len(problems) - PROBLEMS_SHOWN
        more = f" and {hidden} more" if hidden > 0 else ""
        remedy = "prepare the data again, or copy it from a good host"
        raise FlagPerfError(f"{folder}: {wrong}{more}", remedy=remedy)
    return f"{folder} ({len(manifest.files)} files as in the manifest)"
