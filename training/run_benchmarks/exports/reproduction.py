"""An archived run's plan on today's hosts: its cases and parameters, this machine's settings, this checkout's code.

The archive's code is a stranger's: it is compared and never executed. Its parameters are values: they are laid over
those of the checkout's own configuration files, in a copy of the tree, where they differ.
"""

from __future__ import annotations

import json
import posixpath
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from run_benchmarks.exports.archive import CODE, RUN
from run_benchmarks.exports.deployed_code import files_in, tree_today
from run_benchmarks.exports.planned_run import ExportedCase, ExportedPlan, read_plan
from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.cases import CASE_KEYS, case_name, parse_case_key
from run_benchmarks.plan.config_file import ConfigFile, is_set, read_leniently
from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.records import Plan, RunSettings
from run_benchmarks.plan.redact import holds_hidden
from run_benchmarks.reading import read_object
from run_benchmarks.stages.tree import LEFT_OUT_AT_TOP
from utils.errors import FlagPerfError
from utils.text_files import shortened

# What of the run's settings belongs to the measurement; all others are this machine's.
OF_THE_MEASUREMENT = {
    "TEST_TYPE": "test_type",
    "CLEAR_CACHES": "clear_caches",
    "CASE_DEADLINE_HOURS": "case_deadline_hours",
    "MONITOR_INTERVAL": "monitor_interval_s",
    "MONITORS": "monitors",
    "IDLE_READING": "idle_reading_s",
    "CASE_WRITABLE": "case_writable",
    "REQUIRE_UNDISTURBED": "require_undisturbed",
}
PLAN = Path(RUN, "plan.json")
DATA_PLACES = ("data_dir_host", "data_dir_container")
MOST_NAMED = 20
LONGEST_PARAMETER, LONGEST_NAME = 2**16, 100  # characters


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
    places = _data_places(today_says)
    elsewhere = [case for case in then.cases if case.name not in places]
    above = ConfigFile(PLAN, _settings(then, places, today_says, training_dir), {})
    plan = load_plan(config, training_dir, log_path=log_path, above=above)
    for case in elsewhere:
        _refuse_data_over_code(plan.run, case)
    today = {case.settings.name: _json(plain(case.parameters)) for case in plan.cases}
    differs = list(_code_differences(then, about, unpacked / CODE, training_dir))
    runtime = then.run.get("runtime")
    if runtime and runtime != plan.run.runtime:
        differs.append(
            f"it ran with RUNTIME = {runtime!r}, and is run with {plan.run.runtime!r}, as is set here"
        )
    changed = {case.name: _changed(case, today.get(case.name, {})) for case in then.cases}
    for case in then.cases:
        differs += _parameter_differences(case, changed[case.name], today.get(case.name, {}))
    differs += [
        f"{case.name}: its data is looked for where it was, in {case.settings.get('data_dir_host')}: "
        "CASES of test_conf.py does not have this case"
        for case in elsewhere
    ]
    if any(changed.values()):
        tree = _with_parameters(plan, changed, training_dir, work / "training")
        plan = load_plan(config, tree, log_path=log_path, above=above)
    return Reproduction(plan, tuple(differs))


def _archived_plan(unpacked: Path) -> ExportedPlan:
    content = read_object(unpacked / PLAN)
    if content is None:
        raise FlagPerfError("holds no plan: the run cannot be repeated", where=str(PLAN))
    plan = read_plan(content, str(PLAN))
    if not plan.cases:
        raise FlagPerfError("has no case to run", where=str(PLAN))
    for case in plan.cases:
        for name, value in case.parameters.items():
            if len(json.dumps(value)) > LONGEST_PARAMETER:
                message = f"{shortened(name, LONGEST_NAME)} has more than {LONGEST_PARAMETER} characters"
                raise FlagPerfError(f"{message}, as no parameter has", where=f"{PLAN}: {case.name}")
    return plan


