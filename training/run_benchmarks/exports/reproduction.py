"""An archived run's plan on today's hosts: its cases and parameters, this machine's settings, this checkout's code.

The archive's code is a stranger's: it is compared and never executed. Its parameters are values: they are laid over
those of the checkout's own configuration files, in a copy of the tree, where they differ.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from run_benchmarks.commands import place_options
from run_benchmarks.exports.archive import CODE, RUN
from run_benchmarks.exports.configuration import cases_text
from run_benchmarks.exports.deployed_code import files_in, tree_today
from run_benchmarks.exports.planned_run import ExportedCase, ExportedPlan, read_plan
from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.cases import case_name
from run_benchmarks.plan.config_file import read_leniently
from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.redact import HIDDEN
from run_benchmarks.reading import read_object
from run_benchmarks.stages.tree import LEFT_OUT_AT_TOP
from utils.errors import FlagPerfError

# What of the run's settings belongs to the measurement; all others are this machine's.
OF_THE_MEASUREMENT = {
    "TEST_TYPE": "test_type",
    "CLEAR_CACHES": "clear_caches",
    "CASE_DEADLINE_HOURS": "case_deadline_hours",
    "MONITOR_INTERVAL": "monitor_interval_s",
}
_MISSING = "not there"
MOST_NAMED = 20


@dataclass(frozen=True)
class Reproduction:
    """plan: what is to be run. differs: what is not as it was, line by line."""

    plan: Plan
    differs: tuple[str, ...]


def reproduction(
    unpacked: Path, about: Mapping[str, Any], config: Path, training_dir: Path, log_path: Path, work: Path
) -> Reproduction:
    """The archived plan for today's hosts.

    Args:
        unpacked, about: what `unpack` gave. config: the folder with today's two files.
        work: an empty folder for what is made on the way; it must outlive the run.

    Raises:
        ProblemsError: today's files are wrong, or the checkout cannot run the archive's cases.
        FlagPerfError: the archive holds no plan that could be run.
    """
    then = _archived_plan(unpacked)
    today_says = read_leniently(config / "test_conf.py")
    placed, elsewhere = _where_data_is(then.cases, today_says)
    conf = _configuration(then, placed, today_says, config, training_dir, work / "config")
    plan = load_plan(conf, training_dir, log_path=log_path)
    today = {case.settings.name: _json(plain(case.parameters)) for case in plan.cases}
    differs = list(_code_differences(then, about, unpacked / CODE, training_dir))
    changed = {case.name: _changed(case, today.get(case.name, {})) for case in then.cases}
    differs += [
        f"{name}: {each} is {today.get(name, {}).get(each, _MISSING)!r} in this checkout, and is run with {value!r}"
        for name, values in changed.items()
        for each, value in values.items()
    ]
    differs += [*_new_names(then, today), *elsewhere]
    if any(changed.values()):
        tree = _with_parameters(plan, changed, training_dir, work / "training")
        plan = load_plan(conf, tree, log_path=log_path)
    # what is told to be typed later must not lead to what is gone by then
    return Reproduction(replace(plan, options=place_options(config, log_path)), tuple(differs))


def _archived_plan(unpacked: Path) -> ExportedPlan:
    path = unpacked / RUN / "plan.json"
    content = read_object(path)
    if content is None:
        raise FlagPerfError("holds no plan: the run cannot be repeated", where=f"{RUN}plan.json")
    plan = read_plan(content, f"{RUN}plan.json")
    if not plan.cases:
        raise FlagPerfError("has no case to run", where=f"{RUN}plan.json")
    return plan


def _configuration(
    then: ExportedPlan,
    cases: Sequence[ExportedCase],
    today: Mapping[str, Any],
    config: Path,
    training_dir: Path,
    folder: Path,
) -> Path:
    """Today's two files, with the archive's cases and what belongs to the measurement in the place of today's."""
    folder.mkdir(parents=True)
    shutil.copyfile(config / "cluster_conf.py", folder / "cluster_conf.py")
    lines = [
        f"{name} = {then.run[field]!r}\n" for name, field in OF_THE_MEASUREMENT.items() if field in then.run
    ]
    if not {"FLAGPERF_PATH", "FLAGPERF_PATH_HOST"} & today.keys():
        lines.append(f"FLAGPERF_PATH_HOST = {str(training_dir)!r}\n")  # whatever tree is deployed
    text = (config / "test_conf.py").read_text(encoding="utf-8")
    named = cases_text(cases, str(today.get("VENDOR") or ""))
    (folder / "test_conf.py").write_text("\n".join([text, *lines, named]), encoding="utf-8")
    return folder


