"""Whether a run whose controller died may be taken up: by whom, by which files, with which code.

What decides what is done on hosts (the plan) is not read from the run's folder, which may be anybody's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from run_benchmarks.names import RUN_UID
from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.unchanged import changes, plan_digest
from run_benchmarks.reading import parsed
from run_benchmarks.results.folder import open_folder
from run_benchmarks.resumption import Resumption, new_run, start_of
from run_benchmarks.stages.tree import tree_of
from utils.errors import FlagPerfError, ProblemsError


def check_open_end(path: Path, places: Sequence[str]) -> None:
    """See that there is a run in a folder which was begun and has not come to its end.

    Args:
        places: the options that lead a further command to the same files.

    Raises:
        FlagPerfError: there is none.
    """
    start_of(open_folder(path), places)


def plan_again(path: Path, config_dir: Path, training_dir: Path, log_path: Path | None) -> Plan:
    """The plan of the run in a folder, made anew from the user's files: of the folder's own only names are taken.

    Raises:
        FlagPerfError: there is no run that could have been begun.
        ProblemsError: something is wrong with the files.
    """
    folder = open_folder(path)
    if not folder.cases:
        raise FlagPerfError(
            "no plan.json names its cases", where=str(path), remedy="name the folder of a run"
        )
    earlier = folder.plan.get("continue_from")
    continue_from = earlier if isinstance(earlier, str) and RUN_UID.fullmatch(earlier) else None
    cases = [*folder.cases]
    try:
        plan = load_plan(config_dir, training_dir, only_cases=cases, log_path=log_path)
    except ProblemsError as error:  # nobody has given --cases: the run itself has them
        named = {"where": str(path / "plan.json"), "name": "a case of the run"}
        problems = [replace(each, **named) if each.name == "--cases" else each for each in error.problems]
        raise type(error)(problems) from error
    if not continue_from:
        return plan
    # not looked for anew: where its folder lay another may lie, and which of its rounds are done was seen at the start
    done = parsed(dict[str, tuple[int, ...]], folder.plan.get("done") or {}, f"{path / 'plan.json'}: done")
    return replace(plan, continue_from=continue_from, done=done)


def check_unchanged(path: Path, plan: Plan, so_far: Resumption) -> None:
    """See that the rounds to come are those that the run in a folder was begun for.

    Raises:
        FlagPerfError: the files lead to another plan, or to other code; it says what has changed.
    """
    anew = new_run(open_folder(path), plan.options)
    if not so_far.digest:
        message = "it was begun by a version of FlagPerf whose runs cannot be taken up"
        raise FlagPerfError(message, where=so_far.run.name, remedy=anew)
    now = plan_as_dict(plan)
    if plan_digest(now) != so_far.digest:
        lines = changes(so_far.plan, json.loads(json.dumps(now))) or ["plan.json itself was altered"]
        remedy = f"undo that, or name the run's own files with --config; for other settings {anew}"
        message = "\n".join(("the files do not lead to the run's plan any more", *lines))
        raise FlagPerfError(message, where=str(plan.training_dir), remedy=remedy)
    if tree_of(plan).digest != so_far.tree:
        message = "the code that hosts get is not that which the run was begun with"
        remedy = (
            "undo what was changed in this folder since then (`git status`, `git diff`), or start a new run"
        )
        raise FlagPerfError(message, where=str(plan.training_dir), remedy=remedy)
