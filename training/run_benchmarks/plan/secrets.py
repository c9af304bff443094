"""The secrets of a run: gathered once from its settings, hidden by value in all that is shown or written."""

from __future__ import annotations

import operator
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import count, islice
from typing import Any, TypeVar

from run_benchmarks.plan.redact import (
    HIDDEN,
    redact_argv,
    redact_text,
    secrets_in_argv,
    secrets_in_text,
)
from run_benchmarks.plan.shell_file import secrets_in_shell
from run_benchmarks.plan.spellings import spellings_of
from run_benchmarks.plan.substrings import Substrings, without_wraps
from run_benchmarks.plan.url_users import users_in_argument
from utils.figures import DEFINITIONS
from utils.records import Stage
from utils.secret_names import is_secret_name

T = TypeVar("T")
# Of these settings a value may be a secret; all others (hosts, cases, paths) are open, and so is what they hold.
MAY_BE_SECRET = frozenset({"ACCE_CONTAINER_OPT", "IMAGE_BUILD_ARGS", "VENDORS", "PIP_SOURCE"})
SHORTEST = 6  # characters: a shorter value stands in too much else to be hidden wherever it stands
# A result is read by these: a value that is a part of one takes none of them away.
OWN = frozenset({*DEFINITIONS, *(stage.value for stage in Stage)})
LONGEST_OPTIONS = 2**16  # characters that are taken for a line of options
_NUMBER = re.compile(r"[\d.,:+-]{1,11}")
_LINE_END = re.compile(r"[\r\n]+|\\r|\\n")  # also as a variable has it that may be one line only
MOST_PASSES = 20  # over a text that only a hostile writer makes so
# `--env NAME=value` and its other spellings, without the blank.
_ENV_OPTION = re.compile(r"(?:-e|--env)=?([^-=][^=]*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Secrets:
    """What must not be seen.

    marked: the names of variables and build arguments that SECRETS of `test_conf.py` marks, beside those whose
    names speak for themselves. held: the values that the settings hold. open_texts: what they say besides. by_name:
    whether what a text assigns to the name of a secret is hidden too: of what others ran the values are not known.
    """

    marked: frozenset[str] = frozenset()
    held: frozenset[str] = field(default=frozenset(), repr=False)
    open_texts: frozenset[str] = field(default=frozenset(), repr=False)
    by_name: bool = False

    @cached_property
    def values(self) -> frozenset[str]:
        """What is hidden wherever it stands; a key of several lines is printed line by line."""
        lines = {line.strip() for value in self.held for line in _LINE_END.split(value)}
        return frozenset(value for value in self.held | lines if self._is_distinct(value))

    def are_named(self, name: str) -> bool:
        """Whether what has this name is a secret."""
        return name in self.marked or is_secret_name(name)

    def hold(self, name: str, value: str) -> bool:
        """Whether a variable is a secret: by its name, or because there is one in its value."""
        return self.are_named(name) or self.shown(name, value) != value

    def shown(self, name: str, value: str) -> str:
        """A variable's value as anybody may see it."""
        return HIDDEN if self.are_named(name) else self.hide(redact_argv([value])[0])

    def hide(self, text: str) -> str:
        """`text` with every value in it replaced by `***`; one that stands in too much else, where it is assigned."""
        if self.by_name or any(value in text for value in self._indistinct):
            text = redact_text(text, self.marked)
        for _ in range(MOST_PASSES):  # what was around a value may make up another one
            before = text
            text = self._spelled.replaced(text, HIDDEN)
            text = self._in_lines.replaced_wrapped(text, HIDDEN)
            if text == before:
                return text
        return HIDDEN

    def hide_in(self, record: T, *, names: bool = True) -> T:
        """`record` with every text in it hidden, to any depth of records, lists and dicts; what had none is itself.

        Args:
            names: those in dicts too; not where they are FlagPerf's own, and a reader looks for them.
        """
        value: Any = record
        if not (self.held or self.by_name):
            return record
        if type(value) is str:
            value = self.hide(value)
        elif is_dataclass(value) and not isinstance(value, type):
            own = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
            hidden = {name: self.hide_in(item, names=names) for name, item in own.items()}
            value = value if _are_same(own.values(), hidden.values()) else replace(value, **hidden)
        elif isinstance(value, Mapping):
            keys = self._hidden_names(value) if names else value
            items = [self.hide_in(item, names=names) for item in value.values()]
            is_same = _are_same(value, keys) and _are_same(value.values(), items)
            value = value if is_same else dict(zip(keys, items, strict=True))
        elif type(value) in (list, tuple):
            items = [self.hide_in(item, names=names) for item in value]
            value = value if _are_same(value, items) else type(value)(items)
        return value  # type: ignore[no-any-return]

    def _hidden_names(self, names: Iterable[Any]) -> list[Any]:
        """The names of a dict, hidden; those that would be the same get a number."""
        shown: dict[Any, None] = {}
        numbers = defaultdict[Any, Iterator[int]](lambda: count(2))
        for name in names:
            hidden = self.hide(name) if type(name) is str else name
            each = hidden
            while each in shown:
                each = f"{hidden} {next(numbers[hidden])}"
            shown[each] = None
        return list(shown)

    def split(self, values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Those of the variables that anybody may see, and those that are secret."""
        secret = {name: value for name, value in values.items() if self.hold(name, value)}
        return {name: value for name, value in values.items() if name not in secret}, secret

    def split_options(self, options: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """A container engine's options without the variables among them that are secret, and these."""
        kept: list[str] = []
        secret: dict[str, str] = {}
        for words, name, value in _with_variables(options):
            if name and self.hold(name, value):
                secret[name] = value
            else:
                kept += words
        return tuple(kept), secret

    def with_those_of(self, settings: Mapping[str, Any], argv: Sequence[str] = (), text: str = "") -> Secrets:
        """These and the secrets that stand in settings, in a container engine's options, in a shell file."""
        others = [
            value
            for name, value in settings.items()
            if name not in MAY_BE_SECRET and not self.are_named(name)
        ]
        held = [
            *self._values_in(settings),
            *self._values_of_options(argv),
            *secrets_in_shell(text, self.are_named),
        ]
        return replace(
            self,
            held=self.held.union(held),
            open_texts=self.open_texts.union(redact_text(text) for text in _texts(others)),
        )

    def and_those(self, values: Iterable[str]) -> Secrets:
        """These and further values."""
        return replace(self, held=self.held.union(values))

    def _is_distinct(self, value: str) -> bool:
        """Whether a value can be hidden wherever it stands, and leaves what is no secret as it is."""
        if len(value) < SHORTEST or _NUMBER.fullmatch(value):
            return False
        return not any(value in text for text in (*self.open_texts, *OWN))

    def _values_in(self, settings: Mapping[Any, Any]) -> Iterator[str]:
        for name, value in settings.items():
            if isinstance(value, Mapping):
                yield from self._values_in(value)
            elif self.are_named(str(name)):
                yield from _texts(value)
            else:
                yield from self._values_in_lists(value)
                texts = list(_texts(value))
                yield from self._values_of_variables(
                    texts
                )  # options in a list, though these are to be a text
                for text in texts:
                    words = _words(text)
                    yield from self._values_of_options(words)
                    yield from self._values_marked([text, *words])
                    yield from users_in_argument(text)
                    yield from secrets_in_text(text)

    def _values_in_lists(self, value: Any) -> Iterator[str]:
        """Of dicts in lists, and of pairs, which are to be one: `[("API_TOKEN", "...")]`."""
        if isinstance(value, Mapping):
            yield from self._values_in(value)
        elif isinstance(value, (list, tuple)):
            name, *others = value or [""]
            if len(others) == 1 and isinstance(name, str) and name.isupper() and self.are_named(name):
                yield from (text for text in _texts(others) if not self.are_named(text))
            for each in value:
                yield from self._values_in_lists(each)

    def _values_of_options(self, argv: Sequence[str]) -> Iterator[str]:
        yield from secrets_in_argv(argv)
        yield from self._values_of_variables(argv)

    def _values_of_variables(self, argv: Sequence[str]) -> Iterator[str]:
        return (value for _, name, value in _with_variables(argv) if self.are_named(name))

    def _values_marked(self, words: Iterable[str]) -> Iterator[str]:
        """What words give to a name that the user marked."""
        pairs = (word.partition("=") for word in words)
        return (value for name, _, value in pairs if name in self.marked)

    @cached_property
    def _indistinct(self) -> frozenset[str]:
        return self.held - self.values - {""}

    @cached_property
    def _spelled(self) -> Substrings:
        spellings = {each for value in self.values for each in spellings_of(value)}
        return Substrings(each for each in spellings if len(each) >= SHORTEST)

    @cached_property
    def _in_lines(self) -> Substrings:
        """The values as they are, which a log may wrap: its lines are joined before they are looked for."""
        whole = map(without_wraps, self.values)
        return Substrings(value for value in whole if len(value) >= SHORTEST)


NO_SECRETS = Secrets()
# Of who shows what others ran: looked for once something is judged or drawn, as that executes the configuration.
SecretsHere = Callable[[], Secrets]


def by_name_alone() -> Secrets:
    """What can be hidden where no settings are at hand."""
    return Secrets(by_name=True)


def marks_in(values: Mapping[str, Any]) -> list[str]:
    """What SECRETS of a file's values marks, as far as it is right."""
    marked = values.get("SECRETS")
    return [name for name in marked if isinstance(name, str)] if isinstance(marked, (list, tuple)) else []


def secrets_of(marked: Iterable[str], *settings: Mapping[str, Any]) -> Secrets:
    """The secrets that settings hold as they were written, whatever else is wrong with them."""
    secrets = Secrets(frozenset(marked))
    for each in settings:
        secrets = secrets.with_those_of(each)
    return secrets


def _with_variables(options: Sequence[str]) -> Iterator[tuple[list[str], str, str]]:
    """The options one by one: the words of each, and of those that set a variable its name and value."""
    words = iter(options)
    for word in words:
        option = [word, *islice(words, word in ("-e", "--env"))]
        match = _ENV_OPTION.fullmatch("".join(option))
        name, value = match.groups() if match else ("", "")
        yield option, name, value


def _words(text: str) -> list[str]:
    if len(text) > LONGEST_OPTIONS:
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark is not closed: that is reported, and may not show it
        return text.split()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for key, item in value.items() for text in (*_texts(key), *_texts(item)))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in _texts(item))


def _are_same(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether nothing in them was replaced."""
    return all(map(operator.is_, some, others))
