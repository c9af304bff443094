"""The data of the cases on a host: each folder is there, and its files are those of its manifest, to the byte."""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections.abc import Awaitable, Sequence
from pathlib import Path

from run_benchmarks.commands import preparation_help
from run_benchmarks.names import work_folder
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Mount, Runtime
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.runtimes.submounts import with_submounts
from run_benchmarks.stages.checks import QUICK_S, DoubtError, HostUse
from run_benchmarks.stages.data_content import DataFolder, altered_files
from run_benchmarks.stages.fan_out import raise_first
from run_benchmarks.transports.base import WHOLE_BYTES
from utils import manifest as manifests
from utils.errors import FlagPerfError, Problem
from utils.numbers import counted
from utils.records import FailureClass

LISTING_S = 300.0
LARGEST_MANIFEST = 2**24  # bytes: a hundred thousand files
MOST_STAMP = 160  # bytes of what a listing says of a file beside its path
OTHERS_BYTES = 2**24  # of a listing: eighty thousand files that are none of the manifest's
PROBLEMS_SHOWN = 5
DATA_INSIDE = "/data"  # any path would do: nothing is mounted by a check
PREPARATION = "prepare/__main__.py"  # of a model's folder, beside those of its frameworks


class DataAlteredError(FlagPerfError):
    """Data are not those that their manifest was made of."""

    failure_class = FailureClass.DATA_ALTERED


async def data(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """Every case's data directory exists, with the files of its manifest, where it has one; a search needs one.

    A container gets it read-only with all that is mounted below it.

    All folders are looked at, so that what is missing on a host is said at once.
    """
    users: dict[str, list[CasePlan]] = {}
    for case in use.cases:
        users.setdefault(case.settings.data_dir_host, []).append(case)
    details, messages, errors = [], [], []
    for folder, cases in sorted(users.items()):
        try:
            how_made, if_raw = _how_made(plan, cases, folder), _if_raw(plan, cases)
            details.append(await _usable(plan, use, folder, how_made, if_raw))
        except FlagPerfError as error:
            names = ", ".join(case.settings.name for case in cases)
            messages.append(f"{error.message} ({names})")
            errors.append(error)
    if errors:
        remedies = dict.fromkeys(error.remedy for error in errors)
        kinds = {type(error) for error in errors}
        kind = kinds.pop() if len(kinds) == 1 and kinds <= {DataAlteredError, DoubtError} else FlagPerfError
        raise kind("; ".join(messages), remedy="; ".join(remedies))
    return "; ".join(details) or None


def _how_made(plan: Plan, cases: Sequence[CasePlan], folder: str) -> str:
    """What to do by the cases' own preparation of these data; empty where they have none."""
    folders = dict.fromkeys(Path(case.files.case_dir).parent for case in cases)
    models = [path.name for path in folders if (plan.training_dir / path / PREPARATION).is_file()]
    return "".join(
        f"; benchmarks/{model}/prepare makes it (its requirements.txt: with what), given --out {shlex.quote(folder)} "
        f"and from what (a demo's: --demo), as is told by: {preparation_help(plan.training_dir, model)}"
        for model in models
    )


def _if_raw(plan: Plan, cases: Sequence[CasePlan]) -> str:
    """What to do about data without a manifest, from which a search knows its images; empty where no case does."""
    models = dict.fromkeys(Path(case.files.case_dir).parent.name for case in cases if case.roles)
    return "; ".join(
        "prepare them into another folder, and name that one in test_conf.py; how is told by: "
        f"{preparation_help(plan.training_dir, model)}"
        for model in models
    )


async def _usable(plan: Plan, use: HostUse, folder: str, how_made: str, if_raw: str) -> str:
    """The data, and what is mounted below them: asked at the same moment, over ssh they share a session."""
    looks: list[Awaitable[object]] = [_data_in(use, work_folder(plan.run), folder, how_made, if_raw)]
    if plan.run.uses_images:
        mounts = [Mount(folder, DATA_INSIDE)]
        engine = engine_of(plan.run.container_engine) if plan.run.uses_engine else None
        looks.append(with_submounts(use.transport, engine, mounts))
    ends = await asyncio.gather(*looks, return_exceptions=True)
    raise_first(ends)
    return str(ends[0])


async def _data_in(use: HostUse, work: str, folder: str, how_made: str, if_raw: str) -> str:
    transport = use.transport
    argv = ["cat", f"{folder}/{manifests.MANIFEST_NAME}"]
    is_there, text = await asyncio.gather(
        transport.run(["test", "-d", folder], timeout=QUICK_S),
        transport.run(argv, timeout=QUICK_S, held=LARGEST_MANIFEST),
    )
    if not is_there.ok:
        remedy = f"put the data there on {transport.host}, or correct the data directory in test_conf.py"
        raise FlagPerfError(f"{folder} does not exist", remedy=remedy + how_made)
    if not text.ok and if_raw:
        message = f"{folder} has no {manifests.MANIFEST_NAME} that can be read: these are no prepared data"
        raise FlagPerfError(message, remedy=if_raw)
    if not text.ok:
        return f"{folder} (no manifest)"
    where = f"{transport.host}:{folder}/{manifests.MANIFEST_NAME}"
    # in threads: a hundred thousand files take seconds, and meanwhile other hosts are to be heard
    manifest, digest = await asyncio.to_thread(_manifest_in, text.whole_stdout(), where)
    use.facts[folder] = digest
    argv = manifests.listing_command(manifest, folder)
    held = min(
        WHOLE_BYTES, OTHERS_BYTES + 2 * sum(MOST_STAMP + len(entry.path.encode()) for entry in manifest.files)
    )
    listing = await transport.run(argv, timeout=LISTING_S, held=held)
    listed = await asyncio.to_thread(manifests.listed_in, listing.whole_stdout(), folder)
    host = transport.host
    _refuse(host, folder, await asyncio.to_thread(manifests.compare_sizes, manifest, listed, folder))
    _refuse(host, folder, await altered_files(DataFolder(use, work, folder, manifest, listed)))
    return f"{folder} ({counted(len(manifest.files), 'file')} as in the manifest, by SHA-256)"


def _manifest_in(text: str, where: str) -> tuple[manifests.Manifest, str]:
    """The manifest and its digest: read once where all hosts have the same."""
    with _READING:
        if text not in _READ:
            manifest = manifests.parse(text, where=where)
            _READ.clear()
            _READ[text] = (manifest, manifest.digest)
        return _READ[text]


_READING = threading.Lock()
_READ: dict[str, tuple[manifests.Manifest, str]] = {}  # the latest


def _refuse(host: str, folder: str, problems: Sequence[Problem]) -> None:
    """Raise DataAlteredError where there are some."""
    if problems:
        wrong = "; ".join(
            f"{problem.name}{problem.value and f' ({problem.value})'}: {problem.message}"
            for problem in problems[:PROBLEMS_SHOWN]
        )
        hidden = len(problems) - PROBLEMS_SHOWN
        more = f" and {hidden} more" if hidden > 0 else ""
        remedy = f"prepare the data on {host} again, or copy them there from a host that passes this check"
        raise DataAlteredError(f"{folder}: {wrong}{more}", remedy=remedy)
