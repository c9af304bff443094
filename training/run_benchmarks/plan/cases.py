"""The cases of `test_conf.py`, in either dialect, as the user wrote them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from run_benchmarks.plan.config_file import ConfigFile
from run_benchmarks.plan.reader import Reader, fields_of, type_name
from run_benchmarks.plan.records import CaseSettings
from utils.config_files import config_name, parts_of_config
from utils.errors import nearest

KEY_FORM = "[vendor/]model:framework[_version]:chip:nnodes:nproc:repeat"
KEY_EXAMPLE = "bert:pytorch_1.8:A100:1:8:1"
_KEY_PARTS = ("model", "framework", "chip", "nnodes", "nproc", "repeat")
_LONGEST_NAME = 200  # bytes; file systems allow 255
# For what is wrong by itself, so that it hides nothing else that is wrong with the case.
_STAND_INS = {"nnodes": 1, "nproc": 1, "repeat": 1, "data_dir_host": "/", "data_dir_container": "/"}
_ANY_CASE = {"vendor": "any", "model": "any", "framework": "any", "config": "any"}
_CASES_EXAMPLE = f'{{"{KEY_EXAMPLE}": "/data/bert/train"}}'
# What the dict of a 2022 case holds; `vendor` and `deadline_hours` are new and may be left out.
CASE_KEYS = [name for name in fields_of(CaseSettings) if name != "name"]


def read_cases(reader: Reader, only: Sequence[str] | None, vendor: str) -> tuple[CaseSettings, ...]:
    """The cases to run: those of CASES or, where `only` is given, those that it names.

    `vendor` is that of the cases that name none.
    """
    cases = _listed(reader)
    if cases is None:
        return ()
    by_key = isinstance(cases, dict)
    if only is None:
        names = _names(cases, reader)
    else:
        names = _chosen(only, [*cases] if isinstance(cases, dict) else _case_dicts(reader.file), reader)
    reader.names.update(names)
    read = (
        _by_key(name, cases, reader, vendor) if by_key else _by_dict(name, reader, vendor) for name in names
    )
    return tuple(case for case in read if case is not None)


def case_name(key: str) -> str:
    """The folder of a case in the result tree: `/` after the vendor would make two, so it becomes `:`.

    No two keys share a folder: with a vendor it has seven parts, without six.
    """
    return key.replace("/", ":", 1)


def where_case(file: ConfigFile, case: CaseSettings) -> str:
    """The line that defines the case: the dict of its name, or its key in CASES."""
    keys = [key for key in file.values["CASES"] if case_name(str(key)) == case.name]
    return file.where(case.name) if case.name in file.values else file.where("CASES", *keys)


def is_case_dict(name: str, value: Any) -> bool:
    """Whether a name in `test_conf.py` is the dict of a case: real files keep many that CASES leaves out."""
    return isinstance(value, dict) and bool(value.keys() & set(CASE_KEYS))


def _case_dicts(file: ConfigFile) -> list[str]:
    return [name for name, value in file.values.items() if is_case_dict(name, value)]


def _listed(reader: Reader) -> dict[Any, Any] | list[Any] | None:
    """CASES as it stands."""
    reader.names.add("CASES")
    cases = reader.file.values.get("CASES")
    if reader.file.is_odd("CASES"):
        return None
    if cases is None:
        reader.problem("CASES", "is not set", f"add a line such as: CASES = {_CASES_EXAMPLE}")
    elif not isinstance(cases, (dict, list, tuple)):
        message = f"has the wrong type: it is {type_name(cases)}, not a dict or a list"
        remedy = f"write CASES = {_CASES_EXAMPLE}, or a list of names with a dict for each"
        reader.problem("CASES", message, remedy)
    else:
        return cases if isinstance(cases, dict) else list(cases)
    return None


def _names(cases: dict[Any, Any] | list[Any], reader: Reader) -> list[str]:
    """The cases' names as listed, each once; those that cannot be names are noted."""
    names: list[str] = []
    for number, name in enumerate(cases):
        if not isinstance(name, str):
            message = f"has the wrong type: it is {type_name(name)}, not text"
            remedy = 'write each case\'s name in quotes, "..."'
        elif name in names:
            message = "the case stands twice; both would write the same result folder"
            remedy = "remove one; to run a case again raise repeat"
        else:
            names.append(name)
            continue
        where = reader.file.where("CASES", name if isinstance(cases, dict) else number)
        reader.problems.add(where, "CASES", name, message, remedy)
    return names