def _data_places(today: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Case -> where today's file has its data, on the hosts and in the containers; of cases in either dialect."""
    named = today.get("CASES")
    if isinstance(named, Mapping):
        return {case_name(str(key)): dict.fromkeys(DATA_PLACES, data) for key, data in named.items()}
    of_case = {name: case for name, case in today.items() if isinstance(case, Mapping)}
    return {
        name: {place: case[place] for place in DATA_PLACES}
        for name, case in of_case.items()
        if case.keys() >= {*DATA_PLACES}
    }


def _settings(
    then: ExportedPlan, places: Mapping[str, Mapping[str, Any]], today: Mapping[str, Any], training_dir: Path
) -> dict[str, Any]:
    """What of test_conf.py is the archive's: its cases, and what belongs to the measurement."""
    cases = [_at(case, places.get(case.name, {})) for case in then.cases]
    settings = {name: then.run[field] for name, field in OF_THE_MEASUREMENT.items() if field in then.run}
    if not any(is_set(today.get(name)) for name in ("FLAGPERF_PATH", "FLAGPERF_PATH_HOST")):
        settings["FLAGPERF_PATH_HOST"] = str(training_dir)  # whatever tree is deployed
    return settings | _named_cases(cases, str(today.get("VENDOR") or ""))


def _at(case: ExportedCase, places: Mapping[str, Any]) -> ExportedCase:
    """The case with its data in today's places; else on the hosts where it was, and under that path in containers.

    Under a path of the archive's choice it could be mounted over code.
    """
    then = dict.fromkeys(DATA_PLACES, case.settings.get("data_dir_host"))
    return replace(case, settings={**case.settings, **then, **places})


def _refuse_data_over_code(run: RunSettings, case: ExportedCase) -> None:
    """The archive's folder on the hosts may have been made by anybody, whose code would run if it lay over the tree."""
    tree = PurePosixPath(posixpath.normpath(run.flagperf_path_container))
    data = str(case.settings.get("data_dir_host"))
    inside = PurePosixPath(posixpath.normpath(data))
    if run.uses_images and (inside.is_relative_to(tree) or tree.is_relative_to(inside)):
        raise FlagPerfError(
            f"{case.name}: its data, {shortened(data, LONGEST_NAME)}, would lie over the code in the container, {tree}",
            where=str(PLAN),
            remedy="name in CASES of test_conf.py where its data lies here",
        )


def _named_cases(cases: Sequence[ExportedCase], default_vendor: str) -> dict[str, Any]:
    """CASES, in the dialect in which the cases' names were written."""
    keys = {case.name: _key(case, default_vendor) for case in cases}
    if all(keys.values()):
        return {"CASES": {keys[case.name]: case.settings.get("data_dir_host") for case in cases}}
    for name in keys:
        if not name.isidentifier():  # it becomes the name of a folder
            raise FlagPerfError(f"{name!r} cannot be the name of a case in a file", where=str(PLAN))
    return {"CASES": list(keys), **{case.name: _case_dict(case) for case in cases}}


def _key(case: ExportedCase, default_vendor: str) -> str:
    """The case's key in the later dialect; empty where its name is none."""
    vendor = case.vendor.name
    key = case.name.removeprefix(f"{vendor}:") if case.name.count(":") == 6 else case.name
    parts, wrong = parse_case_key(key)
    if wrong or not parts:
        return ""
    return key if vendor == default_vendor else f"{vendor}/{key}"


def _case_dict(case: ExportedCase) -> dict[str, Any]:
    values = {**case.settings, "vendor": case.vendor.name}
    return {key: values[key] for key in CASE_KEYS if values.get(key) is not None}


def _changed(case: ExportedCase, today: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that this checkout has with another value; a hidden one stays as it is here."""
    return {
        name: value
        for name, value in case.parameters.items()
        if name in today and value != today[name] and not holds_hidden(value)
    }


def _parameter_differences(
    case: ExportedCase, changed: Mapping[str, Any], here: Mapping[str, Any]
) -> Iterator[str]:
    for name, value in changed.items():
        yield f"{case.name}: {name} is {here[name]!r} in this checkout, and is run with {value!r}"
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

    # what links lead to, and not the links: what is written into the copy must reach no file of the checkout
    shutil.copytree(training_dir, tree, symlinks=False, ignore=ignored, ignore_dangling_symlinks=True)
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
