"""Ranges in the names of hosts: `node[001-512]` as it is written, and as many hosts are shown.

ClusterShell reads and prints the ranges themselves. Its NodeSet is left out: that reads settings and groups of the
user's and the machine's, which nobody named.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

MOST_HOSTS = 10_000  # of one entry: more is a slip of the pen
# Bytes of a name: with what files are named after it, their partial copies included, none comes to the 255 bytes that
# file systems allow.
LONGEST_HOST = 200
MOST_DIGITS = 18  # sites count to six and more; what is longer is no number that somebody counts hosts by
FEWEST_FOLDED = 3  # two names are shorter, and easier to copy
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
# `001-512`, perhaps with a step behind a slash; a range is some of these.
_NUMBER = rf"(\d{{1,{MOST_DIGITS}}})"
_PART = re.compile(f"{_NUMBER}(?:-{_NUMBER}(?:/{_NUMBER})?)?", re.ASCII)
_LAST_NUMBER = re.compile(r"((?:.*\D)?)(\d+)(\D*)", re.ASCII | re.DOTALL)


def expand(entry: str) -> tuple[str, ...]:
    """The hosts that an entry stands for, in ascending order: `r[1-2]n[01-16]` are 32.

    Raises:
        ValueError: a range cannot be read, or stands for far too many hosts; the message goes behind the entry.
    """
    if "[" not in entry and "]" not in entry:
        return (entry,)
    plain, ranges = _BRACKETS.split(entry)[::2], _BRACKETS.findall(entry)
    if any("[" in part or "]" in part for part in plain):
        raise ValueError("has a bracket without its other half")
    if len("".join(plain)) + len(ranges) > LONGEST_HOST:
        raise ValueError(f"stands for names of more than {LONGEST_HOST} characters")
    # counted before any is made: a few characters may stand for more than fits in the memory
    if entry.count(",") >= MOST_HOSTS or math.prod(map(_count, ranges)) > MOST_HOSTS:
        raise ValueError(f"stands for more than {MOST_HOSTS} hosts")
    numbers = [_numbers(text) for text in ranges]
    return tuple(
        "".join(itertools.chain.from_iterable(zip(plain, (*chosen, ""), strict=True)))
        for chosen in itertools.product(*numbers)
    )


def expand_all(entries: Iterable[str]) -> tuple[str, ...]:
    """The hosts of a list, in its order."""
    return tuple(host for entry in entries for host in expand(entry))


def fold(hosts: Collection[str]) -> str:
    """Hosts as a text that `expand` reads, entry by entry: `login, node[001-512]`; what ends alike is in one range."""
    if len(hosts) < FEWEST_FOLDED:
        return ", ".join(hosts)
    alike: dict[tuple[str, str], list[str]] = {}
    for host in dict.fromkeys(hosts):
        match = _LAST_NUMBER.fullmatch(host)
        begin, number, end = match.groups() if match else (host, "", "")
        alike.setdefault((begin, end), []).append(number)
    return ", ".join(text for (begin, end), numbers in alike.items() for text in _folded(begin, numbers, end))


def alike(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Host -> what is said of it, as pairs of hosts and text: those of whom the same is said share one.

    What is the same but for a host's own name is the same; `<host>` stands for it then.
    """
    groups: dict[str, list[str]] = {}
    for host, text in texts.items():
        groups.setdefault(general(text, host), []).append(host)
    return [
        (fold(sorted(hosts)), text if len(hosts) > 1 else texts[hosts[0]]) for text, hosts in groups.items()
    ]


def general(text: str, host: str) -> str:
    """`text` with `<host>` in the place of the host's name."""
    if host not in text:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)", "<host>", text)


def _folded(begin: str, numbers: Sequence[str], end: str) -> Iterator[str]:
    # what has more digits than a range is a part of the name
    short = [number for number in numbers if 0 < len(number) <= MOST_DIGITS]
    if len(short) >= FEWEST_FOLDED:
        from ClusterShell.RangeSet import RangeSet

        yield f"{begin}[{RangeSet.fromlist(short)}]{end}"
        numbers = [number for number in numbers if not 0 < len(number) <= MOST_DIGITS]
    yield from (f"{begin}{number}{end}" for number in numbers)


def _count(text: str) -> int:
    """How many numbers there are in one range, each as often as it stands there."""
    parts = [_PART.fullmatch(part) for part in text.split(",")]
    if None in parts:
        raise ValueError(f"has [{text}], which is no range of numbers")
    return sum(_count_of(*(int(number or 0) for number in part.groups())) for part in parts if part)


def _count_of(first: int, last: int, step: int) -> int:
    return max(last - first, 0) // max(step, 1) + 1


def _numbers(text: str) -> list[str]:
    """The numbers of one range, each with its leading zeros."""
    # imported late: most lists have no ranges
    from ClusterShell.RangeSet import RangeSet, RangeSetParseError

    try:
        return list(RangeSet(text))
    except RangeSetParseError as error:
        raise ValueError(f"has [{text}], which is no range of numbers: {error}") from error