def _chosen(only: Sequence[str], names: Sequence[str], reader: Reader) -> list[str]:
    """The chosen ones among `names`: as they stand in the file, or as they are called in the results."""
    of_name = {case_name(str(name)): name for name in names}
    chosen = {choice: of_name.get(case_name(choice)) for choice in only}
    for choice in (choice for choice, name in chosen.items() if name is None):
        near = nearest(choice, map(str, names)) or f"choose from: {', '.join(map(str, names)) or 'none'}."
        hint = f"{near} Or write it into CASES, with its data: {KEY_FORM}; without vendor/ it is of VENDOR"
        reader.problems.add("command line", "--cases", choice, "is not a case of test_conf.py", hint)
    return list(dict.fromkeys(name for name in chosen.values() if name is not None))


# ---- the later dialect


def _by_key(key: str, cases: Any, reader: Reader, vendor: str) -> CaseSettings | None:
    """All but the data directory stands in the key."""
    parts, wrong = parse_case_key(key)
    for message in wrong.values():
        form = f'write {KEY_FORM}, e.g. "{KEY_EXAMPLE}"'
        reader.problems.add(reader.file.where("CASES", key), "CASES", key, f"is malformed: {message}", form)
    reader.written_as.update(data_dir_host=key, data_dir_container=key)
    data = {"data_dir_host": cases[key], "data_dir_container": cases[key]}
    stand_ins = _STAND_INS if wrong.keys() <= {"repeat"} else {**_STAND_INS, **_ANY_CASE}
    values = {**parts, "vendor": parts.get("vendor") or vendor, **data}
    values = {name: value for name, value in values.items() if name not in wrong}
    case = reader.read(CaseSettings, {**stand_ins, **values}, ("CASES",), stand_ins, name=case_name(key))
    return case if stand_ins is _STAND_INS else None


def parse_case_key(key: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What a key of the later dialect says, by the 2022 dict's keys, and what is wrong with which part of it."""
    vendor, slash, rest = key.rpartition("/")
    written = rest.split(":")
    if len(written) != len(_KEY_PARTS):
        return {}, {"key": f"it has {len(written)} parts, not {len(_KEY_PARTS)}"}
    parts: dict[str, Any] = dict(zip(_KEY_PARTS, written, strict=True), vendor=vendor)
    wrong = {}
    for name in ("model", "framework", "chip", *(["vendor"] if slash else [])):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", parts[name], re.ASCII):
            wrong[name] = f"its part {parts[name]!r} cannot be the name of a folder here"
    for name in ("nnodes", "nproc", "repeat"):
        if re.fullmatch(r"[1-9]\d{0,5}", parts[name], re.ASCII):
            parts[name] = int(parts[name])
        else:
            wrong[name] = f"{name} is {parts[name]!r}, not a whole number of at least 1"
    if len(key.encode()) > _LONGEST_NAME:
        wrong["key"] = "it is too long for the name of a folder"
    parts["config"] = config_name(parts.pop("chip"), parts["nnodes"], parts["nproc"])
    return parts, wrong


# ---- the dialect of 2022


def _by_dict(name: str, reader: Reader, vendor: str) -> CaseSettings | None:
    """A dict of the case's own name."""
    values = reader.file.values.get(name)
    if not isinstance(values, dict):
        _report_no_dict(name, values, reader)
        return None
    if len(name.encode()) > _LONGEST_NAME:
        reader.problem(name, "is too long for the name of a folder", "give the case a shorter name")
    reader.report_unknown_keys((name,), values, CASE_KEYS)
    given = {key: value for key, value in values.items() if value is not None}
    case = reader.read(CaseSettings, {"vendor": vendor, **given}, (name,), _STAND_INS, name=name)
    if case is not None:
        _check_config(case, given, reader)
    return case


def _check_config(case: CaseSettings, given: Mapping[str, Any], reader: Reader) -> None:
    """A name like `config_A100x2x8` says 2 nodes of 8; the case must say the same."""
    parts = parts_of_config(case.config)
    size = (given.get("nnodes"), given.get("nproc"))
    if parts is not None and size == (case.nnodes, case.nproc) != parts[1:]:
        message = f"is a config for {parts[1]} nodes x {parts[2]} processes, but nnodes = {case.nnodes} and nproc = {case.nproc}"  # noqa: E501
        remedy = f"write a config for {case.nnodes}x{case.nproc}, or correct nnodes and nproc"
        reader.problem((case.name, "config"), message, remedy, case.config)


def _report_no_dict(name: str, value: Any, reader: Reader) -> None:
    if ":" in name:
        remedy = f"keys of this form need CASES to be a dict: CASES = {_CASES_EXAMPLE}"
    else:
        needed = ", ".join(key for key, field in fields_of(CaseSettings).items() if field.is_required())
        hint = nearest(name, _case_dicts(reader.file))
        remedy = f"define {name} = {{...}} with {needed}" + (f"; {hint}" if hint else "")
    message = "has no dict of its name" if value is None else f"is {type_name(value)}, not a dict"
    cases = list(reader.file.values["CASES"])
    where = reader.file.where("CASES", cases.index(name)) if name in cases else reader.file.where(name)
    reader.problems.add(where, "CASES", name, message, remedy)
