"""The run that another one goes on with: what the controller's own result folder tells of it, where it has one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.records import CasePlan
from utils.records import Verdict


@dataclass(frozen=True)
class EarlierRun:
    """`given` is what the user wrote, `uid` the run's folder below CHECKPOINT_PATH; both empty for no run.

    done: case -> its rounds that had succeeded, with the parameters that it has now.
    """

    given: str = ""
    uid: str = ""
    done: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def find_earlier(given: str, log_path: Path, cases: Iterable[CasePlan]) -> EarlierRun:
    """The run that the user named by its result folder, its name or its uid.

    Another controller may have run it: then nothing but the uid, which the preflight lists, leads to it.
    """
    if not given:
        return EarlierRun()
    name = Path(given).name
    for folder in (Path(given), log_path / name, log_path / name.partition("-")[0]):
        uid = _uid_of(folder)
        if uid and name in (uid, uid.partition("-")[0]):
            return EarlierRun(given, uid, _done(folder, cases))
    return EarlierRun(given, name)


def _uid_of(folder: Path) -> str:
    """The journal begins with it; empty where there is none."""
    try:
        with (folder / "journal.jsonl").open(encoding="utf-8") as journal:
            first = json.loads(journal.readline())
    except (OSError, ValueError):
        return ""
    return str(first.get("uid") or "") if isinstance(first, dict) else ""


def _done(folder: Path, cases: Iterable[CasePlan]) -> dict[str, tuple[int, ...]]:
    """A case that has other parameters now, a higher target say, is not done: it goes on."""
    then = _object(folder / "plan.json")
    parameters = {case["settings"]["name"]: case["parameters"] for case in then.get("cases", ())}
    done = {}
    for case in cases:
        name = case.settings.name
        if parameters.get(name) != json.loads(json.dumps(plain(case.parameters))):
            continue
        before = then.get("done", {}).get(name, ())  # by a run that went on with one before it
        rounds = range(1, case.settings.repeat + 1)
        finished = tuple(number for number in rounds if number in before or _succeeded(folder / name, number))
        if finished:
            done[name] = finished
    return done


def _succeeded(folder: Path, number: int) -> bool:
    verdict = _object(folder / f"round{number}" / "result.json").get("verdict")
    return any(verdict == each for each in Verdict if each.is_success)


def _object(path: Path) -> dict[str, Any]:
    """What a JSON file holds; nothing where it is not there or was cut off with the run."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
