"""Text from anywhere in Markdown, seen through a real renderer: it shows as it is, and makes nothing of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from run_benchmarks.results.markdown import fenced, inline, listed, table_row
from utils.text_files import one_line, printable

# CommonMark and what GitHub adds to it that makes elements.
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = (
    "<script>alert(1)</script>",
    "<b>x</b> &lt;i&gt; &#96; &copy;",
    "# heading",
    "## ",
    "> quoted",
    "- item",
    "-",
    "---",
    "- - -",
    "+ item",
    "12. item",
    "3) item",
    "===",
    "*a* **b** _c_ __d__ ~~e~~ ~~~",
    "[a](https://evil.example) ![a](https://evil.example/x.png) [^1] [a]: https://evil.example",
    "<https://evil.example> https://evil.example www.evil.example",
    "```",
    "``` js",
    "` | `x` | ``",
    "a|b \\| `c|d` `e\\|f`",
    "| a |\n| - |\n| b |",
    "text\n\n# heading\n\n<img src=x onerror=alert(1)>",
    "\tindented\n    code",
    "back\\",
    "two blanks  \nnext",
    "$\\text{formula}$ $`x`$",
    "_ `_` *`*` a_b _",
)
texts = st.one_of(
    st.text(),
    st.text("`|\\<>*_#-+=~[]()!&;:/$ \n\ta1."),
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE)).map(" ".join),
)
LIST = {f"{name}_{end}" for name in ("bullet_list", "list_item", "paragraph") for end in ("open", "close")}
LIST.add("inline")
searched = settings(derandomize=True, max_examples=150, deadline=None)


def leaves(tokens: list[Token]) -> Iterator[Token]:
    """What stands within blocks."""
    for token in tokens:
        yield from token.children or []


def seen(tokens: list[Token]) -> str:
    """What a reader sees of inline tokens, without the backticks that make code."""
    assert {token.type for token in tokens} <= {"text", "text_special", "code_inline"}
    return "".join(token.content for token in tokens)


def same(text: str, shown: str) -> None:
    bare = [re.sub(r"[`\s]", "", each) for each in (one_line(text), shown)]
    assert bare[0] == bare[1]


@given(texts)
@searched
def test_a_line_is_one_paragraph_of_itself(text: str) -> None:
    tokens = RENDERER.parse(f"before\n\n{inline(text)}\n\nafter")
    kinds = [token.type for token in tokens]
    middle = [] if not inline(text) else ["paragraph_open", "inline", "paragraph_close"]
    assert kinds == [
        "paragraph_open",
        "inline",
        "paragraph_close",
        *middle,
        "paragraph_open",
        "inline",
        "paragraph_close",
    ]
    same(text, seen(list(leaves(tokens[3:-3]))))


@given(st.lists(texts, min_size=1, max_size=5))
@searched
def test_a_list_has_an_item_for_each_line(lines: list[str]) -> None:
    tokens = RENDERER.parse(listed(lines))
    kinds = [token.type for token in tokens]
    assert kinds.count("list_item_open") == len(lines)
    assert set(kinds) <= LIST
    same("".join(lines), seen(list(leaves(tokens))))


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
@searched
def test_a_cell_stays_in_its_table(rows: list[tuple[str, str]]) -> None:
    lines = [table_row(row) for row in (("one", "two"), ("---", "---"), *rows)]
    tokens = RENDERER.parse("\n".join(lines))
    kinds = [token.type for token in tokens]
    assert (kinds[0], kinds[-1]) == ("table_open", "table_close")
    assert (kinds.count("tr_open"), kinds.count("td_open")) == (len(rows) + 1, 2 * len(rows))
    cells = [token for token in tokens if token.type == "inline"][2:]
    for text, cell in zip((text for row in rows for text in row), cells, strict=True):
        same(text, seen(cell.children or []))


@given(texts)
@searched
def test_a_block_of_code_ends_where_it_should(text: str) -> None:
    (block, _, _, _) = RENDERER.parse(f"{fenced(text)}\n\nafter")
    assert (block.type, block.content) == ("fence", f"{printable(text)}\n")


@pytest.mark.parametrize(
    "text",
    [
        "num_trained_samples",
        "bert:pytorch:cpu:1:2:1",
        "(2.5 %) -> x; 1.5 s",
        "-5",
        "`raw_train_time` / 2",
        "/a/b-c.log",
    ],
)
def test_what_means_nothing_stays_as_it_is(text: str) -> None:
    assert inline(text) == text and table_row([text]) == f"| {text} |"


def test_an_address_is_no_link() -> None:
    assert inline("https://a.example www.a.example") == "https:\\//a.example www\\.a.example"
