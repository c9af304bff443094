"""The cases of `test_conf.py`, in either dialect, as the user wrote them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from run_benchmarks.plan import kinds
from run_benchmarks.plan.problems import Problems, UnfitError
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import CaseSettings
from run_benchmarks.plan.source import Source
from utils.errors import nearest

KEY_FORM = "[vendor/]model:framework[_version]:chip:nnodes:nproc:repeat"
KEY_EXAMPLE = "bert:pytorch_1.8:A100:1:8:1"
_CASES_EXAMPLE = f'{{"{KEY_EXAMPLE}": "/data/bert/train"}}'

# What the dict of a 2022 case holds; the last two are new and may be left out.
CASE_KEYS: dict[str, Callable[[Any], Any]] = {
    "model": kinds.path_name,
    "framework": kinds.path_name,
    "config": kinds.path_name,
    "repeat": kinds.whole(),
    "nnodes": kinds.whole(),
    "nproc": kinds.whole(),
    "data_dir_host": kinds.absolute_path,
    "data_dir_container": kinds.absolute_path,
    "deadline_hours": kinds.number(0, above=True),
    "vendor": kinds.path_name,
}
OPTIONAL_KEYS = ("deadline_hours", "vendor")
_EXAMPLES = {
    "model": '"bert"', "framework": '"pytorch"', "config": '"config_A100x1x8"', "repeat": "1",
    "nnodes": "1", "nproc": "8", "data_dir_host": '"/data/bert"', "data_dir_container": '"/mnt/data/bert"',
}  # fmt: skip


def read_cases(reader: Reader, only: Sequence[str] | None, vendor: str) -> tuple[CaseSettings, ...]:
    """The cases to run: those of CASES or, where `only` is given, those that it names.

    `vendor` is that of the cases that name none.
    """
    cases = reader.require("CASES", _cases, _CASES_EXAMPLE)
    if cases is None:
        return ()
    names = list(dict.fromkeys(only)) if only is not None else _names(cases, reader)
    reader.known.update(names)
    chosen = only is not None
    read = (
        _by_key(name, cases, reader.source, reader.problems, chosen, vendor)
        if isinstance(cases, dict)
        else _by_dict(name, reader.source, reader.problems, chosen, vendor)
        for name in names
    )
    return tuple(case for case in read if case is not None)


def case_name(key: str) -> str:
    """The folder of a case in the result tree: `/` after the vendor would make two, so it becomes `:`.

    No two keys share a folder: with a vendor it has seven parts, without six.
    """
    return key.replace("/", ":", 1)


def where_case(source: Source, case: CaseSettings) -> str:
    """The line that defines the case: the dict of its name, or its key in CASES."""
    keys = (case.name, case.name.replace(":", "/", 1))
    lines = [source.where(case.name), *(source.where("CASES", key) for key in keys)]
    all_of_cases = (str(source.path), source.where("CASES"))
    return next((line for line in lines if line not in all_of_cases), lines[-1])


def is_case_dict(name: str, value: Any) -> bool:
    """Whether a name in `test_conf.py` is the dict of a case: real files keep many that CASES leaves out."""
    return isinstance(value, dict) and bool(value.keys() & set(CASE_KEYS))


def check_case_name(name: str) -> None:
    """Raise UnfitError where `name` cannot be a folder of the result tree."""
    remedy = "use letters, digits, : . _ + - and begin with a letter or digit"
    if not name or "/" in name or "\0" in name or name.startswith(".") or ".." in name:
        raise UnfitError("cannot be the name of a folder", remedy)
    if not name.isprintable() or name != name.strip() or len(name.encode()) > 200:
        raise UnfitError(
            "cannot be the name of a folder (spaces at its ends, line breaks, or too long)", remedy
        )


def parse_case_key(key: str) -> tuple[str, str, str, str, int, int, int]:
    """(vendor or "", model, framework, chip, nnodes, nproc, repeat) of a key in the later dialect.

    Raises:
        UnfitError: it is malformed.
    """
    vendor, slash, rest = key.rpartition("/")
    parts = rest.split(":")
    if len(parts) != 6:
        raise UnfitError(f"is malformed: it has {len(parts)} parts, not 6", _form())
    for part in (*parts[:3], *([vendor] if slash else [])):
        try:
            kinds.path_name(part)
        except UnfitError as unfit:
            raise UnfitError(f"is malformed: its part {part!r} {unfit.message}", _form()) from None
    for part, what in zip(parts[3:], ("nnodes", "nproc", "repeat"), strict=True):
        if not re.fullmatch(r"[1-9]\d{0,5}", part, re.ASCII):
            raise UnfitError(f"is malformed: {what} is {part!r}, not a whole number of at least 1", _form())
    return vendor, parts[0], parts[1], parts[2], int(parts[3]), int(parts[4]), int(parts[5])


def _form() -> str:
    return f'write {KEY_FORM}, e.g. "{KEY_EXAMPLE}"'


def _cases(value: Any) -> dict[Any, Any] | list[Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return list(value)
    raise UnfitError(
        f"has the wrong type: it is {kinds.type_name(value)}, not a dict or a list",
        f"write CASES = {_CASES_EXAMPLE}, or a list of names with a dict for each",
    )


def _names(cases: dict[Any, Any] | list[Any], reader: Reader) -> list[str]:
    """The cases' names as listed, each once; those that cannot be names are noted."""
    names: list[str] = []
    for name in cases:
        where = reader.source.where("CASES", str(name))
        if not isinstance(name, str):
            message = f"has the wrong type: it is {kinds.type_name(name)}, not text"
            reader.problems.add(where, "CASES", name, message, 'write each case\'s name in quotes, "..."')
        elif name in names:
            message = "the case stands twice; both would write the same result folder"
            reader.problems.add(where, "CASES", name, message, "remove one; to run a case again raise repeat")
        else:
            names.append(name)
    return names


