"""The run that another one goes on with: what the controller's own result folder tells of it, where it has one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_benchmarks.names import JOURNAL, places_of
from run_benchmarks.own_folder import check_place
from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.reading import object_in, parsed, read_object
from utils.errors import FlagPerfError
from utils.records import Verdict
from utils.text_files import lines_of

NOT_OWN = "copy the run's folder (cp -r), if you trust who wrote it, and name your copy"


@dataclass(frozen=True)
class EarlierRun:
    """`given` is what the user wrote, `uid` the run's folder below CHECKPOINT_PATH; both empty for no run.

    done: case -> its rounds that had succeeded, with the parameters, vendor and data folder that it has now. doubt:
    somebody else may have written what its folder says, which is not believed.
    """

    given: str = ""
    uid: str = ""
    done: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    doubt: FlagPerfError | None = None


def find_earlier(given: str, log_path: Path, cases: Iterable[CasePlan], code: Path) -> EarlierRun:
    """The run that the user named by its result folder, its name or its uid.

    Another controller may have run it: then nothing but the uid, which the preflight lists, leads to it.

    Args:
        code: the folder of the code that runs, see `check_place`.
    """
    if not given:
        return EarlierRun()
    name = Path(given).name
    for folder in (*places_of(given, log_path), log_path / name.partition("-")[0]):
        uid = _uid_of(folder)
        if uid and name in (uid, uid.partition("-")[0]):
            try:
                return EarlierRun(given, uid, _done(folder, cases, code))
            except FlagPerfError as error:
                return EarlierRun(given, uid, doubt=error)
    return EarlierRun(given, name)


@dataclass(frozen=True)
class _Settings:
    name: str
    vendor: str = ""
    data_dir_host: str = ""


@dataclass(frozen=True)
class _Case:
    """A case as the earlier run's plan has it."""

    settings: _Settings
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class _Plan:
    """What there is of the earlier run's plan; done: by a run that it went on with itself."""

    cases: tuple[_Case, ...] = ()
    done: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def _uid_of(folder: Path) -> str:
    """The journal, which may be too large to be read whole here, begins with it; empty where there is none."""
    journal = folder / JOURNAL
    with suppress(FlagPerfError):
        return str(object_in(next(lines_of(journal), ""), str(journal)).get("uid") or "")
    return ""


def _done(folder: Path, cases: Iterable[CasePlan], code: Path) -> dict[str, tuple[int, ...]]:
    """A case that has other parameters now, a higher target say, or other data, is not done: it goes on.

    Raises:
        FlagPerfError: another user may have written what says so.
    """
    path = folder / "plan.json"
    for file in (folder / JOURNAL, path):
        check_place(file, NOT_OWN, code)
    then = _Plan()
    with suppress(FlagPerfError):  # cut off with the run: nothing is known to be done
        then = parsed(_Plan, read_object(path) or {}, str(path))
    earlier = {case.settings.name: case for case in then.cases}
    done = {}
    for case in cases:
        name = case.settings.name
        if name not in earlier or not _is_as_it_was(case, earlier[name]):
            continue
        rounds = range(1, case.settings.repeat + 1)
        before = then.done.get(name, ())
        finished = tuple(
            number for number in rounds if number in before or _succeeded(folder / name, number, code)
        )
        if finished:
            done[name] = finished
    return done


def _is_as_it_was(case: CasePlan, then: _Case) -> bool:
    now = case.settings
    same = _Settings(now.name, now.vendor, str(now.data_dir_host)) == then.settings
    return same and then.parameters == json.loads(json.dumps(plain(case.parameters)))


def _succeeded(folder: Path, number: int, code: Path) -> bool:
    path, verdict = folder / f"round{number}" / "result.json", None
    with suppress(FlagPerfError):
        verdict = (read_object(path, below=folder.parent) or {}).get("verdict")
    is_success = any(verdict == each for each in Verdict if each.is_success)
    if is_success:
        check_place(path, NOT_OWN, code)
    return is_success