def _where_data_is(
    cases: Sequence[ExportedCase], today: Mapping[str, Any]
) -> tuple[list[ExportedCase], list[str]]:
    """The cases with the data directories that today's file names for them; a line for each that it does not."""
    named = today.get("CASES")
    folders = (
        {case_name(str(key)): str(data) for key, data in named.items()} if isinstance(named, Mapping) else {}
    )
    placed = [case.at(folders[case.name]) if case.name in folders else case for case in cases]
    lines = [
        f"{case.name}: its data is looked for where it was, in {case.settings.get('data_dir_host')}: "
        "CASES of test_conf.py does not have this case"
        for case in cases
        if case.name not in folders
    ]
    return placed, lines


def _changed(case: ExportedCase, today: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that this checkout has with another value; a hidden one stays as it is here."""
    return {
        name: value
        for name, value in case.parameters.items()
        if name in today and value != today[name] and HIDDEN not in json.dumps(value)
    }


def _new_names(then: ExportedPlan, today: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for case in then.cases:
        here = today.get(case.name, {})
        for name in sorted(case.parameters.keys() - here.keys()):
            yield f"{case.name}: {name} was {case.parameters[name]!r}, and is no parameter here"
        for name in sorted(here.keys() - case.parameters.keys()):
            yield f"{case.name}: {name} was no parameter, and is {here[name]!r} here"


def _with_parameters(
    plan: Plan, changed: Mapping[str, Mapping[str, Any]], training_dir: Path, tree: Path
) -> Path:
    """A copy of the tree in which the vendors' files, as this checkout has them, end with the archive's values."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        left_at_home = LEFT_OUT_AT_TOP - {"run_benchmarks"} if Path(folder) == training_dir else set()
        return {name for name in names if name == "__pycache__" or name in left_at_home}

    shutil.copytree(training_dir, tree, symlinks=True, ignore=ignored)
    for case in plan.cases:
        path = tree / case.files.config_dir / case.files.config_file
        lines = [f"{name} = {value!r}\n" for name, value in changed[case.settings.name].items()]
        path.write_text("".join([path.read_text(encoding="utf-8"), "\n", *lines]), encoding="utf-8")
    return tree


def _code_differences(
    then: ExportedPlan, about: Mapping[str, Any], code: Path, training_dir: Path
) -> Iterator[str]:
    """Whether the checkout's code is what ran and, where the archive has that, the files that differ."""
    tree = tree_today(then, training_dir)
    digest = about.get("tree")
    if not digest:
        yield "which code ran is not known: the run does not say it"
    elif digest != tree.digest:
        yield f"the code is not what ran: its digest was {str(digest)[:16]}, this checkout's is {tree.digest[:16]}"
        files = files_in(tree)
        names = [path.relative_to(code).as_posix() for path in sorted(code.rglob("*")) if path.is_file()]
        other = [name for name in names if files.get(name) != (code / name).read_bytes()]
        yield from (f"the code differs in {name}" for name in other[:MOST_NAMED])
        if len(other) > MOST_NAMED:
            yield f"the code differs in {len(other) - MOST_NAMED} more files"


def _json(values: Any) -> Any:
    return json.loads(json.dumps(values))