def _by_key(
    key: str, cases: dict[str, Any], source: Source, problems: Problems, chosen: bool, vendor: str
) -> CaseSettings | None:
    """A case of the later dialect: all but the data directory stands in its key."""
    if chosen:  # by its key, or by its name in the results
        key = next((other for other in cases if key == case_name(str(other))), key)
    if chosen and key not in cases:
        _report_unknown_choice(key, [str(name) for name in cases], problems)
        return None
    where, settings = source.where("CASES", key), None
    try:
        own_vendor, model, framework, chip, nnodes, nproc, repeat = parse_case_key(key)
        config = f"config_{chip}x{nnodes}x{nproc}"
        name = case_name(key)
        check_case_name(name)
        of = own_vendor or vendor
        settings = CaseSettings(name, of, model, framework, config, nnodes, nproc, repeat, "", "")
    except UnfitError as unfit:
        problems.add(where, "CASES", key, unfit.message, unfit.remedy)
    try:
        data_dir = kinds.absolute_path(cases[key])
    except UnfitError as unfit:
        remedy = f"{unfit.remedy} (the case's data directory on the hosts)"
        problems.add(where, f"CASES[{key!r}]", cases[key], unfit.message, remedy)
        return None
    return settings and _with_data(settings, data_dir)


def _with_data(settings: CaseSettings, data_dir: str) -> CaseSettings:
    return CaseSettings(**{**vars(settings), "data_dir_host": data_dir, "data_dir_container": data_dir})


def _by_dict(name: str, source: Source, problems: Problems, chosen: bool, vendor: str) -> CaseSettings | None:
    """A case of the 2022 dialect: a dict of its own name."""
    value = source.values.get(name)
    dicts = [other for other, its in source.values.items() if is_case_dict(other, its)]
    if chosen and name not in dicts:
        _report_unknown_choice(name, dicts, problems)
        return None
    if not isinstance(value, dict):
        _report_no_dict(name, value, dicts, source, problems)
        return None
    before = len(problems.found)
    try:
        check_case_name(name)
    except UnfitError as unfit:
        problems.add(source.where(name), name, None, unfit.message, unfit.remedy)
    checked = _checked_keys(name, value, source, problems)
    if len(problems.found) > before:
        return None
    hours = checked.pop("deadline_hours", None)
    of_case = {"vendor": vendor, **checked}
    case = CaseSettings(name=name, deadline_s=hours * 3600 if hours else None, **of_case)
    return case if _config_agrees(case, source, problems) else None


def _checked_keys(name: str, value: dict[Any, Any], source: Source, problems: Problems) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for key, kind in CASE_KEYS.items():
        if key not in value:
            if key not in OPTIONAL_KEYS:
                remedy = f'add "{key}": {_EXAMPLES[key]} to the dict'
                problems.add(source.where(name), f"{name}[{key!r}]", None, "is not set", remedy)
            continue
        try:
            checked[key] = kind(value[key])
        except UnfitError as unfit:
            problems.add(source.where(name, key), f"{name}[{key!r}]", value[key], unfit.message, unfit.remedy)
    for key in value.keys() - set(CASE_KEYS):
        hint = nearest(str(key), CASE_KEYS) or f"remove it; a case has {', '.join(CASE_KEYS)}"
        problems.add(source.where(name, str(key)), f"{name}[{key!r}]", value[key], "is not a known key", hint)
    if "config" in checked:
        checked["config"] = checked["config"].removesuffix(".py")
    return checked


def _config_agrees(case: CaseSettings, source: Source, problems: Problems) -> bool:
    """A name like `config_A100x2x8` says 2 nodes of 8; the case must say the same."""
    match = re.fullmatch(r"config_.+x(\d+)x(\d+)", case.config)
    if match is None or (int(match[1]), int(match[2])) == (case.nnodes, case.nproc):
        return True
    message = f"is a config for {match[1]} nodes x {match[2]} processes, but nnodes = {case.nnodes} and nproc = {case.nproc}"  # noqa: E501
    remedy = f"write a config for {case.nnodes}x{case.nproc}, or correct nnodes and nproc"
    problems.add(source.where(case.name, "config"), f"{case.name}['config']", case.config, message, remedy)
    return False


def _report_no_dict(name: str, value: Any, dicts: list[str], source: Source, problems: Problems) -> None:
    where = source.where("CASES", name)
    if ":" in name:
        remedy = f"keys of this form need CASES to be a dict: CASES = {_CASES_EXAMPLE}"
    else:
        hint = nearest(name, dicts)
        remedy = f"define {name} = {{...}} with {', '.join(_EXAMPLES)}" + (f"; {hint}" if hint else "")
    message = "has no dict of its name" if value is None else f"is {kinds.type_name(value)}, not a dict"
    problems.add(where, "CASES", name, message, remedy)


def _report_unknown_choice(name: str, known: list[str], problems: Problems) -> None:
    hint = nearest(name, known) or f"choose from: {', '.join(known) or 'none'}"
    problems.add("command line", "--cases", name, "is not a case of test_conf.py", hint)
