"""A case's `case.py` as far as it can be judged without its framework: it is read, never executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from run_benchmarks.plan.config_file import ConfigFile
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.source_code import parsed, text_of, words_in
from utils.case_form import (
    BETTER,
    CASE_CLASS,
    CASE_FILE,
    DOCS,
    ROLES,
    SEARCH_ROLES,
    WORK,
    lacking,
    missing_parts,
)
from utils.code_files import files_below
from utils.errors import nearest
from utils.parameters import KIND, KINDS, TARGET, TrainingSettings

# So that `vocab_size`, which a library may take, is not held for `eval_batch_size`, and `batch_size` is caught.
NEARLY_THE_SAME = 0.75
# All of a case's settings at once go to what takes the names that it has: a configuration class of a library, say.
_HANDED_ON = re.compile(r"\*\*\s*(dict\()?[\w.]*settings\b|\bsettings\.items\(|\bfrom_dict\(")
# The last and the first part of a name, in a text that has a gap before or after it, or is joined with another.
_ENDS, _BEGINS = re.compile(r"(?:\}|%s|['\"])(_\w+)"), re.compile(r"\b(\w+_)(?:\{|%s|['\"])")
_SEE = f"see {DOCS}"


def check_own_names(base: ConfigFile, code: Iterable[Path], problems: Problems) -> None:
    """Note the names of a `_base.py` that have no effect: those that are nearly a setting of the driver and stand
    nowhere in the case's code, and `metric_better`.

    Args:
        code: folders with the code that may read them; their `config/` do not count.
    """
    if BETTER in base.values:
        message = "has no effect: to the driver the larger metric is the better one"
        remedy = "remove it; where the smaller is the better, let case.py negate the metric, and its target"
        problems.add(base.where(BETTER), BETTER, base.values[BETTER], message, remedy)
    settings = _settings_for(base.values)
    near = {n: hint for n in _own_names(base.values) if (hint := nearest(n, settings, NEARLY_THE_SAME))}
    if not near:
        return
    words = set(words_in(_text_in(code)))
    for name in (name for name in near if name not in words):
        message = "is no setting of the driver, and the case's code does not use it: it has no effect"
        problems.add(
            base.where(name), name, None, message, f"{near[name]} Else remove it, or give it another name"
        )


def unread_names(parameters: Mapping[str, Any], own: Iterable[Path], shared: Path) -> list[str]:
    """Of the case's own names those that nothing reads, as far as that can be told by reading the code.

    None where the case hands all of them on together. A name may be put together of parts: `f"{part}_size"`.

    Args:
        own: folders with the case's code; shared: with what cases share.
    """
    code = _text_in(own)
    if _HANDED_ON.search(code):
        return []
    code += _text_in([shared])
    words, ends, begins = set(words_in(code)), tuple(_ENDS.findall(code)), tuple(_BEGINS.findall(code))
    unread = (name for name in _own_names(parameters) if name not in words)
    return [name for name in unread if not name.endswith(ends) and not name.startswith(begins)]


def _settings_for(parameters: Mapping[str, Any]) -> list[str]:
    """The names of the driver's settings for a case of this kind."""
    return [field.name for field in fields(KINDS.get(str(parameters.get(KIND)), TrainingSettings))]


def _own_names(parameters: Mapping[str, Any]) -> list[str]:
    """The names that are the case's own, and none of the driver's."""
    others = {KIND, BETTER, *_settings_for(parameters)}
    return [name for name in parameters if name not in others and not name.startswith(TARGET)]


def _text_in(folders: Iterable[Path]) -> str:
    """All code that may read a case's names."""
    files = (path for folder in folders for path in files_below(folder) if path.suffix == ".py")
    return "\n".join(text_of(path) for path in files if path.parent.name != "config")


def check_case_code(folder: Path, kind: str, metric: str, problems: Problems) -> tuple[str, ...]:
    """Note what every rank would refuse of the code in a case's `folder`.

    Args:
        kind: what the case's parameters say that it is for.
        metric: what its target is of.

    Returns:
        The roles of its processes, if its class names any.
    """
    path = folder / CASE_FILE
    for name in ("__init__.py", CASE_FILE):
        if not (folder / name).is_file():
            what = (
                "an empty file will do" if name == "__init__.py" else f"write the class {CASE_CLASS}; {_SEE}"
            )
            problems.add(folder / name, name, None, "there is no such file", what)
    for other in sorted(folder.glob("*.py")):
        if other != path:  # what case.py imports
            parsed(other, problems)
    if not path.is_file():
        return ()
    tree = parsed(path, problems)
    if tree is None:
        return ()
    case = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == CASE_CLASS), None)
    if case is not None:
        return _check_class(case, path, kind, metric, problems)
    if not _may_bind_it(tree):
        problems.add(path, CASE_CLASS, None, f"there is no class {CASE_CLASS}", _SEE)
    return ()


def _check_class(
    case: ast.ClassDef, path: Path, kind: str, metric: str, problems: Problems
) -> tuple[str, ...]:
    """Of a class with parents or decorators the rest may come from elsewhere: the ranks will see."""
    where, attributes = f"{path}:{case.lineno}", _attributes(case)
    missing = missing_parts(kind, attributes.__contains__)
    if missing and not case.bases and not case.decorator_list:
        problems.add(where, CASE_CLASS, None, lacking(missing, kind), _SEE)
    value = attributes.get("metric")
    if metric and isinstance(value, ast.Constant) and value.value != metric:
        message = f"is not the metric that _base.py names the target of, {metric}"
        remedy = f"rename target_{metric} in _base.py, or the metric"
        problems.add(f"{path}:{value.lineno}", "metric", value.value, message, remedy)
    if ROLES not in attributes:
        return ()
    if _literal(attributes[ROLES]) != SEARCH_ROLES or WORK not in attributes:
        remedy = f"write {ROLES} = {SEARCH_ROLES}, or leave it out"
        problems.add(where, ROLES, None, f"is not what a case with {WORK} may say", remedy)
    return SEARCH_ROLES


def _literal(value: ast.expr | None) -> object:
    try:
        return ast.literal_eval(value) if value else None
    except Exception:  # what is no literal is refused in many ways
        return None


def _attributes(case: ast.ClassDef) -> dict[str, ast.expr | None]:
    """The names that the class itself has, with what is assigned to them."""
    names: dict[str, ast.expr | None] = {}
    for node in case.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names[node.name] = None
        elif isinstance(node, ast.Assign):
            names |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            names[node.target.id] = node.value
    return names


def _may_bind_it(tree: ast.Module) -> bool:
    """Whether the module gets the class in another way than by defining it at its top."""
    names = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.ImportFrom, ast.Import)):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
    return bool(names & {CASE_CLASS, "*"})
