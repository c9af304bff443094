"""The page that everything FlagPerf shows as HTML is built on: one file, no network, light and dark, print and phone.

    body = rendered("template.html", ...) + chart(Chart(...))
    text = page("Comparison", body)

`page` puts styles, scripts and the chart library into the file, and forbids it by its Content-Security-Policy to load
or to send anything, to run any other script (each of its own is named by its hash) and to take a style from an
attribute: colours and widths come from classes, or from attributes of SVG. Text reaches the page through the
autoescape of a template, or of `Markup.format`, and never in another way. Classes that a body
may use: `cards` and `card` (a value with its name), `wide` (a box that scrolls a wide table), `good`, `bad`,
`doubtful` (a word on a verdict), `muted`, `number` (a cell).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.text_files import printable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

FOLDER = Path(__file__).parent
STYLES = ("uplot/uPlot.min.css", "page.css")
SCRIPTS = ("uplot/uPlot.iife.min.js", "series.js", "drawing.js", "charts.js", "page.js")


@lru_cache
def environment(folder: Path = FOLDER / "templates") -> Environment:
    """The templates in a folder, and those of this one; all that is put into them is made printable and escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader([folder, FOLDER / "templates"])
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters["json"] = as_json
    made.filters["marked"] = marked
    return made


def rendered(template: str, folder: Path = FOLDER / "templates", /, **values: Any) -> Markup:
    """A part of a page: a template with its values."""
    from markupsafe import Markup

    text = environment(folder).get_template(template).render(**values)
    return Markup(text)  # noqa: S704 - a template with autoescape made it


def _shown(value: Any) -> Any:
    """Text without what would hide, or turn the direction of what is around it."""
    return printable(value) if type(value) is str else value


def marked(text: str) -> Markup:
    """A sentence in which what stands between backticks, a name or a command, is shown as such."""
    from markupsafe import Markup, escape

    parts = str(escape(printable(text))).split("`")
    if len(parts) % 2 == 0:  # the last one is open: it is a backtick
        parts[-2:] = ["`".join(parts[-2:])]
    shown = (f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
    return Markup("".join(shown))  # noqa: S704 - each part has been escaped


def page(title: str, body: Markup, *, scripts: Sequence[str] = (), is_served: bool = False) -> str:
    """A whole HTML file.

    Args:
        scripts: further scripts, as text; they run after the page's own.
        is_served: it comes from a server, which its forms and scripts may ask for more; nobody else.
    """
    from markupsafe import Markup

    styles = [Markup(_static(name)) for name in STYLES]  # noqa: S704 - the project's own files
    sources = [Markup(text) for text in (*map(_static, SCRIPTS), *scripts)]  # noqa: S704
    policy = _policy(styles, sources, is_served=is_served)
    about = {"title": title, "body": body, "policy": policy, "is_served": is_served}
    return rendered("page.html", styles=styles, scripts=sources, **about)


def as_json(content: object) -> Markup:
    """JSON that can stand in a script element: nothing in it ends the element or begins another."""
    from markupsafe import Markup

    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - no character of it begins or ends anything


def _policy(styles: Sequence[str], scripts: Sequence[str], *, is_served: bool) -> str:
    server = "'self'" if is_served else "'none'"
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(_hash_source, scripts)),
        "style-src": " ".join(map(_hash_source, styles)),
        "img-src": "data:",
        "connect-src": server,
        "form-action": server,
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash_source(text: str) -> str:
    """How a policy names a script or style by what it is."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache
def _static(name: str) -> str:
    return (FOLDER / "static" / name).read_text(encoding="utf-8")
