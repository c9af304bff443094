"""Models of what stands in a configuration file: every field that is wrong is a problem with line and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo

from run_benchmarks.plan.config_file import ConfigFile, Entry, subject
from run_benchmarks.plan.problems import Problems, UnfitError, choices, listing
from run_benchmarks.plan.redact import HIDDEN
from utils.errors import nearest

T = TypeVar("T")

_TYPE_NAMES: dict[type, str] = {
    type(None): "None", bool: "True or False", int: "a whole number", float: "a number", str: "text",
    list: "a list", tuple: "a tuple", dict: "a dict",
}  # fmt: skip
# pydantic's types of errors -> what it wants.
_WANTED = {
    "string_type": "text",
    "path_type": "text",
    "bool_type": "True or False (without quotes)",
    "int_type": "a whole number (without quotes)",
    "float_type": "a number (without quotes)",
    "tuple_type": "a list",
    "dict_type": "a dict",
    "dataclass_type": "a dict",
}


def type_name(value: Any) -> str:
    """What `value` is, in words for a user: `a list`, `text`."""
    return _TYPE_NAMES.get(type(value), f"a {type(value).__name__}")


# Fields of a password, or of where it is to be found, instead of which it may have been written.
_OF_PASSWORDS = frozenset({"pass", "pwd", "pw", "pass_env", "pass_file"})
NOWHERE: Mapping[str, Iterable[type[Any]]] = {}


def fields_of(model: type[Any]) -> dict[str, FieldInfo]:
    """The fields of a model, by their names in a file; where two share a name, the first."""
    fields: Mapping[str, FieldInfo] = model.__pydantic_fields__
    names: dict[str, FieldInfo] = {}
    for name, field in fields.items():
        alias = field.validation_alias or field.alias or name
        for each in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            names.setdefault(str(each), field)
    return names


class Reader:
    """Settings of one file. What is absent or None gets its default; what is wrong is a problem as well.

    names: the settings that the file may have.
    written_as: names of the models' fields -> the setting that they were taken from, where that is another.
    """

    def __init__(self, file: ConfigFile, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self.names: set[str] = set()
        self.written_as: dict[str, str] = {}

    def read(
        self,
        model: type[T],
        values: Mapping[str, Any] | None = None,
        within: Entry = (),
        stand_ins: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> T | None:
        """A `model` of the file's values, of `values` in their place, or of the dict that stands `within` it.

        `given` are fields that no file says; `stand_ins` are taken for fields that must be there and are missing
        or wrong, so that the rest can be checked all the same. None where such a field has none.
        """
        fields = fields_of(model)
        if not within:
            self.names |= fields.keys()
        values = self.file.values if values is None else values
        present = {n: values[n] for n in fields if n not in given and values.get(n) is not None}
        wrong = set(filter(self.file.is_odd, fields))  # noted with the rest
        while True:
            present = {name: value for name, value in present.items() if name not in wrong}
            present |= {name: value for name, value in (stand_ins or {}).items() if name in wrong}
            try:
                return model(**present, **given)
            except ValidationError as error:
                new = [each for each in error.errors() if each["loc"][0] not in wrong]
            if not new:
                return None
            for each in new:
                self._note(each, model, within)
            wrong |= {str(each["loc"][0]) for each in new}

    def _note(self, error: Any, model: type[Any], within: Entry) -> None:
        name, *rest = error["loc"]
        entry: Entry = (*within, self.written_as.get(name, name), *rest)
        value = None if error["type"] == "missing" else error["input"]
        if entry[-1] == "[key]":
            entry = entry[:-2]
        elif len(entry) == 1:
            value = self.file.values.get(str(entry[0]))  # as it stands there
        message, remedy = _explained(error, entry, fields_of(model).get(name) if not rest else None)
        self.problem(entry, message, remedy, value)

    def problem(self, entry: Entry | str, message: str, remedy: str, value: Any = None) -> None:
        """Note that a setting, or what stands within one, is wrong."""
        entry = (entry,) if isinstance(entry, str) else entry
        if value is None and len(entry) == 1:
            value = self.file.values.get(str(entry[0]))
        if value is not None and self._may_be_secret(entry, value):
            value = HIDDEN
        self.problems.add(self.file.where(*entry), subject(entry), value, message, remedy)

    def _may_be_secret(self, entry: Entry, value: Any) -> bool:
        """Whether what is wrong may be a secret, which then stands where there is to be another thing."""
        if entry == ("SSH_USER",):
            return ":" in str(value)  # and a password
        return entry[-1] in _OF_PASSWORDS or any(self.problems.secrets.are_named(str(part)) for part in entry)

    def report_rest(
        self, is_other: Callable[[str, Any], bool], elsewhere: Mapping[str, Iterable[type[Any]]] = NOWHERE
    ) -> None:
        """Note every name in the file that is neither a known setting nor `is_other`, or is no plain data.

        Args:
            elsewhere: another file -> the models of what is a setting there.
        """
        at_home = {
            name: file for file, models in elsewhere.items() for model in models for name in fields_of(model)
        }
        for name in filter(self.file.is_odd, sorted(self.names)):
            message = "is neither text, a number, True, False, None, nor a list or dict of these"
            self.problem(name, message, "write plain data, e.g. str(...) around a path")
        for name, value in self.file.values.items():
            if name not in self.names and not is_other(name, value) and self._looks_like_setting(name):
                hint = nearest(name.upper(), sorted(self.names))
                own = "a name of your own must start with _ or be written in small letters"
                if name in at_home:
                    self.problem(name, "is no setting of this file", f"write it into {at_home[name]}")
                else:
                    self.problem(name, "is no setting", hint or f"remove it; {own}")

    def report_unknown_keys(self, entry: Entry, values: Mapping[Any, Any], keys: list[str]) -> None:
        """Note every key of a dict that is none of `keys`."""
        for key in values.keys() - set(keys):
            remedy = nearest(str(key), keys) or f"remove it; there is {listing(keys)}"
            self.problem((*entry, key), "is no key of this dict", remedy, values[key])

    def _looks_like_setting(self, name: str) -> bool:
        return name.isupper() or name.upper() in self.names


def _explained(error: Any, entry: Entry, field: FieldInfo | None) -> tuple[str, str]:
    """What is wrong, and what would be right."""
    kind, context = error["type"], error.get("ctx", {})
    unfit = context.get("error")
    example = str(field.examples[0]) if field and field.examples else ""
    if isinstance(unfit, UnfitError):
        return unfit.message, unfit.remedy
    if kind == "missing":
        if len(entry) == 1:
            return "is not set", f"add a line such as: {entry[0]} = {example}"
        return "is not set", f'add "{entry[-1]}": {example or "..."} to the dict'
    if kind in _WANTED:
        wanted = _WANTED[kind]
        message = f"has the wrong type: it is {type_name(error['input'])}, not {wanted}"
        return message, f"write {wanted}" + (f", e.g. {example}" if example else "")
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        return "is none of the choices", f"write one of {choices(str(error['input']), allowed)}"
    bounds = {
        "greater_than": "greater than {gt:g}",
        "greater_than_equal": "of at least {ge:g}",
        "less_than_equal": "of at most {le:,.0f}",
    }
    return "is out of range", f"write a number {bounds.get(kind, 'that is finite').format(**context)}"
