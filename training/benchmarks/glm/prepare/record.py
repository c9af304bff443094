"""ReCoRD's questions (Zhang et al. 2018, arXiv:1810.12885) as SuperGLUE distributes them: JSON, a passage a line.

    {"source": ..., "idx": 7,
     "passage": {"text": "...", "entities": [{"start": 12, "end": 16}, ...]},
     "qas": [{"idx": 3, "query": "... @placeholder ...",
              "answers": [{"start": 12, "end": 16, "text": "Paris"}, ...]}, ...]}

Entities are spans of characters, their last one included. News passages end with bullets that begin with
"@highlight\\n", which become "- " as in GLM's own preparation (and GPT-3's).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.glm.prepare.lines import MalformedInputError, numbered_lines

PLACEHOLDER = "@placeholder"
_PLAIN = str.maketrans("\u201c\u201d\u2018\u2019\u2013", "\"\"''-")  # as GLM's own preparation
Kind = TypeVar("Kind")


def plain_punctuation(text: str) -> str:
    """`text` with ASCII's quotation marks and dash, character for character, so that spans stay right."""
    return text.translate(_PLAIN)


@dataclass(frozen=True)
class Query:
    """`before` and `after` the blank; `answers` are the distinct right ones, sorted. `name` is for error messages."""

    name: str
    before: str
    after: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Passage:
    """`mentions`: the distinct entities in the order of their first mention, with how often each is mentioned.

    `where` names file and line, `index` is ReCoRD's own number.
    """

    where: str
    index: int
    text: str
    mentions: dict[str, int]
    queries: tuple[Query, ...]


def passages(record: Path, name: str, part: int, parts: int) -> Iterator[Passage]:
    """Every `parts`-th passage of the file `name`, from number `part` on.

    Raises:
        MalformedInputError: naming file and line.
    """
    for number, (where, line) in enumerate(numbered_lines(record, name)):
        if number % parts == part:
            yield parse(line, where)


def parse(line: bytes, where: str) -> Passage:
    """A passage from its line of JSON."""
    content = _decoded(line, where)
    passage = _field(content, "passage", dict, where)
    text = _field(passage, "text", str, where).translate(_PLAIN)  # character for character: spans stay right
    spans = [_span(entity, text, where) for entity in _field(passage, "entities", list, where)]
    mentions = Counter(text[start : end + 1] for start, end in sorted(spans))
    if not mentions:
        raise _malformed(where, "the passage has no entity, so there is nothing to choose from")
    queries = tuple(_query(query, text, where) for query in _field(content, "qas", list, where))
    if not queries:
        raise _malformed(where, "the passage has no question (qas)")
    index = _field(content, "idx", int, where)
    return Passage(where, index, text.replace("@highlight\n", "- "), dict(mentions), queries)


def _decoded(line: bytes, where: str) -> dict[str, Any]:
    try:
        content = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _malformed(
            where, f"not UTF-8: byte {line[error.start]:#04x} at column {error.start + 1}"
        ) from None
    except json.JSONDecodeError as error:
        raise _malformed(where, f"not JSON: {error.msg} at column {error.colno}") from None
    return _checked(content, dict, "the line", where)


def _query(content: Any, text: str, where: str) -> Query:
    content = _checked(content, dict, "a question", where)
    name = f"question {_field(content, 'idx', int, where)}"
    parts = _field(content, "query", str, where).translate(_PLAIN).split(PLACEHOLDER)
    if len(parts) != 2:
        raise _malformed(where, f"{name} holds {PLACEHOLDER} {len(parts) - 1} times, not once")
    answers = sorted(
        {_answer(answer, text, name, where) for answer in _field(content, "answers", list, where)}
    )
    if not answers:
        raise _malformed(where, f"{name} has no answer")
    return Query(name, parts[0], parts[1], tuple(answers))


def _answer(content: Any, text: str, name: str, where: str) -> str:
    answer = _field(_checked(content, dict, "an answer", where), "text", str, where).translate(_PLAIN)
    if not answer.strip() or answer not in text:
        raise _malformed(where, f"the answer {answer!r} of {name} is not in the passage")
    return answer


def _span(content: Any, text: str, where: str) -> tuple[int, int]:
    entity = _checked(content, dict, "an entity", where)
    start, end = _field(entity, "start", int, where), _field(entity, "end", int, where)
    if not 0 <= start <= end < len(text):
        raise _malformed(
            where, f"the entity {start} to {end} is not within the passage's {len(text)} characters"
        )
    return start, end


def _field(content: dict[str, Any], name: str, kind: type[Kind], where: str) -> Kind:
    if name not in content:
        raise _malformed(where, f"{name!r} is missing")
    return _checked(content[name], kind, f"{name!r}", where)


def _checked(value: Any, kind: type[Kind], name: str, where: str) -> Kind:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _malformed(where, f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value


def _malformed(where: str, why: str) -> MalformedInputError:
    remedy = "give train.jsonl and val.jsonl of SuperGLUE's ReCoRD as they are; test.jsonl has no answers"
    return MalformedInputError(why, where=where, remedy=remedy)
